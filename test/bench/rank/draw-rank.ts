/** The picture of the bench's page: processor time of ten iterations by engine. */
import { drawBars } from "#ops/evaluate/pictures/bar-picture";

export interface TenIterations {
  readonly name: string;
  /** Before the first iteration, and of all ten. */
  readonly beforeMs: number;
  readonly tenMs: number;
}

export function drawRank(engines: readonly TenIterations[]): string {
  return drawBars({
    title: "Ten iterations of PageRank",
    description: engines
      .map(({ name, beforeMs, tenMs }) => `${name} ${((beforeMs + tenMs) / 1000).toFixed(1)} s`)
      .join(", "),
    valueLabel: "processor time, s",
    parts: [
      { name: "ten iterations", role: "part-1" },
      { name: "before the first", role: "part-3" },
    ],
    panels: [
      {
        title: "",
        bars: engines.map(({ name, beforeMs, tenMs }) => ({ name, values: [tenMs / 1000, beforeMs / 1000] })),
      },
    ],
  });
}

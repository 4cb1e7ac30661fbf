/**
 * Whether a process grows throughout a long run without faults: its memory, handles and threads, every half minute. The first
 * tenth is left out: caches and heaps fill up.
 */
import { readdirSync, readFileSync } from "node:fs";

interface Sample {
  readonly hours: number;
  readonly value: number;
}

/** By the suffix of a figure's name: the growth allowed as a share of the first quarter's median, and its usual variation. */
const tolerances: Readonly<Record<string, { readonly share: number; readonly least: number }>> = {
  MB: { share: 0.15, least: 16 },
  // One connection for each host that a crawler fetches from at a time.
  handles: { share: 0.15, least: 32 },
  threads: { share: 0.1, least: 2 },
};

/** The gain per hour up to which a figure counts as flat. */
const creep = 0.02;
const fewestSamples = 20;
const everyMs = 30_000;

export class GrowthWatch {
  readonly #samples = new Map<string, Sample[]>();
  readonly #timer: NodeJS.Timeout;
  readonly #beganMs = performance.now();

  /** `processes`: the running processes, by name. */
  constructor(processes: () => readonly { readonly name: string; readonly pid: number | null }[]) {
    this.#timer = setInterval(() => {
      for (const { name, pid } of processes()) if (pid !== null) this.#look(name, pid);
    }, everyMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Empty also where a run is too short to tell. */
  growing(): readonly object[] {
    return [...this.#samples].flatMap(([figure, samples]) => growthOf(figure, samples) ?? []);
  }

  #look(name: string, pid: number): void {
    try {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      const number = (key: string) => Number(new RegExp(`^${key}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0);
      this.#note(`${name}, MB`, number("VmRSS") / 1024);
      this.#note(`${name}, handles`, readdirSync(`/proc/${pid}/fd`).length);
      this.#note(`${name}, threads`, number("Threads"));
    } catch {
      // It has ended.
    }
  }

  #note(figure: string, value: number): void {
    const known = this.#samples.get(figure) ?? [];
    known.push({ hours: (performance.now() - this.#beganMs) / 3_600_000, value });
    this.#samples.set(figure, known);
  }
}

/**
 * It grows when the median of the last quarter is above that of the first by more than its tolerance, and when the slope of
 * the second half (Theil and Sen: the median of the slopes of all pairs) would still bring another `creep` within an hour.
 */
export function growthOf(figure: string, given: readonly Sample[]): object | null {
  const samples = given.slice(Math.ceil(given.length / 10));
  if (samples.length < fewestSamples) return null;
  const { share, least } = tolerances[figure.split(", ").at(-1)!]!;
  const quarter = Math.floor(samples.length / 4);
  const medianOf = (some: readonly Sample[]) => median(some.map(({ value }) => value));
  const [first, last] = [medianOf(samples.slice(0, quarter)), medianOf(samples.slice(-quarter))];
  const later = samples.slice(Math.floor(samples.length / 2));
  const slopes = later.flatMap((a, at) =>
    later.slice(at + 1).map((b) => (b.value - a.value) / (b.hours - a.hours)),
  );
  const goesOn = median(slopes) > creep * Math.max(last, least);
  return last - first > Math.max(least, share * first) && goesOn ? { figure, first, last } : null;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

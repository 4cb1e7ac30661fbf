/** Makes the figures that are computed, one after the other, and says how far it is. */
import type { EvaluationContext, Figure, Section } from "../../evaluate/figure.ts";
import { secondsText } from "../rir/progress-text.ts";
import { workProgress } from "../simulate/work-progress.ts";

export interface EvaluatedFigure {
  readonly name: string;
  readonly title: string;
  readonly section: Section;
}

export function computeFigures(
  figures: readonly Figure[],
  context: Omit<EvaluationContext, "onProgress">,
): EvaluatedFigure[] {
  return figures.map((figure, index) => {
    const before = process.cpuUsage();
    const progress = workProgress("targets");
    const onProgress = (what: string, done: number, total: number) =>
      progress.show(`${index + 1}/${figures.length} ${figure.name}: ${what}`, done, total);
    const section = figure.measure({ ...context, onProgress });
    progress.done();
    const { user, system } = process.cpuUsage(before);
    const seconds = secondsText((user + system) / 1e6);
    process.stderr.write(`${figure.name}: ${seconds} of CPU time\n`);
    return { name: figure.name, title: figure.title, section };
  });
}

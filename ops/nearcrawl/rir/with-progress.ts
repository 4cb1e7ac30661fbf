/** Long work of `nearcrawl rir` with a progress line on standard error. */
import type { OnProgress } from "#rir-import/progress";
import { ProgressLine } from "../output.ts";
import { progressText } from "./progress-text.ts";

export async function withProgress<T>(work: (onProgress: OnProgress) => Promise<T>): Promise<T> {
  const line = new ProgressLine();
  const startedAt = performance.now();
  try {
    return await work((progress) =>
      line.show(progressText(progress, (performance.now() - startedAt) / 1000)),
    );
  } finally {
    line.done();
  }
}

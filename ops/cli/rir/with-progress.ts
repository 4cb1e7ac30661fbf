/** Long work of `nearcrawl rir` with a progress line on standard error, or told to the coordinator that asked for it. */
import type { ImportProgress, OnProgress } from "#rir-import/progress";
import { ProgressLine } from "../output.ts";
import { endWithCoordinator, isJob, JobSteps } from "./job-steps.ts";
import { progressText } from "./progress-text.ts";

export async function withProgress<T>(work: (onProgress: OnProgress) => Promise<T>): Promise<T> {
  if (isJob()) return await withSteps(work);
  const line = new ProgressLine();
  const phases = new PhaseTexts();
  try {
    return await work((progress) => line.show(phases.text(progress, performance.now()).text));
  } finally {
    line.done();
  }
}

async function withSteps<T>(work: (onProgress: OnProgress) => Promise<T>): Promise<T> {
  endWithCoordinator();
  const steps = new JobSteps();
  const phases = new PhaseTexts();
  return await work((progress) => {
    const nowMs = performance.now();
    const { text, ended } = phases.text(progress, nowMs);
    const share = progress.total > 1 ? Math.min(1, progress.done / progress.total) : null;
    steps.tell({ text, share, done: ended }, nowMs);
  });
}

class PhaseTexts {
  #phase: ImportProgress["phase"] | null = null;
  #sinceMs = 0;
  #last = "";

  /** `ended`: the last text of the phase before, when this is the first of another. */
  text(progress: ImportProgress, nowMs: number): { readonly text: string; readonly ended: string | null } {
    const isNew = progress.phase !== this.#phase;
    const ended = isNew && this.#phase !== null ? this.#last : null;
    if (isNew) {
      this.#phase = progress.phase;
      this.#sinceMs = nowMs;
    }
    this.#last = progressText(progress, (nowMs - this.#sinceMs) / 1000);
    return { text: this.#last, ended };
  }
}

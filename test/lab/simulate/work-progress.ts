/** The progress line of long computations: task, share done, rate and time left. */
import { ProgressLine, paceText } from "#ops/cli/output";

/** Shortest time between two updates of the line. */
const everyMs = 200;
/** Shorter work shows no line. */
const quietMs = 1000;

interface WorkProgress {
  /** `done` of `total`, in `unit`s; a new `what` restarts the time. */
  show(what: string, done: number, total: number): void;
  done(): void;
}

export function workProgress(unit: string, line: ProgressLine = new ProgressLine()): WorkProgress {
  const startMs = performance.now();
  let shownMs = startMs + quietMs - everyMs;
  let current = { what: "", sinceMs: startMs };
  return {
    show(what, done, total) {
      const nowMs = performance.now();
      if (current.what !== what) current = { what, sinceMs: nowMs };
      if (nowMs - shownMs < everyMs) return;
      shownMs = nowMs;
      line.show(`${what}, ${unit}: ${paceText(done, total, (nowMs - current.sinceMs) / 1000)}`, nowMs);
    },
    done: () => line.done(),
  };
}

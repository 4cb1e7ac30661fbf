/** The progress line of long computations: what, how far, how fast, how long still. */
import { ProgressLine, paceText } from "#ops/cli/output";

/** Rewrites the line at most so often. */
const everyMs = 200;
/** Work that is done sooner shows no line at all. */
const quietMs = 1000;

interface WorkProgress {
  /** `done` of `total`, in `unit`s; a new `what` begins a new count of time. */
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

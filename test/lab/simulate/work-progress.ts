/** The progress line of long computations: what, how far, how fast, how long still. */
import { ProgressLine } from "#ops/cli/output";
import { secondsText } from "#ops/cli/rir/job-steps";

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
      line.show(workText({ what, done, total, unit, seconds: (nowMs - current.sinceMs) / 1000 }), nowMs);
    },
    done: () => line.done(),
  };
}

/** `nearest, seed 2 of 5 · 3,400 of 10,000 targets · 2,100/s · 3.1 s left`. */
function workText(work: {
  readonly what: string;
  readonly done: number;
  readonly total: number;
  readonly unit: string;
  readonly seconds: number;
}): string {
  const { what, done, total, unit, seconds } = work;
  const parts = [what, `${done.toLocaleString("en")} of ${total.toLocaleString("en")} ${unit}`];
  if (seconds > 0.5 && done > 0) {
    const rate = done / seconds;
    parts.push(`${rate < 10 ? rate.toFixed(1) : Math.round(rate).toLocaleString("en")}/s`);
    parts.push(`${secondsText((total - done) / rate)} left`);
  }
  return parts.join(" · ");
}

/** How far a ranking is, as one line: the step, how many, how fast, how long it still takes. */
import type { RankProgress } from "#coordinator/web-graph/local-rank-store";
import { ProgressLine } from "../output.ts";
import { secondsText } from "../rir/progress-text.ts";

export class RankProgressLine {
  readonly #line = new ProgressLine();
  #step = "";
  #sinceMs = 0;

  show(progress: RankProgress): void {
    const nowMs = performance.now();
    if (progress.step !== this.#step) [this.#step, this.#sinceMs] = [progress.step, nowMs];
    this.#line.show(rankProgressText(progress, (nowMs - this.#sinceMs) / 1000));
  }

  done(): void {
    this.#line.done();
  }
}

/** `elapsedSeconds` since the step began. */
export function rankProgressText(progress: RankProgress, elapsedSeconds: number): string {
  const { step, done } = progress;
  if (step === "writing") return `writing the ranks of ${count(done)} URLs`;
  if (step === "sweeps") {
    const each = elapsedSeconds / Math.max(1, done);
    return `iteration ${done} · changed ${progress.residual.toExponential(1)} · ${secondsText(each)} each`;
  }
  const rate = elapsedSeconds > 0.5 ? done / elapsedSeconds : null;
  const parts = [
    `reading ${step}: ${count(done)}${progress.expected > done ? ` of about ${count(progress.expected)}` : ""}`,
  ];
  if (rate !== null) parts.push(`${count(rate)}/s`);
  if (rate !== null && progress.expected > done)
    parts.push(`${secondsText((progress.expected - done) / rate)} left`);
  return parts.join(" · ");
}

const count = (value: number) => Math.round(value).toLocaleString("en");

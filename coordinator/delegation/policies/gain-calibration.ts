/**
 * Whether probes save what was expected of them, in this fleet and this part of the Internet. Where answers
 * hold fewer surprises than the estimate takes for granted, its gains are scaled down and rounds end sooner;
 * where more, they go on for longer.
 */

/** A probe that was made because something was expected of it. */
export interface ProbedGain {
  readonly expectedMs: number;
  /** What it saved: the best answer before it, less its own; 0 when it was no better. */
  readonly savedMs: number;
}

/** Of a saving only so much counts, as in the estimate (see `expected-gain.ts`). */
const mostCountedMs = 15;
/** Evidence, in ms of saving, that the uncorrected estimate starts with. */
const priorMs = 20;
/** What an old probe still counts after each new one: some hundred are remembered. */
const memory = 0.998;
const leastScale = 1 / 3;
const mostScale = 3;

export class GainCalibration {
  #expectedMs = 0;
  #savedMs = 0;

  /** By what an estimate is to be multiplied, 1/3 to 3. */
  get scale(): number {
    const scale = (this.#savedMs + priorMs) / (this.#expectedMs + priorMs);
    return Math.min(mostScale, Math.max(leastScale, scale));
  }

  note({ expectedMs, savedMs }: ProbedGain): void {
    this.#expectedMs = this.#expectedMs * memory + expectedMs;
    this.#savedMs = this.#savedMs * memory + Math.min(mostCountedMs, savedMs);
  }
}

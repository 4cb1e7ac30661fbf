/** Splits long work into short turns: after a few ms all other work runs first. */
import type { ExploreClock } from "./reads.ts";

/** The length of a turn, which delays others slightly longer. */
const turnMs = 5;

export class WorkTurns {
  readonly #clock: Pick<ExploreClock, "steadyMs" | "yieldTurn">;
  #startedMs: number;

  constructor(clock: Pick<ExploreClock, "steadyMs" | "yieldTurn">) {
    this.#clock = clock;
    this.#startedMs = clock.steadyMs();
  }

  /** Awaited after each small piece of work. */
  async breathe(): Promise<void> {
    if (this.#clock.steadyMs() - this.#startedMs < turnMs) return;
    await this.#clock.yieldTurn();
    this.#startedMs = this.#clock.steadyMs();
  }
}

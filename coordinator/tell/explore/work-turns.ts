/** Long work in short turns: after a few ms it lets everybody else go first. */
import type { ExploreClock } from "./reads.ts";

/** A turn takes so long; whoever waits meanwhile waits a little longer than that. */
const turnMs = 5;

export class WorkTurns {
  readonly #clock: Pick<ExploreClock, "steadyMs" | "yieldTurn">;
  #startedMs: number;

  constructor(clock: Pick<ExploreClock, "steadyMs" | "yieldTurn">) {
    this.#clock = clock;
    this.#startedMs = clock.steadyMs();
  }

  /** To be awaited after each small piece of work. */
  async breathe(): Promise<void> {
    if (this.#clock.steadyMs() - this.#startedMs < turnMs) return;
    await this.#clock.yieldTurn();
    this.#startedMs = this.#clock.steadyMs();
  }
}

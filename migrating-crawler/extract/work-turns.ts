/**
 * Cuts a long computation into turns, so that sockets are served in between: a 5 MB page takes most of a
 * second, and a probe's answer that arrives meanwhile would be stamped late.
 */
import { setImmediate } from "node:timers/promises";

/** How long a turn may take. */
const turnMs = 8;

export class WorkTurns {
  readonly #quiet: () => Promise<void>;
  #beganMs = performance.now();

  /** `quiet`: what else to wait for between turns. */
  constructor(quiet: () => Promise<void>) {
    this.#quiet = quiet;
  }

  /** Null while the turn lasts; else to be awaited. */
  next(): Promise<void> | null {
    return performance.now() - this.#beganMs < turnMs ? null : this.#yield();
  }

  async #yield(): Promise<void> {
    await setImmediate();
    await this.#quiet();
    this.#beganMs = performance.now();
  }
}

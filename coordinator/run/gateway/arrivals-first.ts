/**
 * While more crawlers arrive than are let in at once, those that are there wait with their results and their requests for
 * work: who takes both processors for them keeps thousands from coming in, whose work then waits for longer. Not for
 * ever: a fleet that comes and goes for an hour holds the others' work up for a third of the time.
 */
import { setTimeout as delay } from "node:timers/promises";

/** Held up in one go, after long quiet. A crawler asks again after 60 s without an answer. */
const mostHeldMs = 45_000;
/** Of the time in which work goes on, what may be held up later. */
const regained = 0.5;
/** Once all is used up, so much is regained before anything is held up again. */
const leastHeldMs = 10_000;
const lookMs = 200;

/** Turns of the loop in a row, each of which had a connection to accept. */
const pressingTurns = 16;
/** A crawler waits for its welcome for 30 s. */
const lastingMs = 2000;

/**
 * Whether connections wait to be accepted. How many the system does not tell, and Node accepts one a turn of the loop: where
 * turn after turn has one, more are waiting, and whatever makes turns long makes them wait.
 */
export class AcceptPressure {
  #turns = 0;
  #hasAccepted = false;
  #isWatching = false;
  #sinceMs = 0;

  get isPressing(): boolean {
    return this.#turns >= pressingTurns;
  }

  /** For so long that those who wait may give up before they are accepted. */
  get isLasting(): boolean {
    return this.isPressing && performance.now() - this.#sinceMs >= lastingMs;
  }

  accepted(): void {
    this.#hasAccepted = true;
    if (this.#isWatching) return;
    this.#isWatching = true;
    setImmediate(() => this.#endTurn());
  }

  #endTurn(): void {
    if (this.#turns === 0) this.#sinceMs = performance.now();
    this.#turns = this.#hasAccepted ? this.#turns + 1 : 0;
    this.#isWatching = this.#hasAccepted;
    this.#hasAccepted = false;
    if (this.#isWatching) setImmediate(() => this.#endTurn());
  }
}

/** Batches of results that wait to be taken in: each slice that is handed out makes more of them. */
const mostResultsWaiting = 32;
/** A request for work waits no longer for others' results. */
const mostBehindMs = 10_000;

/** Requests for work wait while results do: what was fetched is worth more than what is to be fetched. `waiting`: batches. */
export async function afterResults(
  waiting: () => number,
  pause: (ms: number) => Promise<unknown> = delay,
): Promise<void> {
  for (let waitedMs = 0; waitedMs < mostBehindMs && waiting() > mostResultsWaiting; waitedMs += lookMs)
    await pause(lookMs);
}

export class ArrivalsFirst {
  readonly #isCrowded: () => boolean;
  readonly #nowMs: () => number;
  #leftMs = mostHeldMs;
  #lookedAtMs: number;
  #isHolding = false;

  /** `nowMs`: monotonic. */
  constructor(isCrowded: () => boolean, nowMs: () => number) {
    this.#isCrowded = isCrowded;
    this.#nowMs = nowMs;
    this.#lookedAtMs = nowMs();
  }

  /** Whether work is to wait now; what it has waited since the last look is used up. */
  holds(): boolean {
    const nowMs = this.#nowMs();
    const passedMs = nowMs - this.#lookedAtMs;
    this.#lookedAtMs = nowMs;
    const changeMs = this.#isHolding ? -passedMs : regained * passedMs;
    this.#leftMs = Math.max(0, Math.min(mostHeldMs, this.#leftMs + changeMs));
    this.#isHolding = this.#leftMs > (this.#isHolding ? 0 : leastHeldMs) && this.#isCrowded();
    return this.#isHolding;
  }

  async turn(): Promise<void> {
    while (this.holds()) await delay(lookMs);
  }
}

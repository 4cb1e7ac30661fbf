/**
 * While more crawlers arrive than can be admitted at once, connected ones wait with results and requests for work. Serving them
 * would take both processors, and thousands would stay out, whose work waits longer. The delay is bounded: with an hour of
 * reconnects, others wait a third of the time.
 */
import { setTimeout as delay } from "node:timers/promises";

/** The longest continuous hold after a long quiet time. A crawler asks again after 60 s without an answer. */
const mostHeldMs = 45_000;
/** The share of working time that becomes available for later holds. */
const regained = 0.5;
const leastHeldMs = 10_000;
const lookMs = 200;

/** Consecutive turns of the event loop that each had a connection to accept. */
const pressingTurns = 16;
/** A crawler waits 30 s for its welcome. */
const lastingMs = 2000;

/**
 * Detects whether connections wait to be accepted. The system does not report their number, and Node accepts one per turn of
 * the event loop, so a connection in turn after turn means that more are waiting.
 */
export class AcceptPressure {
  #turns = 0;
  #hasAccepted = false;
  #isWatching = false;
  #sinceMs = 0;

  get isPressing(): boolean {
    return this.#turns >= pressingTurns;
  }

  /** True when it lasts so long that waiting crawlers may give up. */
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

/** Batches of results waiting to be stored; each slice that is handed out creates more. */
const mostResultsWaiting = 32;
/** The longest that a request for work waits for results. */
const mostBehindMs = 10_000;

/**
 * Delays requests for work while results wait, because fetched pages are worth more than pages to fetch. `waiting` counts
 * batches.
 */
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

  /** `nowMs` is monotonic. */
  constructor(isCrowded: () => boolean, nowMs: () => number) {
    this.#isCrowded = isCrowded;
    this.#nowMs = nowMs;
    this.#lookedAtMs = nowMs();
  }

  /** Returns whether work must wait now, and deducts the time waited since the last call. */
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

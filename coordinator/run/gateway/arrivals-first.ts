/**
 * While more crawlers arrive than can be admitted at once, connected crawlers wait with their results and requests
 * for work. Serving them would take both processors and keep thousands of others out for longer. The delay is
 * bounded: in an hour of reconnects, connected crawlers wait a third of the time.
 */
import { setTimeout as delay } from "node:timers/promises";

/** Maximum uninterrupted hold after a long quiet time. Without an answer, a crawler asks again after 60 s. */
const mostHeldMs = 45_000;
/** Which share of the time without a hold becomes available for later holds. */
const regained = 0.5;
const leastHeldMs = 10_000;
const lookMs = 200;

/** This many consecutive turns of the event loop with a connection to accept mean that connections are waiting. */
const pressingTurns = 16;
/** Pressure of this duration is lasting. A crawler waits 30 s for its welcome. */
const lastingMs = 2000;

/**
 * Detects whether connections wait to be accepted. The operating system does not report how many do. Since Node
 * accepts one per turn of the event loop, a connection in every turn means that more are waiting.
 */
export class AcceptPressure {
  #turns = 0;
  #hasAccepted = false;
  #isWatching = false;
  #sinceMs = 0;

  get isPressing(): boolean {
    return this.#turns >= pressingTurns;
  }

  /** Whether the pressure lasts so long that waiting crawlers may give up. */
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

/** Requests for work wait while more batches of results than this wait to be stored. Each slice handed out creates more. */
const mostResultsWaiting = 32;
/** Maximum time for which a request for work waits for results. */
const mostBehindMs = 10_000;

/**
 * Delays requests for work while many results wait to be stored, because fetched pages are worth more than pages to
 * fetch. `waiting` returns the number of batches.
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

  /** `nowMs` reads a monotonic clock. */
  constructor(isCrowded: () => boolean, nowMs: () => number) {
    this.#isCrowded = isCrowded;
    this.#nowMs = nowMs;
    this.#lookedAtMs = nowMs();
  }

  /** Returns whether work must wait now. Deducts the time since the last call if it was held. */
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

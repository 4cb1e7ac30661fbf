/**
 * How late this process is: whatever waits for its turn (a timer, a message of a crawler, a page) waits so much longer.
 * Told of the minute under way and the one before, so that a figure neither ends with its minute nor stays for ever.
 */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";

export interface EventLoopDelay {
  /** 99 of 100 turns were no later. */
  readonly p99Ms: number;
  /** The latest of them: so long nothing was done at all. */
  readonly mostMs: number;
}

const resolutionMs = 50;
const minuteMs = 60_000;
/** Fewer turns than in some ten seconds say nothing of one in a hundred. */
const leastTurns = 200;

const none: EventLoopDelay = { p99Ms: 0, mostMs: 0 };

export class EventLoopWatch {
  readonly #turns: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs });
  readonly #timer: NodeJS.Timeout;
  #before: EventLoopDelay = none;

  constructor() {
    this.#turns.enable();
    this.#timer = setInterval(() => this.#next(), minuteMs).unref();
  }

  get delay(): EventLoopDelay {
    const now = this.#now();
    return {
      p99Ms: Math.max(now.p99Ms, this.#before.p99Ms),
      mostMs: Math.max(now.mostMs, this.#before.mostMs),
    };
  }

  close(): void {
    clearInterval(this.#timer);
    this.#turns.disable();
  }

  #next(): void {
    this.#before = this.#now();
    this.#turns.reset();
  }

  /** Nanoseconds between turns, in which the wait for the next is counted as well. */
  #now(): EventLoopDelay {
    if (this.#turns.count === 0) return none;
    const lateMs = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - resolutionMs);
    return {
      p99Ms: this.#turns.count < leastTurns ? 0 : lateMs(this.#turns.percentile(99)),
      mostMs: lateMs(this.#turns.max),
    };
  }
}

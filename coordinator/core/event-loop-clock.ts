/**
 * The delay of this process's event loop, which delays every timer, message and page. Figures cover the current and the
 * previous minute, so that they neither vanish at the turn of a minute nor persist.
 */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";

export interface EventLoopDelay {
  /** The 99th percentile of a turn's delay. */
  readonly p99Ms: number;
  /** The longest delay, during which nothing ran. */
  readonly mostMs: number;
}

const resolutionMs = 50;
const minuteMs = 60_000;
/** With fewer turns (about ten seconds) a 99th percentile is meaningless. */
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

  /** The histogram holds nanoseconds between turns, including the sampling interval. */
  #now(): EventLoopDelay {
    if (this.#turns.count === 0) return none;
    const lateMs = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - resolutionMs);
    return {
      p99Ms: this.#turns.count < leastTurns ? 0 : lateMs(this.#turns.percentile(99)),
      mostMs: lateMs(this.#turns.max),
    };
  }
}

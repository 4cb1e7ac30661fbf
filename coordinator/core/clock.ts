/** Time for code that waits: a monotonic clock and alarms. Tests use a manual one. */

import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { timerMs } from "./timer-ms.ts";

export interface AlarmClock {
  nowMs(): number;
  /** Calls back once, no earlier than after `delayMs`. Returns a function that cancels it. */
  wake(delayMs: number, callback: () => void): () => void;
}

export const systemClock: AlarmClock = {
  nowMs: () => performance.now(),
  wake: (delayMs, callback) => {
    // Node's timers may fire a fraction of a millisecond early.
    const timer = setTimeout(callback, timerMs(delayMs + 1));
    return () => clearTimeout(timer);
  },
};

/** Limits how many starts any sliding window of one second contains. */

const windowMs = 1000;

export class StartWindow {
  readonly #mostNow: () => number;
  #most: number;
  /** The times of the last starts, in a ring that grows only as it fills. */
  #timesMs: number[] = [];
  #next = 0;
  #lastMs = Number.NEGATIVE_INFINITY;

  /** `mostPerSecond` is a function because the limit may change. */
  constructor(mostPerSecond: () => number) {
    this.#mostNow = mostPerSecond;
    this.#most = mostPerSecond();
  }

  /** Returns how long the next start must wait; 0 means that it may start now. */
  waitMs(nowMs: number): number {
    this.#fit();
    if (this.#timesMs.length < this.#most) return 0;
    return Math.max(0, this.#timesMs[this.#next]! + windowMs - nowMs);
  }

  note(nowMs: number): void {
    this.#fit();
    this.#timesMs[this.#next] = nowMs;
    this.#next = (this.#next + 1) % this.#most;
    this.#lastMs = nowMs;
  }

  /** Whether nothing started in the last second. */
  isIdle(nowMs: number): boolean {
    return nowMs - this.#lastMs >= windowMs;
  }

  /** Resizes the ring to the current limit and keeps the latest starts. */
  #fit(): void {
    const most = this.#mostNow();
    if (most === this.#most) return;
    const inOrder = [...this.#timesMs.slice(this.#next), ...this.#timesMs.slice(0, this.#next)];
    this.#timesMs = inOrder.slice(-most);
    this.#next = this.#timesMs.length % most;
    this.#most = most;
  }
}

/** Runs asynchronous work one at a time per key, in order of arrival. */
export class KeyedTurns<Key> {
  readonly #last = new Map<Key, Promise<void>>();

  /** Settles as `work` does. The next work of the key runs in either case. */
  take(key: Key, work: () => Promise<void>): Promise<void> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const turn = before.then(work);
    const settled = turn
      .catch(() => {})
      .then(() => {
        if (this.#last.get(key) === settled) this.#last.delete(key);
      });
    this.#last.set(key, settled);
    return turn;
  }

  async allTaken(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}

/** Maximum time for work in one turn of the event loop, however long the rest of the turn took. */
const mostTurnMs = 20;
/** How long work may take relative to the rest of the turn: normally, and when other work has precedence. */
const turnShare = 1;
const precededShare = 0.25;

/**
 * Runs short pieces of work in order. In each turn of the event loop they get at least `leastMs`, or as long as the rest of
 * the turn took. Even thousands of pieces then delay nothing else, and they are not starved where turns are long.
 */
export class LoopTurns {
  readonly #leastMs: number;
  readonly #isPreceded: () => boolean;
  readonly #nowMs: () => number;
  #waiting: (() => void)[] = [];
  #spentMs = 0;
  #budgetMs: number;
  #endedAtMs = 0;
  #isCounting = false;

  /** While `isPreceded` returns true, the work gets only a fifth of the time. `nowMs` is monotonic. */
  constructor(leastMs: number, isPreceded = () => false, nowMs = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#leastMs = leastMs;
    this.#budgetMs = leastMs;
    this.#isPreceded = isPreceded;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Runs the work at once when this turn has time left and nothing is queued. `work` must not throw. */
  take(work: () => void): void {
    const mustWait = this.#waiting.length > 0 || this.#spentMs >= this.#budgetMs || this.#isPreceded();
    if (mustWait) this.#waiting.push(work);
    else this.#do(work);
    if (this.#isCounting) return;
    this.#isCounting = true;
    this.#endedAtMs = this.#nowMs();
    setImmediate(() => this.#next());
  }

  #next(): void {
    const restMs = this.#nowMs() - this.#endedAtMs - this.#spentMs;
    this.#budgetMs = this.#isPreceded()
      ? Math.min(mostTurnMs, precededShare * restMs)
      : Math.min(mostTurnMs, Math.max(this.#leastMs, turnShare * restMs));
    this.#spentMs = 0;
    let done = 0;
    while (done < this.#waiting.length && (done === 0 || this.#spentMs < this.#budgetMs)) {
      this.#do(this.#waiting[done]!);
      done += 1;
    }
    this.#waiting = this.#waiting.slice(done);
    this.#isCounting = this.#spentMs > 0;
    this.#endedAtMs = this.#nowMs() - this.#spentMs;
    if (this.#isCounting) setImmediate(() => this.#next());
  }

  #do(work: () => void): void {
    const startMs = this.#nowMs();
    work();
    this.#spentMs += this.#nowMs() - startMs;
  }
}

export interface EventLoopDelay {
  /** The 99th percentile of a turn's delay. */
  readonly p99Ms: number;
  /** Maximum delay, during which nothing ran. */
  readonly mostMs: number;
}

const resolutionMs = 50;
const minuteMs = 60_000;
/** With fewer turns (about ten seconds), a 99th percentile would be meaningless. */
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

/** Time for what waits: a monotonic clock and alarms. Tests turn one by hand. */
import { timerMs } from "./timer-ms.ts";

export interface AlarmClock {
  nowMs(): number;
  /** Calls back once, not before `delayMs` are over; returns how to call it off. */
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

/** How many starts there were in the last second: no second, wherever it begins, holds more than so many. */

const windowMs = 1000;

export class StartWindow {
  readonly #mostNow: () => number;
  #most: number;
  /** The times of the last `most` starts, in a ring; only as long as it was ever full. */
  #timesMs: number[] = [];
  #next = 0;
  #lastMs = Number.NEGATIVE_INFINITY;

  /** Asked for at each start: it may change. */
  constructor(mostPerSecond: () => number) {
    this.#mostNow = mostPerSecond;
    this.#most = mostPerSecond();
  }

  /** How long until one more may start; 0: now. */
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

  /** Nothing started in the last second. */
  isIdle(nowMs: number): boolean {
    return nowMs - this.#lastMs >= windowMs;
  }

  /** A ring for another number of starts, with the latest of them. */
  #fit(): void {
    const most = this.#mostNow();
    if (most === this.#most) return;
    const inOrder = [...this.#timesMs.slice(this.#next), ...this.#timesMs.slice(0, this.#next)];
    this.#timesMs = inOrder.slice(-most);
    this.#next = this.#timesMs.length % most;
    this.#most = most;
  }
}

/** Pieces of asynchronous work that take turns: one at a time per key, in the order in which they came. */
export class KeyedTurns<Key> {
  readonly #last = new Map<Key, Promise<void>>();

  /** Resolves or rejects with the work; the next turn comes either way. */
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

  /** Resolves when nobody waits any more. */
  async allTaken(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}

/** In one turn, however long the rest of it was. */
const mostTurnMs = 20;
/** Of the time that the rest of a turn takes: to work, and to work that something else precedes. */
const turnShare = 1;
const precededShare = 0.25;

/**
 * Work in short pieces, of which so many ms are done in one turn of the event loop, or as long as the rest of the turn
 * took, in the order in which they came: what comes in thousands keeps nothing else from its turn, and is not kept from its
 * own where turns are long.
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

  /** `isPreceded`: something else comes first; a fifth of the time remains. `nowMs`: monotonic. */
  constructor(leastMs: number, isPreceded = () => false, nowMs = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#leastMs = leastMs;
    this.#budgetMs = leastMs;
    this.#isPreceded = isPreceded;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** At once, where this turn has room and nobody waits. `work` must not throw. */
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

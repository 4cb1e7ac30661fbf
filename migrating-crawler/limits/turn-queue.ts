/**
 * Turns, by key (a host, an address): so many requests at a time, none before the key is ready again, first come
 * first served. Who waits costs one entry in a queue; each key has at most one timer, and a key that nobody waits
 * for has none.
 */

export interface TurnBounds {
  readonly signal: AbortSignal;
  /** The turn is of no use from then on (`Date.now()`). */
  readonly endsAtMs: number;
}

/** Call exactly once, after the key's new readiness has been noted. */
export type EndTurn = () => void;

interface Key {
  running: number;
  /** How each of those who wait begins, first come first. */
  readonly queue: Set<() => void>;
  timer: NodeJS.Timeout | null;
}

export class TurnQueue {
  readonly #keys = new Map<string, Key>();
  readonly #atATime: number;
  readonly #readyAtMs: (key: string) => number;
  readonly #longestMs: number;

  /** `longestMs`: a turn that lasts longer no longer keeps the next one waiting. */
  constructor(settings: {
    readonly atATime: number;
    readonly readyAtMs: (key: string) => number;
    readonly longestMs?: number;
  }) {
    this.#atATime = settings.atATime;
    this.#readyAtMs = settings.readyAtMs;
    this.#longestMs = settings.longestMs ?? Number.POSITIVE_INFINITY;
  }

  /** Resolves when it is our turn; with null when the bounds end the waiting first. */
  take(name: string, bounds: TurnBounds): Promise<EndTurn | null> {
    if (bounds.signal.aborted || Date.now() >= bounds.endsAtMs) return Promise.resolve(null);
    const key = this.#key(name);
    return new Promise((resolve) => {
      const giveUp = () => {
        leave();
        this.#next(name, key);
        resolve(null);
      };
      const begin = () => {
        leave();
        resolve(this.#begin(name, key));
      };
      const late = setTimeout(giveUp, Math.min(longestTimerMs, bounds.endsAtMs - Date.now()));
      const leave = () => {
        clearTimeout(late);
        key.queue.delete(begin);
        bounds.signal.removeEventListener("abort", giveUp);
      };
      bounds.signal.addEventListener("abort", giveUp);
      key.queue.add(begin);
      this.#next(name, key);
    });
  }

  /** The key's readiness has changed. */
  changed(name: string): void {
    const key = this.#keys.get(name);
    if (key) this.#next(name, key);
  }

  #key(name: string): Key {
    const known = this.#keys.get(name);
    if (known) return known;
    const key: Key = { running: 0, queue: new Set(), timer: null };
    this.#keys.set(name, key);
    return key;
  }

  #begin(name: string, key: Key): EndTurn {
    key.running++;
    let holds = true;
    const release = () => {
      if (!holds) return;
      holds = false;
      key.running--;
      this.#next(name, key);
    };
    if (this.#longestMs === Number.POSITIVE_INFINITY) return release;
    const tooLong = setTimeout(release, this.#longestMs);
    return () => {
      clearTimeout(tooLong);
      release();
    };
  }

  /** Begins the turns that may begin, or sees to it that the next one does when the key is ready. */
  #next(name: string, key: Key): void {
    if (key.timer !== null) clearTimeout(key.timer);
    key.timer = null;
    for (;;) {
      const [first] = key.queue;
      if (first === undefined || key.running >= this.#atATime) break;
      const waitMs = this.#readyAtMs(name) - Date.now();
      if (waitMs > 0) {
        key.timer = setTimeout(() => this.#next(name, key), Math.min(longestTimerMs, Math.ceil(waitMs)));
        return;
      }
      first();
    }
    if (key.queue.size === 0 && key.running === 0) this.#keys.delete(name);
  }
}

/** What a timer of Node can wait. */
const longestTimerMs = 2 ** 31 - 1;

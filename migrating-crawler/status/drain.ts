/**
 * Draining by the host's word: nothing new is taken, what is open is finished, all results go to the coordinator, and
 * then the crawler leaves for good, so that others get its subnets. Kept on disk: a crawler that is started anew
 * meanwhile goes on draining. `resume` ends it.
 *
 *   off → (asked) draining → (nothing open, nothing waits) left
 */
import { forgetAsked, keepAsked, readAsked, type SinceAndWhy } from "../limits/pause.ts";

const lookEveryMs = 500;

interface DrainSettings {
  readonly home: string;
  /** Nothing is open and no result waits. */
  readonly isEmpty: () => boolean;
  /** Called once; the crawler then leaves for good. */
  readonly onDrained: () => void;
}

export class Drain {
  readonly #settings: DrainSettings;
  #asked: SinceAndWhy | null;
  #timer: NodeJS.Timeout | null = null;

  constructor(settings: DrainSettings) {
    this.#settings = settings;
    this.#asked = readAsked("drain", settings.home);
    if (this.#asked !== null) this.#watch();
  }

  /** Null when it is not draining. */
  get asked(): SinceAndWhy | null {
    return this.#asked;
  }

  begin(reason: string): void {
    if (this.#asked !== null) return;
    keepAsked("drain", this.#settings.home, reason);
    this.#asked = readAsked("drain", this.#settings.home);
    this.#watch();
  }

  end(): void {
    forgetAsked("drain", this.#settings.home);
    this.#asked = null;
    this.close();
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #watch(): void {
    this.#timer = setInterval(() => {
      if (!this.#settings.isEmpty()) return;
      this.end();
      this.#settings.onDrained();
    }, lookEveryMs).unref();
  }
}

// Makes a drained crawler leave for good by the usual means, SIGUSR2.

/** Signals the supervisor, or else this process. A supervised crawler without its supervisor ends anyway. */
export function askToLeave(isDocked: boolean): void {
  if (!isDocked) process.kill(process.pid, "SIGUSR2");
  else if (process.connected) process.kill(process.ppid, "SIGUSR2");
}

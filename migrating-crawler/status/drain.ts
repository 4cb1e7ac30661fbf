/**
 * Drains at the host's request: the crawler accepts nothing new, finishes what is open, sends all results and then leaves
 * permanently, so that others get its subnets. The state is on disk, so that a restarted crawler continues to drain. `resume`
 * ends it.
 *
 *   off → (asked) draining → (nothing open, nothing waits) left
 */
import { forgetAsked, keepAsked, readAsked, type SinceAndWhy } from "../limits/state-file.ts";

const lookEveryMs = 500;

interface DrainSettings {
  readonly home: string;
  readonly isEmpty: () => boolean;
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

/** Signals the supervisor, or else this process. A supervised crawler that has lost its supervisor ends anyway. */
export function askToLeave(isSupervised: boolean): void {
  if (!isSupervised) process.kill(process.pid, "SIGUSR2");
  else if (process.connected) process.kill(process.ppid, "SIGUSR2");
}

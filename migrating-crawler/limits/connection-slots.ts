/** Limits the number of open connections; when all slots are taken, callers wait, first come first served. */
import { timerMs } from "#core/timer-ms";
import { type LimitUsage, limitUsage } from "./limit-usage.ts";

/** One slot is reserved for the link to the coordinator. */
const forLink = 1;

type EndConnection = () => void;

export class ConnectionSlots {
  #most: number;
  #open = 0;
  readonly #waiting = new Set<() => void>();

  constructor(openConnections: number) {
    this.#most = openConnections;
  }

  /** A lower number closes nothing; connections end by themselves and are not replaced. */
  apply(openConnections: number): void {
    this.#most = openConnections;
    this.#letGo();
  }

  /** When few slots are left, idle connections should be closed. */
  isScarce(): boolean {
    return this.#waiting.size > 0 || this.#open + forLink >= 0.9 * this.#most;
  }

  /** Resolves with null when no slot was free in time. */
  take(withinMs: number): Promise<EndConnection | null> {
    return this.#open + forLink < this.#most ? Promise.resolve(this.#begin()) : this.#wait(withinMs);
  }

  usage(): LimitUsage {
    const used = this.#open + forLink;
    const words = `all ${this.#most} connections are open, and ${this.#waiting.size} more are waited for`;
    const holdingBack = this.#waiting.size > 0 ? words : "";
    return limitUsage("openConnections", holdingBack, { unit: "connections", used, cap: this.#most });
  }

  #begin(): EndConnection {
    this.#open++;
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#open--;
      this.#letGo();
    };
  }

  #letGo(): void {
    for (const begin of this.#waiting) {
      if (this.#open + forLink >= this.#most) return;
      begin();
    }
  }

  #wait(withinMs: number): Promise<EndConnection | null> {
    return new Promise((resolve) => {
      const leave = () => {
        clearTimeout(late);
        this.#waiting.delete(begin);
      };
      const begin = () => {
        leave();
        resolve(this.#begin());
      };
      const late = setTimeout(() => {
        leave();
        resolve(null);
      }, timerMs(withinMs));
      this.#waiting.add(begin);
    });
  }
}

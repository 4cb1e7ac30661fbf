/** Runs the system's `ping` for the crawler, which may start no process: a few at a time, for addresses only. */

import type { CrawlerToDock } from "../core/supervisor-messages.ts";
import { systemEchoes } from "../probe/icmp-echo.ts";

type PingRequest = Extract<CrawlerToDock, { type: "ping" }>;

/** A coordinator asks a crawler for 8 probes at a time. */
const mostAtOnce = 8;

export class PingService {
  readonly #echoes = systemEchoes();
  #mayPing = false;
  #running = 0;

  /** Finds out, on loopback, whether this machine lets us. */
  async start(): Promise<void> {
    this.#mayPing = await this.#echoes.canPing();
  }

  get mayPing(): boolean {
    return this.#mayPing;
  }

  /** The times of the echoes that came back, in ms; none where it is not possible, or too many run already. */
  async ping({ address, tries, deadlineMs }: PingRequest): Promise<number[]> {
    if (!this.#mayPing || this.#running >= mostAtOnce) return [];
    this.#running += 1;
    try {
      return await this.#echoes.timeEchoes({ address, tries, deadlineMs });
    } finally {
      this.#running -= 1;
    }
  }
}

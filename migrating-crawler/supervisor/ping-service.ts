/** Runs the system's `ping` for the crawler, which may start no process: a few at a time, to addresses only. */

import type { CrawlerToDock } from "../core/supervisor-messages.ts";
import { systemEchoes } from "../probe/icmp-echo.ts";

type PingRequest = Extract<CrawlerToDock, { type: "ping" }>;

/** A coordinator asks a crawler for 8 probes at a time. */
const mostAtOnce = 8;

export class PingService {
  readonly #echoes = systemEchoes();
  #mayPing = false;
  #running = 0;

  /** Tests on loopback whether this machine allows it. */
  async start(): Promise<void> {
    this.#mayPing = await this.#echoes.canPing();
  }

  get mayPing(): boolean {
    return this.#mayPing;
  }

  /** Resolves with the round-trip times in ms; empty when impossible or when too many run. */
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

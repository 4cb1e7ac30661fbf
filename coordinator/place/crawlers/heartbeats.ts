/**
 * Collects heartbeats and writes them together once a second, since 10,000 crawlers send hundreds per second. The
 * interval grows with the fleet, up to what still detects a lost crawler in time.
 */
import type { CrawlerId } from "#core/ids";
import type { CrawlerHeartbeat } from "#protocol/messages";
import type { CrawlerStore } from "./crawler-store.ts";

/** Interval per crawler of the fleet: 10,000 crawlers send 333 heartbeats a second. */
const msPerCrawler = 3;
/** Three missed beats and a quarter stay below the two minutes after which a crawler counts as gone. */
const mostMs = 30_000;
const writtenTogether = 1000;

/** The heartbeat interval for a fleet of this size; `leastMs` is the operator's minimum. */
export function heartbeatMsFor(crawlers: number, leastMs: number): number {
  return Math.max(leastMs, Math.min(mostMs, crawlers * msPerCrawler));
}

interface Heard {
  readonly crawlerId: CrawlerId;
  readonly heartbeat: CrawlerHeartbeat;
  readonly at: Date;
}

export class Heartbeats {
  readonly #crawlers: Pick<CrawlerStore, "heartbeats">;
  #heard = new Map<CrawlerId, Heard>();

  constructor(crawlers: Pick<CrawlerStore, "heartbeats">) {
    this.#crawlers = crawlers;
  }

  note(crawlerId: CrawlerId, heartbeat: CrawlerHeartbeat, at: Date): void {
    this.#heard.set(crawlerId, { crawlerId, heartbeat, at });
  }

  /** Heartbeats that cannot be written are dropped; the next ones carry the same information. */
  async write(): Promise<void> {
    const heard = [...this.#heard.values()].sort((a, b) => a.crawlerId - b.crawlerId);
    this.#heard = new Map();
    for (let at = 0; at < heard.length; at += writtenTogether) {
      await this.#crawlers.heartbeats(heard.slice(at, at + writtenTogether));
    }
  }
}

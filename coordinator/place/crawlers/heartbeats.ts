/**
 * What crawlers say of themselves every few seconds: kept here and written together once a second, since 10,000 crawlers
 * say it hundreds of times a second. How often they are to say it grows with the fleet, up to what still tells in time
 * that one has vanished.
 */
import type { CrawlerId } from "#core/ids";
import type { CrawlerHeartbeat } from "#protocol/messages";
import type { CrawlerStore } from "./crawler-store.ts";

/** Of each crawler of the fleet: 10,000 of them say it 333 times a second. */
const msPerCrawler = 3;
/** Three that are missed, and a quarter, are less than the two minutes after which a crawler counts as gone. */
const mostMs = 30_000;
const writtenTogether = 1000;

/** How often each crawler of a fleet of this size is to say that it is there; `leastMs`: as the operator set it. */
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

  /** What cannot be written is lost: the next one says as much. */
  async write(): Promise<void> {
    const heard = [...this.#heard.values()].sort((a, b) => a.crawlerId - b.crawlerId);
    this.#heard = new Map();
    for (let at = 0; at < heard.length; at += writtenTogether) {
      await this.#crawlers.heartbeats(heard.slice(at, at + writtenTogether));
    }
  }
}

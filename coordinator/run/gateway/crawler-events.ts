/** The crawlers' events that rooms of a coordinator listen to. */
import type { CrawlerId } from "#core/ids";
import type { CrawlerHello, CrawlerMessage } from "#protocol/messages";
import type { ResultBatch } from "../../place/crawlers/result-batch.ts";

export type ReleaseReport = Extract<CrawlerMessage, { type: "crawler:release-report" }>;

/** Crawlers' arrivals, departures and reports. Each room is called in its order. */
export interface CrawlerEvents {
  /** The crawler has sent its hello and is not welcomed yet. */
  onHello?(crawlerId: CrawlerId, hello: CrawlerHello): void;
  onArrived?(crawlerId: CrawlerId): void;
  /** It was welcomed and can receive messages. */
  onWelcome?(crawlerId: CrawlerId): void;
  /** Its session has ended and this is recorded. `forGood`: it said that it will not return. */
  onLeft?(crawlerId: CrawlerId, forGood: boolean): void;
  onPeerReport?(crawlerId: CrawlerId): void;
  /** Its results are stored; the acknowledgement waits for this. */
  onFetched?(batch: ResultBatch): unknown;
  /** Results contained URLs of other hosts, which are in the outbox. */
  onPosted?(): void;
  onReleaseReport?(crawlerId: CrawlerId, report: ReleaseReport): Promise<void>;
}

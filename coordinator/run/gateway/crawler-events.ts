/** What of the crawlers concerns the rooms of a coordinator. */
import type { CrawlerId } from "#core/ids";
import type { CrawlerHello, CrawlerMessage } from "#protocol/messages";
import type { ResultBatch } from "../../place/crawlers/result-batch.ts";

export type ReleaseReport = Extract<CrawlerMessage, { type: "crawler:release-report" }>;

/** Crawlers' comings, goings and reports, as far as they concern a room. The rooms hear of each in their order. */
export interface CrawlerEvents {
  /** What a crawler says of itself when it comes; it is not welcomed yet. */
  onHello?(crawlerId: CrawlerId, hello: CrawlerHello): void;
  /** It was let in. */
  onArrived?(crawlerId: CrawlerId): void;
  /** It was welcomed, and may be sent messages. */
  onWelcome?(crawlerId: CrawlerId): void;
  /** Its session has ended, and that is recorded. `forGood`: it said that it will not come back. */
  onLeft?(crawlerId: CrawlerId, forGood: boolean): void;
  /** It has measured other crawlers. */
  onPeerReport?(crawlerId: CrawlerId): void;
  /** Its results are stored; waited for before they are acknowledged. */
  onFetched?(batch: ResultBatch): unknown;
  /** Results named or linked to URLs of other hosts, which wait in the outbox. */
  onPosted?(): void;
  /** What became of a release at a crawler. */
  onReleaseReport?(crawlerId: CrawlerId, report: ReleaseReport): Promise<void>;
}

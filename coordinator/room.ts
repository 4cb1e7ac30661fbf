/** What a room gives to the coordinator that runs it. Nothing of it is listed a second time: main goes through the rooms. */
import type { CrawlerId } from "#core/ids";
import type { CrawlerHello } from "#protocol/messages";
import type { ReleaseReport } from "./releases/move-stage.ts";
import type { ResultBatch } from "./results/take-results.ts";

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

/** From the coordinator's start to its end, in this order; whatever a room leaves out, it has no part in. */
export interface Room extends CrawlerEvents {
  /** Before anybody is answered. A coordinator does not start where it fails. */
  begin?(): Promise<void>;
  /** Follows what others change in the database, and does its jobs by the clock, from now on. */
  start?(): void | Promise<void>;
  /** Nobody is waited for any longer, and what is under way is given up. */
  close?(): void;
  /** Resolves when nothing of it runs; also where it was never started. */
  stop?(): Promise<void>;
}

/**
 * The basis of reports: the crawl in pieces. A piece is a subnet with hosts, or those of its hosts that another crawler has,
 * with what is known of it, its daily fetches and its distance.
 */
import type { CrawlerId, HolderId, SubnetId } from "#core/ids";
import type { CrawlerRecord } from "../../place/crawlers/crawler.ts";

export interface CrawlPiece {
  readonly subnetId: SubnetId;
  /** Null: nobody. */
  readonly crawlerId: CrawlerId | null;
  /** From its crawler; null when not measured or meaningless because the range answers from many places. */
  readonly rttMs: number | null;
  readonly isAnycast: boolean;
  /** It was assigned elsewhere because the nearest crawler has no capacity. */
  readonly isDisplaced: boolean;
  /** The time of its last probe round. */
  readonly decidedAt: Date | null;
  readonly country: string | null;
  readonly holderId: HolderId | null;
  readonly hosts: number;
  readonly pages: number;
  readonly pagesPerDay: number;
}

export interface ReportedCrawler extends Pick<CrawlerRecord, "crawlerId" | "name" | "country" | "state"> {
  /** Neither blocked nor untrusted, so it may get subnets. */
  readonly isTrusted: boolean;
}

/** Connected, trusted and staying. */
export const mayTake = ({ state, isTrusted }: ReportedCrawler): boolean => state === "online" && isTrusted;

/** The cost of distance: pages × ms. */
export const costOf = ({ pagesPerDay, rttMs }: Pick<CrawlPiece, "pagesPerDay" | "rttMs">): number =>
  pagesPerDay * (rttMs ?? 0);

/** The weighted median; null without weights. */
export function weightedMedian(
  values: readonly { readonly value: number; readonly weight: number }[],
): number | null {
  const sorted = values.filter(({ weight }) => weight > 0).sort((a, b) => a.value - b.value);
  const half = sorted.reduce((sum, { weight }) => sum + weight, 0) / 2;
  let upTo = 0;
  for (const { value, weight } of sorted) {
    upTo += weight;
    if (upTo >= half) return value;
  }
  return null;
}

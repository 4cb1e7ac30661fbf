/**
 * What reports are made from: the crawl in pieces. A piece is a subnet with hosts, or those of its hosts that another crawler
 * has than the rest; with what is known of it, what it is to be fetched a day, and from how far away.
 */
import type { CrawlerId, HolderId, SubnetId } from "#core/ids";

export interface CrawlPiece {
  readonly subnetId: SubnetId;
  /** Null: nobody. */
  readonly crawlerId: CrawlerId | null;
  /** From its crawler; null: not measured, or it says nothing, since the range answers from many places. */
  readonly rttMs: number | null;
  readonly isAnycast: boolean;
  /** It was given away for want of room where it is nearest. */
  readonly isDisplaced: boolean;
  /** Since when it is with its crawler: its last probe round. */
  readonly decidedAt: Date | null;
  readonly country: string | null;
  readonly holderId: HolderId | null;
  readonly hosts: number;
  readonly pages: number;
  readonly pagesPerDay: number;
}

export interface ReportedCrawler {
  readonly crawlerId: CrawlerId;
  readonly name: string;
  readonly country: string | null;
  readonly state: "online" | "offline" | "draining";
  /** May be given subnets: neither revoked nor untrusted. */
  readonly isTrusted: boolean;
}

/** Connected, trusted and staying. */
export const mayTake = ({ state, isTrusted }: ReportedCrawler): boolean => state === "online" && isTrusted;

/** What a page fetched from far away costs: most first. */
export const costOf = ({ pagesPerDay, rttMs }: Pick<CrawlPiece, "pagesPerDay" | "rttMs">): number =>
  pagesPerDay * (rttMs ?? 0);

/** The value below which half of the weight lies; null without any. */
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

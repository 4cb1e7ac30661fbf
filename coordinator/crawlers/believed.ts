/** Whether new work may be given to a crawler, by what is believed of it. */
import type { CrawlerRecord } from "./crawler.ts";

/** Neither its results nor its probe reports are doubted; one that is not registered any more is not believed. */
export function isBelieved(crawler: CrawlerRecord | null): boolean {
  if (crawler === null) return false;
  return crawler.distrustedSince === undefined && crawler.probesDoubtedSince === undefined;
}

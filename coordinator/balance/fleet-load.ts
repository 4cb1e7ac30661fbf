/** What the fleet has to fetch a day against what its partners allow: in pages, at the mean size of a page. */

import type { CrawlerId, SubnetId } from "#core/ids";
import type { CrawlerRecord } from "../crawlers/crawler.ts";
import type { CrawlerLoad, SubnetLoad } from "../delegation/delegation.ts";
import { defaultMeanPageBytes, effectiveCapacity } from "./capacity.ts";

export interface FleetLoad {
  /** Crawlers that may take subnets. */
  readonly crawlers: readonly CrawlerRecord[];
  readonly loads: readonly CrawlerLoad[];
  /** Of a subnet that is to be placed; 0 where nothing is known. */
  readonly pagesOf: (subnetId: SubnetId) => number;
}

export function fleetLoad(
  crawlers: readonly CrawlerRecord[],
  loads: readonly CrawlerLoad[],
  subnets: readonly SubnetLoad[],
): FleetLoad {
  const pages = new Map(subnets.map(({ subnetId, pagesPerDay }) => [subnetId, pagesPerDay]));
  return { crawlers, loads, pagesOf: (subnetId) => pages.get(subnetId) ?? 0 };
}

/** Bytes of a page, over everything that the fleet fetches. */
export function meanPageBytes(loads: readonly CrawlerLoad[]): number {
  const pages = loads.reduce((sum, { pagesPerDay }) => sum + pagesPerDay, 0);
  const bytes = loads.reduce((sum, { bytesPerDay }) => sum + bytesPerDay, 0);
  return pages > 0 && bytes > 0 ? bytes / pages : defaultMeanPageBytes;
}

/**
 * Pages a day that each crawler may still take; none for one that is full. Where all together may not take
 * what all have, everyone's capacity grows by the same factor.
 */
export function roomsOf({ crawlers, loads }: FleetLoad): Map<CrawlerId, number> {
  const pageBytes = meanPageBytes(loads);
  const load = new Map(loads.map(({ crawlerId, pagesPerDay }) => [crawlerId, pagesPerDay]));
  const total = loads.reduce((sum, { pagesPerDay }) => sum + pagesPerDay, 0);
  const capacities = crawlers.map((crawler) => effectiveCapacity(crawler, pageBytes));
  const carried = capacities.reduce((sum, capacity) => sum + capacity, 0);
  const factor = carried > 0 && total > carried ? total / carried : 1;
  return new Map(
    crawlers.map(({ crawlerId }, index) => [
      crawlerId,
      Math.max(0, (capacities[index] ?? 0) * factor - (load.get(crawlerId) ?? 0)),
    ]),
  );
}

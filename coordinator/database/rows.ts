/** How database values become the texts and numbers of a report: ISO dates, milliseconds, names. */
import type { CrawlerName } from "../who/who-answer.ts";

/** pg gives ±Infinity for the timestamps of that name; a report has null there. */
export function isoOrNull(value: Date | number | null): string | null {
  return value instanceof Date ? value.toISOString() : null;
}

export function iso(value: Date): string {
  return value.toISOString();
}

/** `real` columns arrive with their binary noise: 12.300000190734863. */
export function roundMs(value: number | null): number | null {
  return value === null ? null : Math.round(value * 100) / 100;
}

/** The columns that a joined crawler contributes, as `json_build_object` makes them. */
export interface CrawlerJson {
  readonly crawlerId: number;
  readonly name: string;
  readonly state: CrawlerName["state"];
}

/** SQL: the joined crawler of that alias as one value, null when the outer join found none. */
export const crawlerJson = (alias: string): string =>
  `case when ${alias}.crawler_id is null then null else
     json_build_object('crawlerId', ${alias}.crawler_id, 'name', ${alias}.name, 'state', ${alias}.state) end`;

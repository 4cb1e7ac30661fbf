/** How database values become the texts and numbers of a report: ISO dates, canonical ranges, names. */
import { parseAddress } from "#core/ip/address";
import { formatRange, rangeBetween } from "#core/ip/range";
import type { CrawlerName } from "../../flows/who-answer.ts";

/** pg gives ±Infinity for the timestamps of that name; a report has null there. */
export function isoOrNull(value: Date | number | null): string | null {
  return value instanceof Date ? value.toISOString() : null;
}

export function iso(value: Date): string {
  return value.toISOString();
}

/** Two addresses in Postgres' spelling as one range: `192.0.2.0/24` or `a - b`. */
export function rangeText(first: string, last: string): string {
  const from = parseAddress(first);
  const to = parseAddress(last);
  const range = from && to ? rangeBetween(from, to) : null;
  return range ? formatRange(range) : `${first} - ${last}`;
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

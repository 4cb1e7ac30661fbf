/** A crawler as reports name it, and the SQL that makes it. */
import type { CrawlerName } from "./crawler.ts";

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

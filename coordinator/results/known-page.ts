/** What the frontier knows of a URL's changes, for its next result: one look-up by primary key in each table. */

import { plannedChannel, statedChanges } from "../recrawl/url-sql.ts";
import type { KnownPage } from "../recrawl/visit-findings.ts";

/** Of the tables that `knownPageJoins` joins to `frontier_url u`. */
export const knownPageColumns = `u.compared_visits, u.content_changes, u.changed_seconds, u.unchanged_seconds,
       u.last_fetched_at, u.next_fetch_at, encode(u.digest, 'hex') as digest_hex, u.back_links, k.page_rank,
       u.stated_frequency, u.stated_modified_day,
       p.changes_per_day as channel_changes_per_day, p.recrawl_group, p.multiplier`;

export const knownPageJoins = `left join url_rank k on k.host_hash = u.host_hash and k.url_hash = u.url_hash
     left join recrawl_host p on p.host_hash = u.host_hash and p.channel_id = ${plannedChannel("u")}`;

export interface KnownPageRow {
  readonly compared_visits: number;
  readonly content_changes: number;
  readonly changed_seconds: number;
  readonly unchanged_seconds: number;
  readonly last_fetched_at: Date | null;
  readonly next_fetch_at: Date;
  readonly digest_hex: string | null;
  readonly back_links: number;
  readonly page_rank: number | null;
  readonly stated_frequency: number | null;
  readonly stated_modified_day: number | null;
  readonly channel_changes_per_day: number | null;
  readonly recrawl_group: number | null;
  readonly multiplier: number | null;
}

export function knownPage(row: KnownPageRow): KnownPage {
  return {
    sums: {
      comparedVisits: row.compared_visits,
      contentChanges: row.content_changes,
      changedSeconds: row.changed_seconds,
      unchangedSeconds: row.unchanged_seconds,
    },
    lastFetchedAt: row.last_fetched_at,
    plannedAt: row.next_fetch_at,
    digest: row.digest_hex,
    backLinks: row.back_links,
    pageRank: row.page_rank,
    stated: statedChanges(row.stated_frequency, row.stated_modified_day),
    channelChangesPerDay: row.channel_changes_per_day,
    channelGroup: row.recrawl_group,
    hostMultiplier: row.multiplier,
  };
}

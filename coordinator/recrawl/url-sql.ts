/**
 * The row of table recrawl_host that holds for a URL, in SQL: a channel's own once a plan has looked at it, until then, and
 * for what lies in no channel, that of the rest of its host (0).
 */

import type { PoolClient } from "pg";
import { changeFrequencyWords } from "#protocol/result";
import { channelOfUrl } from "../channels/channel-of-url.ts";
import { columnsOf } from "../database/transaction.ts";
import type { AdmittedUrl } from "../frontier/frontier.ts";
import type { StatedChanges } from "./change-rate.ts";

/** `u`: a row with `host_hash` and `url`. Hosts without channels cost one look-up. */
export const plannedChannel = (u: string) => `case
  when exists (select from channel where host_hash = ${u}.host_hash) then coalesce((
    select own.channel_id
    from recrawl_host own
    where own.host_hash = ${u}.host_hash and own.channel_id = ${channelOfUrl(u)}
  ), 0)
  else 0
end`;

// What sitemaps and feeds state of pages' changes, kept with the URLs in four bytes: a word and a day. A list states it of
// its own host alone (results/named-urls).

const firstDayMs = Date.UTC(2000, 0, 1);
const dayMs = 86_400_000;

/** Postgres' smallint. */
const lastDay = 32_767;

/** The latest word counts; a URL of which nothing is stated any more keeps what was. The hosts are locked. */
export async function noteStated(client: PoolClient, urls: readonly AdmittedUrl[]): Promise<void> {
  const stated = urls.flatMap(({ key, changeFrequency, modifiedAt }) => {
    if (changeFrequency === undefined && modifiedAt === undefined) return [];
    const frequency = changeFrequency === undefined ? null : changeFrequencyWords.indexOf(changeFrequency);
    return [{ ...key, frequency, day: modifiedAt === undefined ? null : dayOf(modifiedAt) }];
  });
  if (stated.length === 0) return;
  await client.query(
    `update frontier_url u
     set stated_frequency = coalesce(given.frequency, u.stated_frequency),
         stated_modified_day = coalesce(given.modified_day, u.stated_modified_day)
     from unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::smallint[])
       as given (host_hash, url_hash, frequency, modified_day)
     where u.host_hash = given.host_hash
       and u.url_hash = given.url_hash
       and (coalesce(given.frequency, u.stated_frequency), coalesce(given.modified_day, u.stated_modified_day))
         is distinct from (u.stated_frequency, u.stated_modified_day)`,
    columnsOf(stated, ["hostHash", "urlHash", "frequency", "day"]),
  );
}

export function statedChanges(frequency: number | null, day: number | null): StatedChanges {
  const word = frequency === null ? undefined : changeFrequencyWords[frequency];
  return {
    ...(word === undefined ? {} : { changeFrequency: word }),
    ...(day === null ? {} : { modifiedAt: new Date(firstDayMs + day * dayMs) }),
  };
}

function dayOf(moment: Date): number {
  return Math.min(lastDay, Math.max(0, Math.floor((moment.getTime() - firstDayMs) / dayMs)));
}

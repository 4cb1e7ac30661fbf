/** Table crawler_absence: when a crawler was away, and why. */
import type { Pool, PoolClient } from "pg";
import type { CrawlerId } from "#core/ids";
import type { Absence } from "../flows/fleet-ports.ts";
import { clean } from "./database-text.ts";

/** Of one crawler; older ones are forgotten. */
export const mostAbsences = 100;

/** A process that ended longer before the absence than this was another one. */
const endingMinutes = 10;

/** In the transaction of an arrival, before the crawler's row says that it is there. */
export async function noteAbsence(
  client: PoolClient,
  arrival: {
    readonly crawlerId: CrawlerId;
    readonly lastEnd: { readonly at: string; readonly reason: string } | null;
    readonly now: Date;
  },
): Promise<void> {
  const { crawlerId, lastEnd, now } = arrival;
  const { rowCount } = await client.query(
    `insert into crawler_absence (crawler_id, away_since, back_at, reason, last_words)
     select crawler_id, last_seen_at, greatest($2::timestamptz, last_seen_at), offline_reason,
       case when $3::timestamptz > last_seen_at - interval '${endingMinutes} minutes' then $4 end
     from crawler
     where crawler_id = $1 and offline_reason is not null and last_seen_at is not null`,
    [crawlerId, now, lastEnd?.at ?? null, lastEnd === null ? null : clean(lastEnd.reason)],
  );
  if (rowCount === 0) return;
  await client.query(
    `delete from crawler_absence
     where crawler_id = $1 and absence_id <= (
       select absence_id from crawler_absence where crawler_id = $1
       order by absence_id desc offset ${mostAbsences} limit 1
     )`,
    [crawlerId],
  );
}

/** The latest first; empty when there is none, or no crawler of that name. */
export async function absencesOf(pool: Pool, name: string): Promise<Absence[]> {
  const { rows } = await pool.query<Absence>(
    `select a.away_since as since, a.back_at as until, a.reason, a.last_words as "lastWords"
     from crawler_absence a
     join crawler c using (crawler_id)
     where c.name = $1
     order by a.absence_id desc`,
    [name],
  );
  return rows;
}

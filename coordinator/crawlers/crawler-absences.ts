/** Table crawler_absence: when a crawler was away, and why. */
import type { Pool } from "pg";
import type { Absence } from "../fleet/fleet-ports.ts";

/** Of one crawler; older ones are forgotten. */
export const mostAbsences = 100;

/** A process that ended longer before the absence than this was another one. */
const endingMinutes = 10;

const wasAway = "c.offline_reason is not null and c.last_seen_at is not null";

/** Part of the statement of arrivals, `given`: SQL that notes the absence before each. */
export const notedAbsences = `
  insert into crawler_absence (crawler_id, away_since, back_at, reason, last_words)
  select crawler_id, c.last_seen_at, greatest(given.at, c.last_seen_at), c.offline_reason,
    case when given.end_at > c.last_seen_at - interval '${endingMinutes} minutes' then given.end_words end
  from crawler c
  join given using (crawler_id)
  where ${wasAway}`;

/** Another part of it: what is too much with those that are noted. */
export const forgottenAbsences = `
  delete from crawler_absence a
  using given
  join crawler c using (crawler_id)
  where a.crawler_id = given.crawler_id and ${wasAway}
    and a.absence_id <= (
      select absence_id from crawler_absence
      where crawler_id = given.crawler_id
      order by absence_id desc
      offset ${mostAbsences - 1}
      limit 1
    )`;

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

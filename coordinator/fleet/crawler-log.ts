/**
 * Everything that was noted of one crawler as one list by time: connections and absences, incidents, moves, keys,
 * invitations, releases, trust, and what people changed (table audit_entry).
 */
import type { Pool } from "pg";
import type { CrawlerLogKind, CrawlerLogPage } from "./fleet-ports.ts";

export const logPageSize = 50;

interface LogRow {
  at: Date;
  kind: CrawlerLogKind;
  words: string;
  by_whom: string | null;
}

/** Each selects at, kind, words, by_whom of crawler `c`, whose absences, keys … are few. */
const sources = [
  `select last_seen_at, 'away', offline_reason, null from c
   where offline_reason is not null and last_seen_at is not null`,
  `select connected_at, 'connected', 'connected', null from c
   where connected_at is not null
     and not exists (select from crawler_absence a where a.crawler_id = c.crawler_id and a.back_at = c.connected_at)`,
  `select a.away_since, 'away', a.reason, null from c join crawler_absence a using (crawler_id)`,
  `select a.back_at, 'connected',
     'connected again' || coalesce('; its process before ended with: ' || a.last_words, ''), null
   from c join crawler_absence a using (crawler_id)`,
  `select i.last_at, 'incident', i.kind || case when i.incidents > 1 then ' (' || i.incidents || ' times)' else '' end
     || ': ' || i.words, i.remote_address
   from c join incident i using (crawler_id)`,
  `select m.changed_at, 'move',
     m.name || ' to the host of ' || m.other_name || ': ' || m.step || case when m.words = '' then '' else ': ' || m.words end,
     null
   from c join crawler_move m on c.crawler_id in (m.crawler_id, m.other_crawler_id)`,
  `select k.created_at, 'key', 'was issued key ' || k.key_id, null from c join crawler_key k using (crawler_id)`,
  `select k.revoked_at, 'key', 'key ' || k.key_id || ' was revoked', null
   from c join crawler_key k using (crawler_id) where k.revoked_at is not null`,
  `select i.created_at, 'invitation',
     case when i.renews then 'invited anew' else 'invited' end || ' (invitation ' || i.invitation_id || ')', i.created_by
   from c join invitation i on i.name = c.name`,
  `select i.redeemed_at, 'invitation', 'joined with invitation ' || i.invitation_id, null
   from c join invitation i using (crawler_id) where i.redeemed_at is not null`,
  `select o.offered_at, 'release', 'was offered release ' || o.version, null from c join release_offer o using (crawler_id)`,
  `select o.reported_at, 'release',
     'release ' || o.version || ': ' || o.state || case when o.reason = '' then '' else ': ' || o.reason end, null
   from c join release_offer o using (crawler_id) where o.reported_at is not null and o.state is not null`,
  `select t.distrusted_at, 'trust', 'is not trusted any more: ' || coalesce(t.distrust_words, ''), null
   from c join crawler_trust t using (crawler_id) where t.distrusted_at is not null`,
  `select t.probes_doubted_at, 'trust', 'its probe reports are not believed any more: ' || coalesce(t.probes_words, ''), null
   from c join crawler_trust t using (crawler_id) where t.probes_doubted_at is not null`,
  `select e.at, 'change', e.words, e.actor from c join audit_entry e on e.target = c.name`,
];

const sql = `with c as (select * from crawler where name = $1)
  select at, kind, words, by_whom
  from (${sources.join("\n union all ")}) as noted (at, kind, words, by_whom)
  order by at desc, kind, words
  limit ${logPageSize + 1} offset $2`;

/** The latest first; `page` from 1. Empty when there is no crawler of that name. */
export async function crawlerLog(pool: Pool, name: string, page: number): Promise<CrawlerLogPage> {
  const { rows } = await pool.query<LogRow>(sql, [name, (page - 1) * logPageSize]);
  const lines = rows.slice(0, logPageSize);
  return {
    lines: lines.map(({ by_whom, ...line }) => ({ ...line, by: by_whom })),
    page,
    more: rows.length > logPageSize,
  };
}

/** Table incident: one counting row per crawler, kind and hour. */
import type { Pool } from "pg";
import { asCrawlerId } from "#core/ids";
import type { Incident, IncidentEntry, IncidentQuery, IncidentStore } from "#core/incidents";
import { clean } from "../../database/transaction.ts";

const maxWords = 500;
const maxAddress = 80;
const defaultMost = 200;

export function createIncidentStore(pool: Pool): IncidentStore {
  return {
    record: (incident) => recordAll(pool, [incident]),
    recordAll: (incidents) => recordAll(pool, incidents),
    list: (query) => list(pool, query),
    forget: async (before) => {
      const { rowCount } = await pool.query("delete from incident where last_at < $1", [before]);
      return rowCount ?? 0;
    },
  };
}

/** Incidents of removed crawlers are skipped. */
async function recordAll(pool: Pool, incidents: readonly Incident[]): Promise<void> {
  if (incidents.length === 0) return;
  await pool.query(
    `insert into incident (crawler_id, kind, hour, incidents, first_at, last_at, words, remote_address, file)
     select crawler_id, kind, date_trunc('hour', at, 'UTC'), sum(count), min(at), max(at),
       (array_agg(words order by ordinal desc))[1], (array_agg(remote_address order by ordinal desc))[1],
       (array_agg(file order by ordinal desc))[1]
     from unnest($1::int[], $2::text[], $3::timestamptz[], $4::bigint[], $5::text[], $6::text[], $7::text[])
       with ordinality as given (crawler_id, kind, at, count, words, remote_address, file, ordinal)
     where crawler_id is null or exists (select from crawler c where c.crawler_id = given.crawler_id)
     group by crawler_id, kind, date_trunc('hour', at, 'UTC')
     order by coalesce(crawler_id, 0), kind, date_trunc('hour', at, 'UTC')
     on conflict (coalesce(crawler_id, 0), kind, hour) do update
     set incidents = incident.incidents + excluded.incidents,
         first_at = least(incident.first_at, excluded.first_at),
         last_at = greatest(incident.last_at, excluded.last_at),
         words = excluded.words,
         file = excluded.file,
         remote_address = coalesce(excluded.remote_address, incident.remote_address)`,
    [
      incidents.map(({ crawlerId }) => crawlerId),
      incidents.map(({ kind }) => kind),
      incidents.map(({ at }) => at),
      incidents.map(({ count = 1 }) => count),
      incidents.map(({ words }) => clean(words.slice(0, maxWords))),
      incidents.map(({ remoteAddress }) =>
        remoteAddress === null ? null : clean(remoteAddress.slice(0, maxAddress)),
      ),
      incidents.map(({ file }) => (file === undefined ? null : clean(file))),
    ],
  );
}

interface IncidentRow {
  crawler_id: number | null;
  name: string | null;
  kind: string;
  incidents: number;
  first_at: Date;
  last_at: Date;
  words: string;
  remote_address: string | null;
  file: string | null;
}

async function list(pool: Pool, query: IncidentQuery): Promise<IncidentEntry[]> {
  const { rows } = await pool.query<IncidentRow>(
    `select i.crawler_id, c.name, i.kind, i.incidents::float8 as incidents, i.first_at, i.last_at, i.words,
       i.remote_address, i.file
     from incident i
     left join crawler c using (crawler_id)
     where i.last_at >= $1
       and ($2::text is null or c.name = $2)
       and ($3::text is null or i.kind = $3)
     order by i.last_at desc, i.kind, i.crawler_id
     limit $4`,
    [query.since, query.name ?? null, query.kind ?? null, query.most ?? defaultMost],
  );
  return rows.map((row) => ({
    crawlerId: row.crawler_id === null ? null : asCrawlerId(row.crawler_id),
    crawler: row.name,
    kind: row.kind,
    count: row.incidents,
    firstAt: row.first_at,
    lastAt: row.last_at,
    words: row.words,
    remoteAddress: row.remote_address,
    file: row.file,
  }));
}

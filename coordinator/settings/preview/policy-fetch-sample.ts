/** The latest fetches of hosts that were fetched of late, as recalibration compares them. */
import type { Pool } from "pg";
import { asCrawlerId, asSubnetId } from "#core/ids";
import type { PolicySamples } from "./types.ts";

/** The hosts are those of the latest fetches, so many at most. */
const mostLatest = 20_000;

export async function sampledFetches(
  pool: Pool,
  mostHosts: number,
  perHost: number,
): ReturnType<PolicySamples["fetches"]> {
  const { rows } = await pool.query<FetchRow>(
    `with recent as (
       select host_hash from page_fetch order by fetched_at desc limit ${mostLatest}
     ), host as (
       select r.host_hash, h.subnet_id, d.crawler_id
       from (select distinct host_hash from recent limit $1) r
       join frontier_host h using (host_hash)
       join delegation d on d.subnet_id = h.subnet_id
     )
     select host.host_hash::text as host_key, host.subnet_id, f.crawler_id, f.connect_ms, f.first_byte_ms,
       (extract(epoch from f.fetched_at) * 1000)::float8 as at_ms
     from host
     cross join lateral (
       select crawler_id, fetched_at, connect_ms, first_byte_ms
       from page_fetch
       where host_hash = host.host_hash and crawler_id = host.crawler_id
         and coalesce(connect_ms, first_byte_ms) is not null
       order by fetched_at desc
       limit $2
     ) f`,
    [mostHosts, perHost],
  );
  const all = await pool.query<{ hosts: number }>(
    `select greatest(0, sum(c.reltuples))::float8 as hosts
     from pg_inherits i
     join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'frontier_host'::regclass`,
  );
  const hosts = new Set(rows.map(({ host_key }) => host_key)).size;
  return {
    hosts,
    allHosts: Math.max(hosts, Math.round(all.rows[0]?.hosts ?? 0)),
    fetches: rows.map((row) => ({
      hostKey: row.host_key,
      subnetId: asSubnetId(row.subnet_id),
      crawlerId: asCrawlerId(row.crawler_id),
      atMs: row.at_ms,
      connectMs: row.connect_ms,
      firstByteMs: row.first_byte_ms,
    })),
  };
}

interface FetchRow {
  host_key: string;
  subnet_id: number;
  crawler_id: number;
  at_ms: number;
  connect_ms: number | null;
  first_byte_ms: number | null;
}

/**
 * Pages with their estimated changes, in columns. Of more than are wanted, whole hosts: those in a range of host hashes,
 * which are spread evenly, so that an index finds them and each host's pages stay together.
 */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import type { SampledPages } from "../../flows/recrawl-ports.ts";

/** Host hashes are signed, of 64 bits. */
const span = 2n ** 64n;
const least = -(2n ** 63n);

interface Row {
  readonly host_hash: HostHash;
  readonly crawl_delay_ms: number;
  readonly changes: number[];
  readonly back_links: number[];
  readonly ranks: (number | null)[];
}

export async function sampledPages(pool: Pool, mostPages: number): Promise<SampledPages> {
  const { rows: counted } = await pool.query<{ pages: number }>(
    "select coalesce(sum(fetched_urls), 0)::float8 as pages from frontier_host",
  );
  const share = Math.min(1, mostPages / Math.max(1, counted[0]!.pages));
  const last = share === 1 ? least + span - 1n : least + BigInt(Math.floor(Number(span) * share));
  const { rows } = await pool.query<Row>(
    `select u.host_hash, coalesce(max(h.crawl_delay_ms), 0) as crawl_delay_ms,
       array_agg(u.changes_per_day::float8) as changes,
       array_agg(u.back_links) as back_links,
       array_agg(k.page_rank::float8) as ranks
     from frontier_url u
     join frontier_host h on h.host_hash = u.host_hash and h.opt_out_id is null
     left join url_rank k on k.host_hash = u.host_hash and k.url_hash = u.url_hash
     where u.host_hash between $1 and $2
       and u.changes_per_day is not null
       and u.state in ('due', 'leased')
     group by u.host_hash`,
    [String(least), String(last)],
  );
  return { ...columns(rows), share };
}

function columns(rows: readonly Row[]): Omit<SampledPages, "share"> {
  const hostOf = rows.flatMap(({ changes }, host) => changes.map(() => host));
  return {
    changesPerDay: Float64Array.from(rows.flatMap(({ changes }) => changes)),
    backLinks: Float64Array.from(rows.flatMap((row) => row.back_links)),
    pageRank: Float64Array.from(rows.flatMap(({ ranks }) => ranks.map((rank) => rank ?? Number.NaN))),
    hostOf: Uint32Array.from(hostOf),
    hosts: rows.map((row) => ({ hostHash: row.host_hash, crawlDelayMs: row.crawl_delay_ms })),
  };
}

/** As the database estimates it: a count of a large table would take longer than the plan. */
export async function rankedPages(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ pages: number; any: boolean }>(
    `select greatest(0, sum(c.reltuples))::float8 as pages, exists (select from url_rank) as any
     from pg_inherits i
     join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'url_rank'::regclass`,
  );
  const { pages, any } = rows[0]!;
  if (pages > 0 || !any) return any ? pages : 0;
  const { rows: counted } = await pool.query<{ pages: number }>(
    "select count(*)::float8 as pages from url_rank",
  );
  return counted[0]!.pages;
}

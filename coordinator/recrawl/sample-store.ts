/**
 * Pages with their estimated changes, in columns. Of more than are wanted, whole hosts: those in a range of host hashes,
 * which are spread evenly, so that an index finds them and each host's pages stay together. A few large hosts are not
 * spread evenly: a range without any is doubled until it has one, and the sample's share is counted, not assumed.
 */
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import { mostChangesPerDay } from "./change-rate.ts";
import type { SampledPages } from "./make-plan.ts";

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
  const all = await fetchedPages(pool, lastOf(1));
  let part = Math.min(1, mostPages / Math.max(1, all));
  let rows = await pagesUpTo(pool, lastOf(part));
  while (rows.length === 0 && part < 1) {
    part = Math.min(1, 2 * part);
    rows = await pagesUpTo(pool, lastOf(part));
  }
  const share = part < 1 && rows.length > 0 ? (await fetchedPages(pool, lastOf(part))) / all : 1;
  return { ...columns(rows), share };
}

/** The last host hash of such a part of them, from the least on. */
function lastOf(part: number): bigint {
  return part === 1 ? least + span - 1n : least + BigInt(Math.floor(Number(span) * part));
}

async function fetchedPages(pool: Pool, last: bigint): Promise<number> {
  const { rows } = await pool.query<{ pages: number }>(
    `select coalesce(sum(fetched_urls), 0)::float8 as pages
     from frontier_host
     where host_hash <= $1 and opt_out_id is null`,
    [String(last)],
  );
  return rows[0]!.pages;
}

/** An estimate that is no rate (NaN is larger than any number in SQL) counts as none. */
async function pagesUpTo(pool: Pool, last: bigint): Promise<Row[]> {
  const { rows } = await pool.query<Row>(
    `select u.host_hash, coalesce(max(h.crawl_delay_ms), 0) as crawl_delay_ms,
       array_agg(u.changes_per_day::float8) as changes,
       array_agg(u.back_links) as back_links,
       array_agg(k.page_rank::float8) as ranks
     from frontier_url u
     join frontier_host h on h.host_hash = u.host_hash and h.opt_out_id is null
     left join url_rank k on k.host_hash = u.host_hash and k.url_hash = u.url_hash
     where u.host_hash <= $1
       and u.changes_per_day between 0 and $2
       and u.state = 'due'
     group by u.host_hash`,
    [String(last), mostChangesPerDay],
  );
  return rows;
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

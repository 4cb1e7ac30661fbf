/** What the index in memory reads from the database: all pages, the changed ones, and names. */
import type { Pool } from "pg";
import { to as copyTo } from "pg-copy-streams";
import { estimatedRows, partsOf } from "#db/table-sizes";
import type { UseAnswers } from "#protocol/preferences";
import { CopiedPages } from "./copied-pages.ts";
import type { IndexedPage } from "./memory-index.ts";

/** In the order in which copied-pages.ts reads them. */
const columns = `p.host_hash, p.url_hash, p.host, p.language, p.text_search_config, p.crawler_id, p.published_at, p.fetched_at,
  p.popularity, p.duplicate_url_hash is not null, p.text_group, p.preference_set, p.content_type, p.lexemes, ts_filter(p.head, '{c}')`;

interface Reading {
  visit(page: IndexedPage): void;
  /** Is called and awaited after each piece of `pages` pages. An exception ends the reading. */
  between(pages: number): Promise<void> | null;
}

async function copyPages(pool: Pool, from: string, { visit, between }: Reading): Promise<void> {
  const client = await pool.connect();
  let isWhole = false;
  try {
    const text = `copy (select ${columns} from ${from} where not p.noindex) to stdout (format binary)`;
    const copied = new CopiedPages();
    for await (const piece of client.query(copyTo(text))) {
      const wait = between(copied.take(piece as Buffer, visit));
      if (wait !== null) await wait;
    }
    isWhole = true;
  } finally {
    // A connection cannot be used again after an interrupted COPY.
    client.release(!isWhole);
  }
}

export async function readAllPages(pool: Pool, reading: Reading): Promise<void> {
  for (const { name } of await partsOf(pool, "page")) await copyPages(pool, `${name} p`, reading);
}

export interface PageKey {
  readonly hostHash: bigint;
  readonly urlHash: bigint;
}

/** Those that exist. */
export async function readPages(pool: Pool, keys: readonly PageKey[]): Promise<IndexedPage[]> {
  const pages: IndexedPage[] = [];
  const list = (name: keyof PageKey) => `'{${keys.map((key) => key[name]).join(",")}}'::bigint[]`;
  const given = `unnest(${list("hostHash")}, ${list("urlHash")}) as given (host_hash, url_hash)`;
  await copyPages(pool, `${given} join page p using (host_hash, url_hash)`, {
    visit: (page) => pages.push(page),
    between: () => null,
  });
  return pages;
}

export async function countPages(pool: Pool): Promise<number> {
  return await estimatedRows(pool, "page");
}

// Changes: table page_touch, written by triggers.

interface Touched {
  /** The snapshot of this reading: the next one continues from it. */
  readonly snapshot: string;
  readonly keys: readonly PageKey[];
}

/** A reader that has not read for this long starts over. */
export const touchesKeptMs = 30 * 60_000;

/** Deletes what was touched by transactions that had ended half an hour ago by the coordinator's clock. */
export class TouchedPages {
  /** By then all transactions below that number had ended. */
  #marks: readonly { readonly atMs: number; readonly transaction: string }[] = [];

  async forgetOld(pool: Pool, now: Date): Promise<void> {
    const atMs = now.getTime();
    const { rows } = await pool.query<{ transaction: string }>(
      "select pg_snapshot_xmin(pg_current_snapshot())::text as transaction",
    );
    const marks = [...this.#marks, { atMs, transaction: rows[0]!.transaction }];
    const old = marks.filter((mark) => atMs - mark.atMs >= touchesKeptMs);
    this.#marks = marks.slice(old.length);
    const last = old.at(-1);
    if (last === undefined) return;
    await pool.query("delete from page_touch where transaction < $1::xid8", [last.transaction]);
  }
}

export async function currentSnapshot(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ snapshot: string }>("select pg_current_snapshot()::text as snapshot");
  return rows[0]!.snapshot;
}

/**
 * Pages of transactions not visible at `since`, each once, however long they took. Higher numbers than the current
 * one came with a copy from another server.
 */
export async function readTouched(pool: Pool, since: string): Promise<Touched> {
  const { rows } = await pool.query<{
    snapshot: string;
    host_hashes: string[] | null;
    url_hashes: string[] | null;
  }>({
    name: "search-touched",
    text: `select pg_current_snapshot()::text as snapshot, t.host_hashes::text[], t.url_hashes::text[]
      from (values (1)) as one (row)
      left join page_touch t
        on t.transaction >= pg_snapshot_xmin($1::pg_snapshot)
        and not pg_visible_in_snapshot(t.transaction, $1::pg_snapshot)
        and t.transaction < pg_snapshot_xmax(pg_current_snapshot())`,
    values: [since],
  });
  const keys = rows.flatMap(({ host_hashes: hosts, url_hashes: urls }) =>
    (hosts ?? []).map((host, at) => ({ hostHash: BigInt(host), urlHash: BigInt(urls![at]!) })),
  );
  return { snapshot: rows[0]!.snapshot, keys };
}

// Names.

export async function readCrawlerNames(pool: Pool): Promise<Map<number, string>> {
  const { rows } = await pool.query<{ crawler_id: number; name: string }>(
    "select crawler_id, name from crawler",
  );
  return new Map(rows.map((row) => [row.crawler_id, row.name]));
}

export async function readUses(pool: Pool, sets: readonly number[]): Promise<Map<number, UseAnswers>> {
  const { rows } = await pool.query<{ set_id: number; answers: UseAnswers }>(
    "select set_id, answers from preference_set where set_id = any($1::int[])",
    [sets],
  );
  return new Map(rows.map((row) => [row.set_id, row.answers]));
}

/** Hosts with their countries, in the order of their hashes from there on, this many at once. */
export async function readCountries(
  pool: Pool,
  after: string | null,
  limit: number,
): Promise<{ hostHash: string; host: string; country: string | null }[]> {
  const { rows } = await pool.query<{ hostHash: string; host: string; country: string | null }>({
    name: "search-countries",
    text: `select h.host_hash as "hostHash", h.host, s.country
      from (select host_hash, host, subnet_id from frontier_host where $1::bigint is null or host_hash > $1 order by host_hash limit $2) h
      left join subnet s using (subnet_id)
      order by h.host_hash`,
    values: [after, limit],
  });
  return rows;
}

export async function readCountriesOf(
  pool: Pool,
  hosts: readonly string[],
): Promise<{ host: string; country: string | null }[]> {
  const { rows } = await pool.query<{ host: string; country: string | null }>(
    `select h.host, s.country
     from frontier_host h
     left join subnet s using (subnet_id)
     where h.host_hash = any($1::bigint[])`,
    [hosts],
  );
  return rows;
}

/** What the index in memory reads of the database: all pages, those that have changed, and the names that go with them. */
import type { Pool, PoolClient } from "pg";
import { to as copyTo } from "pg-copy-streams";
import type { UseAnswers } from "#protocol/preferences";
import { partsSql } from "../candidate-reads.ts";
import { CopiedPages } from "./copied-pages.ts";
import type { IndexedPage } from "./memory-index.ts";

/** In the order that copied-pages.ts reads. */
const columns = `p.host_hash, p.url_hash, p.host, p.language, p.text_search_config, p.crawler_id, p.published_at, p.fetched_at,
  p.popularity, p.duplicate_url_hash is not null, p.text_group, p.preference_set, p.lexemes, ts_filter(p.head, '{c}')`;

/** Piece by piece: `between` is waited for after each, and ends it by giving false. */
async function copyPages(
  client: PoolClient,
  from: string,
  { visit, between }: { visit(page: IndexedPage): void; between(pages: number): Promise<boolean> },
): Promise<void> {
  const stream = client.query(copyTo(`copy (select ${columns} from ${from} where not p.noindex) to stdout (format binary)`));
  const copied = new CopiedPages();
  for await (const piece of stream) {
    if (!(await between(copied.take(piece as Buffer, visit)))) break;
  }
}

export async function readAllPages(
  pool: Pool,
  reading: { visit(page: IndexedPage): void; between(pages: number): Promise<boolean> },
): Promise<void> {
  const { rows } = await pool.query<{ part: string }>(partsSql);
  for (const { part } of rows) {
    const client = await pool.connect();
    let isWhole = false;
    try {
      await copyPages(client, `${part} p`, {
        ...reading,
        between: async (pages) => {
          const goesOn = await reading.between(pages);
          isWhole = goesOn;
          return goesOn;
        },
      });
    } finally {
      // A copy that was broken off leaves its connection in the middle of it.
      client.release(!isWhole);
    }
  }
}

export interface PageKey {
  readonly hostHash: bigint;
  readonly urlHash: bigint;
}

/** Those of them that there are. */
export async function readPages(pool: Pool, keys: readonly PageKey[]): Promise<IndexedPage[]> {
  const pages: IndexedPage[] = [];
  const list = (name: keyof PageKey) => `'{${keys.map((key) => key[name]).join(",")}}'::bigint[]`;
  const client = await pool.connect();
  try {
    const given = `unnest(${list("hostHash")}, ${list("urlHash")}) as given (host_hash, url_hash)`;
    await copyPages(client, `${given} join page p using (host_hash, url_hash)`, {
      visit: (page) => pages.push({ ...page, lexemes: Buffer.from(page.lexemes), address: Buffer.from(page.address) }),
      between: async () => true,
    });
    return pages;
  } finally {
    client.release();
  }
}

export async function countPages(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ pages: number }>(
    `select coalesce(sum(greatest(0, c.reltuples)), 0)::float8 as pages
     from pg_catalog.pg_inherits i
     join pg_catalog.pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'page'::regclass`,
  );
  return rows[0]?.pages ?? 0;
}

// What changes: table page_touch, which triggers write.

export interface Touched {
  /** What was visible then: the next reading goes on from it. */
  readonly snapshot: string;
  readonly keys: readonly PageKey[];
}

export async function currentSnapshot(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ snapshot: string }>("select pg_current_snapshot()::text as snapshot");
  return rows[0]!.snapshot;
}

/** Of transactions that had not been visible at `since`, each once, however long they took. */
export async function readTouched(pool: Pool, since: string): Promise<Touched> {
  const { rows } = await pool.query<{ snapshot: string; host_hashes: string[] | null; url_hashes: string[] | null }>({
    name: "search-touched",
    text: `select pg_current_snapshot()::text as snapshot, t.host_hashes::text[], t.url_hashes::text[]
      from (values (1)) as one (row)
      left join page_touch t
        on t.transaction >= pg_snapshot_xmin($1::pg_snapshot)
        and not pg_visible_in_snapshot(t.transaction, $1::pg_snapshot)`,
    values: [since],
  });
  const keys = rows.flatMap(({ host_hashes: hosts, url_hashes: urls }) =>
    (hosts ?? []).map((host, at) => ({ hostHash: BigInt(host), urlHash: BigInt(urls![at]!) })),
  );
  return { snapshot: rows[0]!.snapshot, keys };
}

// Names.

export async function readCrawlerNames(pool: Pool): Promise<Map<number, string>> {
  const { rows } = await pool.query<{ crawler_id: number; name: string }>("select crawler_id, name from crawler");
  return new Map(rows.map((row) => [row.crawler_id, row.name]));
}

export async function readUses(pool: Pool, sets: readonly number[]): Promise<Map<number, UseAnswers>> {
  const { rows } = await pool.query<{ set_id: number; answers: UseAnswers }>(
    "select set_id, answers from preference_set where set_id = any($1::int[])",
    [sets],
  );
  return new Map(rows.map((row) => [row.set_id, row.answers]));
}

/** Where hosts lie, by their hash and from there on, so many at once. */
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

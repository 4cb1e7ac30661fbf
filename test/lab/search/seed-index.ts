/**
 * An index of generated pages, kept in a folder for the next run: the tables are filled two partitions at a time
 * and indexed afterwards, as by a restore.
 */
import { once } from "node:events";
import { finished } from "node:stream/promises";
import type { Pool } from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { seededRandom } from "#core/random";
import { documentColumns, keyOf, type Language, type MadeHost, madePage, pageColumns } from "./made-pages.ts";
import { byShare, Vocabulary } from "./vocabulary.ts";

const partitions = [0, 1, 2, 3, 4, 5, 6, 7];
const vocabularySize = 200_000;
const pagesPerHost = 50;
const languages = [
  { code: "en", config: "english", share: 0.6 },
  { code: "de", config: "german", share: 0.15 },
  { code: "fr", config: "french", share: 0.1 },
  { code: "es", config: "spanish", share: 0.1 },
  { code: "fi", config: "finnish", share: 0.05 },
] as const;

/** The vocabulary of an index of this seed, also when an earlier run filled it. */
export const madeLanguages = (): Language[] =>
  languages.map((language, index) => ({
    ...language,
    vocabulary: new Vocabulary(vocabularySize, seededRandom(100 + index)),
  }));

/** Pages of the index in this schema; 0: it must be filled. */
export async function pagesSeeded(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ value: number }>(
    "select value::int from setting where name = 'bench-pages'",
  );
  return rows[0]?.value ?? 0;
}

export async function seedIndex(
  pool: Pool,
  options: { readonly pages: number; readonly languages: readonly Language[]; say(line: string): void },
): Promise<void> {
  const hosts = madeHosts(options.pages, options.languages);
  await seedHosts(pool, hosts);
  const partOf = await partitionsOf(pool);
  const dropped = await dropIndexes(pool);
  const waiting = [...partitions];
  const fill = async () => {
    for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
      await fillPartition(
        pool,
        part,
        hosts.filter((host) => partOf.get(host.hostHash) === part),
      );
      options.say(`partition ${part} is filled`);
    }
  };
  await Promise.all([fill(), fill()]);
  for (const definition of dropped) await makeIndex(pool, definition, options.say);
  await pool.query("vacuum (analyze) page, document");
  await pool.query(
    "insert into setting (name, value, changed_by) values ('bench-pages', to_jsonb($1::int), 'bench')",
    [options.pages],
  );
}

function madeHosts(pages: number, known: readonly Language[]): MadeHost[] {
  const random = seededRandom(7);
  const count = Math.max(1, Math.round(pages / pagesPerHost));
  // Few hosts are large: the pages are distributed as 1 / rank.
  const weights = Array.from({ length: count }, (_, rank) => 1 / (rank + 20));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight, rank) => {
    const language = byShare(known, random());
    const host = `www.h${rank}.${language.code}.example`;
    return {
      host,
      hostHash: keyOf(host),
      language,
      pages: Math.max(1, Math.round((weight * pages) / total)),
    };
  });
}

const countries = ["DE", "FR", "ES", "FI", "GB", "US", "JP", "BR"];

async function seedHosts(pool: Pool, hosts: readonly MadeHost[]): Promise<void> {
  await pool.query(`insert into crawler (name, place, country, latitude, longitude)
    select 'crawler-' || i, 'Place', 'DE', 50, 10 from generate_series(1, 4) i`);
  await pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");
  await pool.query(
    `insert into subnet (first_address, last_address, country, registry, added_in)
     select ('10.' || at || '.0.0')::inet, ('10.' || at || '.255.255')::inet, country, 'ripencc', 1
     from unnest($1::text[]) with ordinality as given (country, at)`,
    [countries],
  );
  await pool.query(
    `insert into frontier_host (host_hash, host, state, subnet_id, url_count)
     select hash, host, 'resolved', 1 + at % ${countries.length}, 1
     from unnest($1::bigint[], $2::text[]) with ordinality as given (hash, host, at)`,
    [hosts.map((host) => host.hostHash), hosts.map((host) => host.host)],
  );
  await pool.query("analyze frontier_host, subnet, crawler");
}

/** Tables with the same partitioning have the same rows in partitions of the same number. */
async function partitionsOf(pool: Pool): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ host_hash: string; part: number }>(
    "select host_hash, right(tableoid::regclass::text, 1)::int as part from frontier_host",
  );
  return new Map(rows.map((row) => [row.host_hash, row.part]));
}

async function dropIndexes(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ indexname: string; indexdef: string }>(
    `select indexname, indexdef from pg_indexes
     where schemaname = current_schema() and tablename = 'page' and indexname <> 'page_pkey'`,
  );
  for (const { indexname } of rows) await pool.query(`drop index ${indexname}`);
  return rows.map((row) => row.indexdef.replace(" ON ONLY ", " ON "));
}

async function makeIndex(pool: Pool, definition: string, say: (line: string) => void): Promise<void> {
  const startedMs = performance.now();
  const client = await pool.connect();
  try {
    await client.query("set maintenance_work_mem = '1GB'; set max_parallel_maintenance_workers = 2");
    await client.query(definition);
  } finally {
    await client.query("reset maintenance_work_mem; reset max_parallel_maintenance_workers");
    client.release();
  }
  say(
    `${definition.replace(/^CREATE INDEX (\w+) .*$/s, "$1")}: ${((performance.now() - startedMs) / 1000).toFixed(0)} s`,
  );
}

/** One connection each, since a page's rows of both tables are made at once. */
async function fillPartition(pool: Pool, part: number, hosts: readonly MadeHost[]): Promise<void> {
  const random = seededRandom(1000 + part);
  const pages = await copyInto(pool, `page_${part}`, pageColumns);
  const documents = await copyInto(pool, `document_${part}`, documentColumns);
  for (const host of hosts)
    for (let number = 0; number < host.pages; number++) {
      const made = madePage(host, number, random);
      await pages.write(made.page);
      await documents.write(made.document);
    }
  await pages.end();
  await documents.end();
}

/** The table is emptied in the same transaction, so that nothing is written to the write-ahead log. */
async function copyInto(pool: Pool, table: string, columns: string) {
  const client = await pool.connect();
  await client.query("begin");
  await client.query(`truncate ${table}`);
  const stream = client.query(copyFrom(`copy ${table} (${columns}) from stdin (format text)`));
  const done = finished(stream);
  return {
    write: async (line: string) => {
      if (!stream.write(line)) await once(stream, "drain");
    },
    end: async () => {
      stream.end();
      await done;
      await client.query("commit");
      client.release();
    },
  };
}

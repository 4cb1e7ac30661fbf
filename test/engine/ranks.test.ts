/**
 * PageRank by DuckDB and by Spark over the exported graph, by the very commands of ops/runbook/scaling.md, against our own. Uses
 * the Python of node_modules/.cache/engines (.ci/run makes it) or of the system, and installs nothing.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readLinks, webGraph } from "#coordinator/crawl/web-graph/graph-reads";
import { pageRank } from "#coordinator/crawl/web-graph/page-rank";
import type { Database } from "#db/server-database";
import { projectRoot } from "../support/built-command.ts";
import { testDatabase } from "../support/database.ts";
import { isLong, longOr } from "../support/long.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { blocksBelow, runLines } from "./guide-lines.ts";

const cached = join(projectRoot, "node_modules/.cache/engines/bin");
const path = [cached, process.env.PATH].join(delimiter);
const answers = (command: string, ...args: string[]) =>
  spawnSync(command, args, { env: { ...process.env, PATH: path }, timeout: 20_000 }).status === 0;
const engines = {
  duckdb: answers("python3", "-c", "import duckdb"),
  // It takes a minute to count to three, so only the nightly run asks it.
  spark: isLong && answers("python3", "-c", "import pyspark") && answers("java", "-version"),
};
for (const [engine, isThere] of Object.entries(engines))
  if (!isThere)
    process.stderr.write(
      `skipped: PageRank by ${engine}: ${
        engine === "spark" && !isLong
          ? "only in npm run test:long"
          : "Python, its package or Java is missing (.ci/run)"
      }\n`,
    );

/** At night a million links. */
const pages = longOr(150_000, 3000);
const patienceMs = longOr(1_200_000, 240_000);
let database: Database;
let folder: string;
let expected: ReadonlyMap<string, number>;
beforeAll(async () => {
  if (!Object.values(engines).includes(true)) return;
  database = await testDatabase();
  folder = temporaryFolder("nearcrawl-engines-");
  await makeGraph(database.pool, pages);
  expected = await ourRanks(database.pool);
  symlinkSync(join(projectRoot, "test"), join(folder, "test"));
  writeFileSync(join(folder, "python"), '#!/bin/sh\nexec python3 "$@"\n');
  chmodSync(join(folder, "python"), 0o755);
}, patienceMs);
afterAll(async () => await database?.close());

const [byDuckDb, bySpark] = blocksBelow("Ranks beyond memory");

it.skipIf(!engines.duckdb)(
  "DuckDB ranks every page as we do, by the commands of the guide",
  async () => await holds(byDuckDb!, () => [join(folder, "ranks.parquet")]),
  patienceMs,
);

it.skipIf(!engines.spark)(
  "Spark with two workers ranks every page as we do, by the commands of the guide",
  async () => {
    const [exporting] = byDuckDb!.split("\n");
    await holds(`${exporting}\n${bySpark}`, () =>
      readdirSync(join(folder, "ranks"))
        .filter((name) => name.endsWith(".parquet"))
        .map((name) => join(folder, "ranks", name)),
    );
  },
  patienceMs,
);

/** Runs the lines; compares what the engine wrote, and what is stored. */
async function holds(lines: string, files: () => readonly string[]): Promise<void> {
  await database.pool.query("truncate url_rank");
  await runLines(lines, {
    ...{ folder, database, withinMs: patienceMs - 5000 },
    env: {
      ...{ PATH: path, SPARK_LOCAL_IP: "127.0.0.1" },
      // In a short run, optimising the code costs more than it saves.
      ...(isLong ? {} : { JAVA_TOOL_OPTIONS: "-XX:TieredStopAtLevel=1" }),
    },
  });
  const found = new Map<string, number>();
  for (const file of files()) {
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(file) });
    for (const row of rows) found.set(`${row.host_hash}/${row.url_hash}`, row.page_rank);
  }
  expect(found.size).toBe(expected.size);
  expect(worst(found)).toBeLessThan(1e-9);
  const { rows } = await database.pool.query<{ name: string; rank: number }>(
    "select host_hash || '/' || url_hash as name, page_rank as rank from url_rank",
  );
  const { rowCount: known } = await database.pool.query("select from frontier_url");
  expect(rows).toHaveLength(known!);
  // Stored in 32 bits.
  expect(worst(rows.map(({ name, rank }) => [name, rank] as const))).toBeLessThan(1e-6);
}

/** The largest difference from our rank as a share of it, which is stricter than the difference itself. */
function worst(found: Iterable<readonly [name: string, rank: number]>): number {
  let most = 0;
  for (const [name, rank] of found) most = Math.max(most, Math.abs(rank / (expected.get(name) ?? 0) - 1));
  return most;
}

async function ourRanks(pool: Pool): Promise<Map<string, number>> {
  const graph = webGraph(await readLinks(pool, 1));
  const { ranks, converged } = pageRank(graph, { damping: 0.85, tolerance: 1e-13, iterations: 1000 });
  expect(converged).toBe(true);
  expect(graph.selfLinks).toBeGreaterThan(0);
  expect(graph.nodes).toBeGreaterThan(graph.knownNodes);
  const hash = (node: number, at: number) =>
    (BigInt(graph.index.keys[4 * node + at]!) << 32n) | BigInt(graph.index.keys[4 * node + at + 1]! >>> 0);
  return new Map([...ranks].map((rank, node) => [`${hash(node, 0)}/${hash(node, 2)}`, rank]));
}

/**
 * Every third page has no links, the others 4 to 19, half of them to the first pages, some to themselves; one node in twenty is
 * beyond the frontier. The hashes use all 64 bits.
 */
async function makeGraph(pool: Pool, count: number): Promise<void> {
  const node = (number: string) =>
    `hashint8extended(${number} % ${Math.ceil(count / 30)}, 1), hashint8extended(${number}, 2)`;
  await pool.query(
    `insert into frontier_url (host_hash, url_hash, url)
     select ${node("n")}, 'http://page.example/' || n
     from generate_series(1, ${count}) n
     where n % 20 <> 19`,
  );
  await pool.query(
    `with drawn as (
       select distinct n, case when k = 1 and n % 10 = 1 then n else 1 + floor(${count} * share ^ (1 + k % 2 * 2))::int end as target
       from generate_series(1, ${count}) n
       cross join lateral generate_series(1, 4 + n % 16) k
       cross join lateral (select (hashint8extended(n * 64 + k, 3) & 1048575) / 1048576.0::float8 as share) s
       where n % 3 <> 0 and n % 20 <> 19
     ), placed as (
       select from_.host, from_.url, to_.host as to_host, to_.url as to_url, from_.host = to_.host as own,
         row_number() over (partition by n order by from_.host <> to_.host, target) as place
       from drawn
       cross join lateral (select * from (values (${node("n")})) v (host, url)) from_
       cross join lateral (select * from (values (${node("target")})) v (host, url)) to_
     )
     insert into out_link (host_hash, url_hash, visit, visited_at, digest, own_links, urls, hosts, places, nofollows, anchors)
     select host, url, 1, now(), 0, count(*) filter (where own), array_agg(to_url order by place),
       coalesce(array_agg(to_host order by place) filter (where not own), '{}'),
       array(select generate_series(1, count(*) filter (where not own))), null, repeat(e'\n', count(*)::int - 1)
     from placed
     group by host, url`,
  );
}

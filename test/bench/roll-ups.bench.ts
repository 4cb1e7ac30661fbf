/**
 * What `who` and the reports read of a large crawl: 10,000,000 registered subnets, 300,000 of them in use with 1,000,000
 * hosts and as many pages in the index. Times are wall times of one connection, the database warm.
 * Run: npm run bench -- roll-ups [subnets] [hosts]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countCoverage } from "#coordinator/reports/coverage-store";
import {
  crawlersReport,
  organisationsReport,
  placementReport,
  readCrawl,
  subnetsReport,
} from "#coordinator/reports/reports";
import { createReportReads } from "#coordinator/reports/start";
import { createRollUpReads, type Space } from "#coordinator/who/roll-up-reads";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { figure } from "./figure.ts";

const subnets = Number(process.argv[2] ?? 10_000_000);
const hosts = Number(process.argv[3] ?? 1_000_000);
const inUse = Math.round(0.3 * hosts);
const [crawlers, countries, holders, rounds] = [200, 100, 200_000, 5];
const now = new Date();
const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const database = await openDatabase({
  databaseUrl: process.env.DATABASE_URL ?? null,
  home,
  schema: `bench_${process.pid}`,
});
const { pool } = database;
try {
  await migrate(database);
  for (const statement of filling()) await pool.query(statement);
  console.log(
    `${subnets} subnets, ${inUse} in use, ${hosts} hosts, ${crawlers} crawlers, ${rounds} rounds: median (least to most)`,
  );
  await spaces();
  await reports();
} finally {
  await pool.query(`drop schema "${database.schema}" cascade`);
  await database.close();
  if (process.env.DATABASE_URL === undefined) await stopEmbeddedPostgres(home);
  rmSync(home, { recursive: true, force: true });
}

async function spaces(): Promise<void> {
  const asked: readonly (readonly [string, Space])[] = [
    ["who: an organisation", { type: "holder", holderId: 77 }],
    ["who: a block of 256 subnets", { type: "range", first: "1.1.0.0", last: "1.1.255.255" }],
    ["who: a /8 of 65,536 subnets", { type: "range", first: "2.0.0.0", last: "2.255.255.255" }],
    ["who: the whole of IPv4", { type: "range", first: "0.0.0.0", last: "255.255.255.255" }],
    ["who: a country with 1 % of all", { type: "country", code: "AB" }],
    ["who: a country with a third of all", { type: "country", code: "US" }],
  ];
  for (const [name, space] of asked) {
    // Nothing is kept from one round to the next.
    await measured(name, async () => await createRollUpReads(pool, () => performance.now())(space, now));
  }
}

async function reports(): Promise<void> {
  const reads = createReportReads(pool, () => 7);
  await measured("report: organisations", async () => await organisationsReport(reads, now));
  await measured("what three reports are made from", async () => await readCrawl(reads));
  const facts = await readCrawl(reads);
  await measured("report: subnets, from that", async () => await subnetsReport(facts, reads, now));
  await measured("report: crawlers, from that", async () => crawlersReport(facts, now));
  await measured("report: placement, from that", async () => await placementReport(facts, reads, { now }));
  await measured("the hourly count of coverage", async () => await countCoverage(pool, now));
}

async function measured(name: string, work: () => Promise<unknown>): Promise<void> {
  const walls: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const startMs = performance.now();
    await work();
    walls.push(performance.now() - startMs);
  }
  walls.sort((a, b) => a - b);
  const median = walls[walls.length >> 1] ?? Number.NaN;
  figure(name, Math.round(median), "ms");
  console.log(
    `${name.padEnd(40)} ${median.toFixed(0)} ms (${walls[0]?.toFixed(0)} to ${walls.at(-1)?.toFixed(0)})`,
  );
}

/** Every third subnet is registered in the US, the others in countries AA, AB and so on. */
function filling(): string[] {
  const country = `case when i % 3 = 0 then 'US' else chr(65 + (i / 3 % ${countries} / 26)::int) || chr(65 + (i / 3 % ${countries} % 26)::int) end`;
  return [
    "insert into registry_generation (state, applied_at) values ('applied', now())",
    `insert into holder (holder_key, name) select 'name:h' || i, 'Holder ' || i from generate_series(1, ${holders}) i`,
    `insert into crawler (name, country, state) select 'c' || i, chr(65 + i % 4) || chr(65 + i % 26), 'online' from generate_series(1, ${crawlers}) i`,
    `insert into crawler_rtt (from_crawler_id, to_crawler_id, rtt_ms, method, measured_at)
     select a, b, 5 + abs(a - b), 'head', now() from generate_series(1, ${crawlers}) a, generate_series(1, ${crawlers}) b where a <> b`,
    `insert into subnet (first_address, last_address, holder_id, country, registry, added_in)
     select '1.0.0.0'::inet + i::bigint * 256, '1.0.0.255'::inet + i::bigint * 256, 1 + i % ${holders}, ${country}, 'ripencc', 1
     from generate_series(1, ${subnets}) i`,
    `insert into delegation (subnet_id, crawler_id, cause, measured, rtt_ms, delegated_at)
     select i::bigint * ${Math.floor(subnets / inUse)}, 1 + i % ${crawlers}, 'probe-round', true, 5 + i % 150, now()
     from generate_series(1, ${inUse}) i`,
    `insert into probe_round (subnet_id, cause, policy, target_url, target_address, started_at, decided_at, crawler_id, reason)
     select subnet_id, 'new-subnet', 'nearest', 'http://x/', '1.1.1.1', now(), now(), crawler_id, '{}' from delegation`,
    `insert into probe (round_id, ordinal, crawler_id, method, outcome, rtt_ms)
     select round_id, n, 1 + (crawler_id + 7 * n) % ${crawlers}, 'head', 'measured', 20 + (round_id + 13 * n) % 150
     from probe_round, generate_series(1, 3) n`,
    `insert into frontier_host (host_hash, host, state, addresses, subnet_id, url_count, due_at, fetched_urls, fetches,
       fetched_bytes, good_pages, language)
     select i * 7919::bigint * 1000003, 'host' || i || '.example', 'resolved', array['10.0.0.1'::inet],
       (1 + i % ${inUse})::bigint * ${Math.floor(subnets / inUse)}, 20, now(), 10, 30, 900000, 10, case when i % 4 > 0 then 'en' else 'de' end
     from generate_series(1, ${hosts}) i`,
    `insert into site (host_hash, host, standing, due_at, subnet_id, crawler_id, holder_id, country, language, channels,
       pages, urls, due_urls, counted_day, failed_days, fetched_days, failures, fetches, added_at, rtt_ms, bytes)
     select host_hash, host, 'ready', due_at, subnet_id, crawler_id, holder_id, country, language, 0, 10, 20, 1, 0,
       '{0,0,0,0,0,0,0}', '{0,0,0,0,0,0,0}', 0, 30, now(), rtt_ms, 900000
     from frontier_host
     join subnet using (subnet_id)
     join delegation using (subnet_id)`,
    `insert into page (host_hash, url_hash, url, host, crawler_id, fetched_at, status, content_type, text_search_config, title,
       description, excerpt, headings, noindex, digest, simhash, words, body_bytes, wire_bytes, shipped_bytes, lexemes)
     select host_hash, 1, 'http://' || host || '/', host, 1, now() - (host_hash % 60) * interval '1 day', 200, 'text/html', 'simple',
       'A title of some length', '', repeat('words ', 40), '[]', false, repeat('0', 64), '0', 40, 900, 900, 90, ''
     from frontier_host`,
    "update site_upkeep set finished_at = now()",
    "vacuum analyze",
  ];
}

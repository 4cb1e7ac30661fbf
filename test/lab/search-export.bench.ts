/**
 * What an export of the index costs: pages of 300 words, read as `nearcrawl search export` reads them, made into documents,
 * and written as lines to nowhere; then as many changes. Milliseconds of processor time a page, of the exporter and of the
 * database's backends, and bytes a document. Linux: the backends' is read from /proc.
 * Run: npm run bench -- search-export [pages [rounds]] (20000 5)
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { numberChanges } from "#coordinator/changes/change-writes";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { exportIndex } from "#coordinator/search/export/export-index";
import { createExportReads } from "#coordinator/search/export/export-reads";
import { NdjsonPipe } from "#coordinator/search/export/ndjson-store";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { figure } from "./figure.ts";

const pages = Number(process.argv[2] ?? 20_000);
const rounds = Number(process.argv[3] ?? 5);
const nowMs = () => performance.now();

const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const database = await openDatabase({
  databaseUrl: process.env.DATABASE_URL ?? null,
  home,
  schema: `bench_${process.pid}`,
  maxConnections: 2,
});
const { pool } = database;
let bytes = 0;
const state = join(home, "state.json");
const nowhere = async (text: string) => {
  bytes += Buffer.byteLength(text);
  return true;
};

try {
  await migrate(database);
  await fill();
  const [full, changes] = [await inRounds("all pages", true), await inRounds("changes", false)];
  console.log(`${pages} pages, ${rounds} rounds: median (least to most)`);
  for (const { name, rows } of [full, changes]) {
    for (const what of ["exporter ms", "database ms", "bytes", "a second"] as const) {
      const values = rows.map((row) => row[what]).sort((a, b) => a - b);
      const median = values[values.length >> 1]!;
      const digits = what.endsWith("ms") ? 3 : 0;
      console.log(
        `${name.padEnd(10)} ${what.padEnd(12)} ${median.toFixed(digits)} (${values[0]!.toFixed(digits)} to ${values.at(-1)!.toFixed(digits)})`,
      );
      if (what.endsWith("ms")) figure(`${name}, ${what.split(" ")[0]}`, median, "ms CPU a page");
    }
  }
  console.log(
    `load average ${loadavg()
      .map((one) => one.toFixed(1))
      .join(", ")}`,
  );
} finally {
  await pool.query(`drop schema "${database.schema}" cascade`);
  await database.close();
  if (process.env.DATABASE_URL === undefined) await stopEmbeddedPostgres(home);
  rmSync(home, { recursive: true, force: true });
}

async function inRounds(name: string, full: boolean) {
  const rows = [];
  // The first round fills caches.
  for (let round = 0; round <= rounds; round += 1) {
    if (!full) await changeAll();
    const [begunMs, own, backends] = [nowMs(), process.cpuUsage(), await backendMs()];
    bytes = 0;
    const target = new NdjsonPipe(nowhere, state);
    const { indexed } = await exportIndex({ reads: createExportReads(pool), target, nowMs }, { full });
    if (indexed !== pages) throw new Error(`${indexed} of ${pages} pages were exported`);
    const { user, system } = process.cpuUsage(own);
    if (round > 0)
      rows.push({
        "exporter ms": (user + system) / 1000 / pages,
        "database ms": ((await backendMs()) - backends) / pages,
        bytes: bytes / pages,
        "a second": (1000 * pages) / (nowMs() - begunMs),
      });
  }
  return { name, rows };
}

async function changeAll(): Promise<void> {
  await pool.query(
    `insert into page_change_inbox (host_hash, url_hash, url, kind, seen_at)
     select host_hash, url_hash, url, 'changed', now() from page`,
  );
  while ((await numberChanges(pool, new Date())) > 0);
}

async function fill(): Promise<void> {
  const crawlerId = await createCrawlerStore(pool).register({ name: "north", keyHash: "k" });
  await pool.query(
    `insert into frontier_host (host_hash, host, state) select n, 'host-' || n || '.example', 'resolved' from generate_series(0, 499) n`,
  );
  await pool.query(
    `insert into page (host_hash, url_hash, url, host, crawler_id, fetched_at, status, content_type, language, text_search_config,
       title, description, excerpt, headings, noindex, digest, simhash, words, body_bytes, wire_bytes, shipped_bytes, lexemes)
     select n % 500, n, 'https://host-' || n % 500 || '.example/' || n, 'host-' || n % 500 || '.example', $2, now(), 200, 'text/html',
       'en', 'english', 'Page ' || n, 'A description of some words', repeat('A text of some length. ', 20),
       '[{"level": 1, "text": "A heading"}]', false, repeat('0', 64), repeat('0', 16), 300, 100, 100, 100,
       to_tsvector('english', (select string_agg('word' || (n * 31 + w * w) % 20000, ' ' order by w) from generate_series(1, 300) w))
     from generate_series(1, $1::int) n`,
    [pages, crawlerId],
  );
  await pool.query("vacuum analyze page");
}

/** Time on a processor, ns (Documentation/scheduler/sched-stats.rst). */
async function backendMs(): Promise<number> {
  const { rows } = await pool.query<{ pid: number }>(
    "select pid from pg_stat_activity where backend_type = 'client backend' and datname = current_database()",
  );
  return rows.reduce(
    (sum, { pid }) => sum + Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6,
    0,
  );
}

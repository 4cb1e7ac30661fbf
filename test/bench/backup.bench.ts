/**
 * Backups of the embedded server: how fast one is taken, verified, tried and restored, alone and while somebody writes; and
 * what wal_level = replica costs where it can cost something: a table that is made, filled and indexed in one transaction,
 * which minimal writes past the log. (What it costs where pages are taken in, ingest-pages says, with
 * NEARCRAWL_BENCH_POSTGRES="wal_level = minimal\nmax_wal_senders = 0" and without.)
 * Run: npm run bench -- backup [megabytes [rounds]] (1000 3)
 */
import { appendFileSync, chmodSync, mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { backupDatabase } from "#db/backup-database";
import { openDatabase } from "#db/connect";
import { prepareCluster } from "#db/embedded-cluster";
import { migrate } from "#db/migrate";
import { restoreDatabase } from "#db/restore-database";
import type { Database } from "#db/server-database";
import { tryBackup, verifyBackup } from "#db/verify-backup";

const megabytes = Number(process.argv[2] ?? 1000);
const rounds = Number(process.argv[3] ?? 3);
const levels = { minimal: "wal_level = minimal\nmax_wal_senders = 0\n", replica: "" } as const;
const folder = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
// The server's account passes it.
chmodSync(folder, 0o711);

try {
  await bulkLoads();
  await backups();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(
  `load average ${loadavg()
    .map((load) => load.toFixed(1))
    .join(", ")}`,
);

async function bulkLoads(): Promise<void> {
  const took: Record<keyof typeof levels, { seconds: number; log: number }[]> = { minimal: [], replica: [] };
  const open: Partial<Record<keyof typeof levels, Database>> = {};
  for (const level of ["minimal", "replica"] as const) {
    const home = join(folder, level);
    const { dataFolder } = await prepareCluster(await madeHome(home));
    appendFileSync(join(dataFolder, "postgresql.conf"), levels[level]);
    open[level] = await openDatabase({ databaseUrl: null, home, schema: "bench", maxConnections: 1 });
  }
  for (let round = 0; round <= rounds; round++)
    for (const level of ["minimal", "replica"] as const) {
      const load = await bulkLoad(open[level]!);
      // The first fills caches.
      if (round > 0) took[level].push(load);
    }
  for (const level of ["minimal", "replica"] as const) {
    await open[level]?.close();
    const seconds = took[level].map((one) => one.seconds);
    const log = took[level].map((one) => one.log / 1e6);
    console.log(
      `500,000 rows and an index in one transaction, ${level}: ${spread(seconds, "s")}, log ${spread(log, "MB")}`,
    );
  }
}

async function madeHome(home: string): Promise<string> {
  await (await openDatabase({ databaseUrl: null, home, schema: "bench" })).close();
  return home;
}

async function bulkLoad({ pool }: Database): Promise<{ seconds: number; log: number }> {
  await pool.query("drop table if exists public.bulk");
  await pool.query("checkpoint");
  const at = async () => (await pool.query("select pg_current_wal_lsn() - '0/0' as bytes")).rows[0].bytes;
  const before = Number(await at());
  const startedMs = performance.now();
  await pool.query("begin");
  await pool.query("create table public.bulk (number integer, text text)");
  await pool.query("insert into public.bulk select n, md5(n::text) from generate_series(1, 500000) n");
  await pool.query("create index on public.bulk (text)");
  await pool.query("commit");
  const seconds = (performance.now() - startedMs) / 1000;
  return { seconds, log: Number(await at()) - before };
}

async function backups(): Promise<void> {
  const home = join(folder, "home");
  const database = await openDatabase({ databaseUrl: null, home, schema: "bench", maxConnections: 2 });
  const { pool } = database;
  await migrate(database);
  await pool.query("create table filler (number integer primary key, text text)");
  await pool.query("alter table filler alter text set storage external");
  // Of a page's size, and nothing that compresses.
  await pool.query(
    `insert into filler
     select n, string_agg(md5(n || ' ' || k), '')
     from generate_series(1, $1::int * 125) n, generate_series(1, 250) k
     group by n`,
    [megabytes],
  );
  await pool.query("create table written (number integer)");
  await pool.query("checkpoint");
  const took: Record<string, number[]> = {};
  const timed = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const startedMs = performance.now();
    const result = await work();
    const seconds = (performance.now() - startedMs) / 1000;
    took[name] = [...(took[name] ?? []), seconds];
    return result;
  };
  let bytes = 0;
  const commits: Record<"alone" | "beside", number[]> = { alone: [], beside: [] };
  for (let round = 0; round < rounds; round++) {
    const backup = await timed("backup", async () => await backupDatabase(home, { keep: 1 }));
    bytes = backup.bytes;
    const writing = await writer(pool);
    commits.alone.push(await writing.rateOver(3));
    const beside = timed("backup while one writes", async () => await backupDatabase(home, { keep: 1 }));
    commits.beside.push(await writing.rateUntil(beside));
    await writing.stop();
    const { folder: newest } = await beside;
    await timed("verify", async () => await verifyBackup(newest));
    await timed("verify --start", async () => await tryBackup(newest));
    const other = join(folder, `restored-${round}`);
    await timed("restore", async () => await restoreDatabase(other, newest));
    rmSync(other, { recursive: true, force: true });
  }
  await database.close();
  console.log(`a backup of ${(bytes / 1e6).toFixed(0)} MB, ${rounds} rounds`);
  for (const [name, seconds] of Object.entries(took)) {
    const rates = seconds.map((one) => bytes / 1e6 / one);
    console.log(`${name}: ${spread(seconds, "s")}, ${spread(rates, "MB/s")}`);
  }
  console.log(
    `commits of one writer: ${spread(commits.alone, "a second")} alone, ${spread(commits.beside, "a second")} beside a backup`,
  );
}

/** Commits one row after the other. */
async function writer(pool: Database["pool"]) {
  let [commits, goesOn] = [0, true];
  const over = (async () => {
    while (goesOn) {
      await pool.query("insert into written values ($1)", [commits]);
      commits += 1;
    }
  })();
  const rateUntil = async (end: Promise<unknown>) => {
    const [before, startedMs] = [commits, performance.now()];
    await end;
    return ((commits - before) * 1000) / (performance.now() - startedMs);
  };
  return {
    rateUntil,
    rateOver: async (seconds: number) =>
      await rateUntil(new Promise((resolve) => setTimeout(resolve, seconds * 1000))),
    stop: async () => {
      goesOn = false;
      await over;
    },
  };
}

/** Median, least and most. */
function spread(values: readonly number[], unit: string): string {
  const sorted = [...values].sort((a, b) => a - b);
  const text = (value: number) => value.toPrecision(3);
  return `${text(sorted[sorted.length >> 1]!)} ${unit} (${text(sorted[0]!)} to ${text(sorted.at(-1)!)})`;
}

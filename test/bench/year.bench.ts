/**
 * A year of a crawl at a hundredth of its size, day by day on a clock turned by hand: real Postgres, real stores, and the
 * coordinator's jobs as the rooms schedule them, twice a day. After each month the rows and the size of every table and what
 * each job took; at the end, of every table and job, whether it is as it was or what it grows with.
 * A full-size crawl is one of 50,000 fetches a day. Linux: the CPU of the database's processes is read from /proc.
 * Run: npm run bench -- year [days] [hosts] [file for the report]; Ctrl-C ends it with the months that there are.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { policySections } from "#coordinator/settings/schema";
import { keptDays, sizeOf, tableEnds } from "#coordinator/storage/table-ends";
import { openDatabase } from "#db/connect";
import { stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { tableSizes } from "#db/table-sizes";
import { SimulatedDays } from "../support/simulated-days.ts";

const days = Number(process.argv[2] ?? 365);
const hosts = Number(process.argv[3] ?? 20);
const resultFile = process.argv[4] ?? null;
const monthDays = 30;
if (!(days >= 2 * monthDays)) throw new RangeError(`days: ${process.argv[2]} is less than two months`);
const retention = policySections.retention.parse({});
const changes = policySections.changes.parse({});

interface JobMonth {
  readonly wallMs: number[];
  cpuMs: number;
}

interface Month {
  readonly rows: ReadonlyMap<string, number>;
  readonly bytes: ReadonlyMap<string, number>;
  readonly jobs: ReadonlyMap<string, JobMonth>;
  readonly urls: number;
  readonly fetchParts: number;
}

const home = mkdtempSync(join(tmpdir(), "nearcrawl-year-"));
const database = await openDatabase({
  ...{
    databaseUrl: process.env.DATABASE_URL ?? null,
    home,
    schema: `year_${process.pid}`,
    maxConnections: 6,
  },
});
const { pool } = database;
const months: Month[] = [];
const out: string[] = [];
const say = (line: string) => {
  console.log(line);
  out.push(line);
};
try {
  // A year of commits in minutes: what is measured is not the disk.
  if (process.env.DATABASE_URL === undefined) {
    await pool.query("alter system set fsync = off");
    await pool.query("select pg_reload_conf()");
  }
  await migrate(database);
  let jobs = new Map<string, JobMonth>();
  const simulated = new SimulatedDays(database, {
    ...{ hosts, urlsPerHost: 50, newUrlsPerDay: 4, crawlers: 6, roundsPerDay: 6, retention, changes },
    onJob: async (name, run) => {
      const [cpu, start] = [await cpuMs(), performance.now()];
      await run();
      const one = jobs.get(name) ?? { wallMs: [], cpuMs: 0 };
      one.wallMs.push(performance.now() - start);
      one.cpuMs += (await cpuMs()) - cpu;
      jobs.set(name, one);
    },
  });
  const started = performance.now();
  await simulated.begin();
  let isStopped = false;
  process.once("SIGINT", () => {
    isStopped = true;
  });
  for (let day = 1; day <= days && !(isStopped && months.length > 1); day++) {
    await simulated.nextDay();
    if (day % monthDays !== 0 && day !== days) continue;
    if (day === days && day % monthDays !== 0 && day % monthDays < 20) continue;
    months.push(await monthNow(jobs, simulated.urls));
    jobs = new Map();
    console.log(`day ${day}: ${Math.round((performance.now() - started) / 1000)} s`);
  }
  report();
  say(
    `\n${days} days in ${Math.round((performance.now() - started) / 1000)} s, load average ${loadavg()[0]!.toFixed(1)}`,
  );
  if (resultFile !== null) writeFileSync(resultFile, `${out.join("\n")}\n`);
} finally {
  await pool.query(`drop schema if exists "year_${process.pid}" cascade`).catch(() => {});
  await database.close();
  if (process.env.DATABASE_URL === undefined) await stopEmbeddedPostgres(home);
  rmSync(home, { recursive: true, force: true });
}

/** Of this process and of the database's; in steps of 10 ms each, so of many runs. */
async function cpuMs(): Promise<number> {
  const { user, system } = process.cpuUsage();
  const { rows } = await pool.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'",
  );
  return rows.reduce((sum, { pid }) => sum + backendCpuMs(pid), (user + system) / 1000);
}

function backendCpuMs(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return 0;
  }
}

async function monthNow(jobs: ReadonlyMap<string, JobMonth>, urls: number): Promise<Month> {
  // What a busy autovacuum would have done by now.
  await pool.query("vacuum analyze");
  const sizes = await tableSizes(pool);
  const names = sizes.map(({ table }) => table);
  const { rows } = await pool.query<Record<string, number>>(
    `select ${names.map((name) => `(select count(*)::int from "${name}") as "${name}"`).join(", ")}`,
  );
  return {
    rows: new Map(names.map((name) => [name, rows[0]![name]!])),
    bytes: new Map(sizes.map((size) => [size.table, sizeOf(size)])),
    fetchParts: sizes.find(({ table }) => table === "page_fetch")!.parts,
    ...{ jobs, urls },
  };
}

function report(): void {
  const last = months.at(-1)!;
  const shown = months
    .map((_, index) => index)
    .filter((index) => index % 2 === 1 || index === months.length - 1);
  const heads = shown.map((index) => `month ${index + 1}`).join(" | ");
  const line = shown.map(() => "---:").join(" | ");
  say(`\n## Tables: rows (KB with indexes) at the end of the month\n`);
  say(`| table | ${heads} | kept | verdict |\n|---|${line}|---|---|`);
  const names = [...last.rows.keys()].filter((name) => last.rows.get(name)! > 0).sort();
  for (const name of names) {
    const cells = shown.map(
      (index) =>
        `${months[index]!.rows.get(name) ?? 0} (${Math.round((months[index]!.bytes.get(name) ?? 0) / 1024)})`,
    );
    const kept = keptDays(tableEnds[name]!, { retention, changes });
    say(`| ${name} | ${cells.join(" | ")} | ${kept === null ? "" : `${kept} d`} | ${tableVerdict(name)} |`);
  }
  say(`\nURLs known: ${months.map(({ urls }) => urls).join(", ")}`);
  say(`Parts of page_fetch: ${months.map(({ fetchParts }) => fetchParts).join(", ")}`);
  say(`\n## Jobs: median ms (mean ms of CPU) of a run in the month\n`);
  say(`| job | ${heads} | CPU, last three months to months 2 to 4 | verdict |\n|---|${line}|---:|---|`);
  for (const name of [...last.jobs.keys()].sort()) {
    const cells = shown.map((index) => {
      const job = months[index]!.jobs.get(name);
      return job === undefined
        ? ""
        : `${median(job.wallMs).toFixed(1)} (${meanCpu([months[index]!], name).toFixed(1)})`;
    });
    const ratio = meanCpu(months.slice(-3), name) / meanCpu(months.slice(1, 4), name);
    say(`| ${name} | ${cells.join(" | ")} | ${ratio.toFixed(2)} | ${jobVerdict(name, ratio)} |`);
  }
}

function growth(of: (month: Month) => number): number {
  const [middle, last] = [months[Math.floor(months.length / 2) - 1]!, months.at(-1)!];
  return of(last) / Math.max(1, of(middle));
}

/** By its rows; flat: no more than a tenth above what it was in the middle of the year. */
function tableVerdict(name: string): string {
  const end = tableEnds[name];
  if (end === undefined) return "**not stated**";
  const kept = keptDays(end, { retention, changes });
  const rows = (month: Month) => month.rows.get(name) ?? 0;
  const bytes = (month: Month) => month.bytes.get(name) ?? 0;
  const urls = growth((month) => month.urls);
  const grown = growth(rows);
  if (grown <= 1.1 || rows(months.at(-1)!) - rows(months[Math.floor(months.length / 2) - 1]!) <= 5) {
    const first = months.findIndex((_, index) =>
      months
        .slice(index)
        .every(
          (later) => rows(later) <= 1.15 * rows(months.at(-1)!) && rows(later) >= 0.8 * rows(months.at(-1)!),
        ),
    );
    const bloat =
      growth(bytes) > 1.25 ? `, **but ${growth(bytes).toFixed(2)} times the bytes since the middle**` : "";
    return `flat from month ${first + 1}${bloat}`;
  }
  if (kept !== null && kept > days / 2) return `grows to its end at ${kept} days`;
  if (end.type === "each")
    return Math.abs(grown / urls - 1) < 0.1 ? "grows with URLs known" : `grows: for each ${end.words}`;
  if (end.type === "bounded" && end.mostRows !== null) return `grows to ${end.mostRows} rows`;
  // As many days as before, in each of which more is written.
  const crawlers = growth((month) => month.rows.get("crawler") ?? 0);
  if (kept !== null && name.startsWith("crawler") && grown <= 1.1 * crawlers) return "grows with crawlers";
  if (kept !== null && grown <= 1.1 * urls) return "grows with URLs known, and so with fetches a day";
  return `**GROWS** ${grown.toFixed(2)} times since the middle of the year`;
}

function jobVerdict(name: string, ratio: number): string {
  const urls = growth((month) => month.urls) * (months.at(-1)!.urls / months[1]!.urls);
  if (meanCpu(months.slice(-3), name) < 3 || ratio <= 1.3) return "flat";
  return ratio <= 1.3 * urls ? "grows with URLs known" : "**GROWS**";
}

function meanCpu(some: readonly Month[], name: string): number {
  const jobs = some.flatMap(({ jobs: of }) => of.get(name) ?? []);
  return (
    jobs.reduce((sum, job) => sum + job.cpuMs, 0) /
    Math.max(
      1,
      jobs.reduce((sum, job) => sum + job.wallMs.length, 0),
    )
  );
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}

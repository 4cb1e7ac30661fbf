/**
 * The list of sites at a million hosts: what its job computes for a host, what the list takes on disk, and how long a page of
 * it takes for each order and for usual and for awkward filters, warm, one after the other, as the 95th of a hundred. Beside
 * it in the same run the plain way: count, offset, and the planner's own choice. All is made once and kept in a folder for the
 * next run. Linux: the CPU of Postgres is read from /proc.
 * Run: npm run bench -- sites [--hosts 1000000] [--asks 100] [--home FOLDER]
 */
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readSitesQuestion, type SitesQuestion, siteSorts } from "#coordinator/sites/sites-list";
import { sitesAnswer } from "#coordinator/sites/sites-reads";
import { keepSites } from "#coordinator/sites/sites-upkeep-store";
import { openDatabase } from "#db/connect";
import { migrate } from "#db/migrate";
import { figure } from "./figure.ts";
import { postgresCpuMs } from "./search/cpu-time.ts";
import { crawledHosts, madeSites, seedFrontier, seedList } from "./sites/seed-sites.ts";

const { values: options } = parseArgs({
  options: {
    hosts: { type: "string", default: "1000000" },
    asks: { type: "string", default: "100" },
    home: { type: "string", default: join(tmpdir(), "nearcrawl-bench-sites") },
  },
});
const [hosts, asks] = [Number(options.hosts), Number(options.asks)];
const database = await openDatabase({
  databaseUrl: process.env.DATABASE_URL ?? null,
  home: options.home,
  schema: `sites_${hosts}`,
  maxConnections: 2,
});
const { pool } = database;
const now = new Date();

const cpuOf = async () => (await postgresCpuMs(pool)) ?? Number.NaN;

/** Usual ones, and those in which filter and order have to do with each other. */
const filters: readonly Readonly<Record<string, string>>[] = [
  { crawler: "crawler-1" },
  { crawler: "crawler-90" },
  { state: "due" },
  { state: "blocked" },
  { state: "unresolved" },
  { state: "left-out" },
  { language: "el" },
  { country: "DE", language: "de" },
  { organisation: "Holder 77" },
  { tld: "gr", state: "due" },
  { channel: "with" },
  { under: "example-9.gr" },
  { host: "www.s" },
  { crawler: "crawler-3", country: "FR", language: "fr", state: "scheduled" },
];

try {
  await migrate(database);
  await seedFrontier(pool);
  await fill();
  await seedList(pool, hosts);
  await sizes();
  await measurePages();
  await measurePlain();
  console.log(
    `\nload average ${loadavg()
      .map((one) => one.toFixed(1))
      .join(", ")}`,
  );
} finally {
  await database.close();
}

/** Once: the whole job, as fast as it goes, and a second round that finds nothing to write. */
async function fill(): Promise<void> {
  const { rows } = await pool.query<{ finished_at: Date | null }>("select finished_at from site_upkeep");
  if (rows[0]!.finished_at !== null) return;
  const round = async () => {
    const began = [performance.now(), await cpuOf()] as const;
    for (let walked = 0; walked < crawledHosts; ) {
      const step = await keepSites(pool, now);
      walked += step.hosts;
      if (step.rests) break;
    }
    const [tookMs, cpuMs] = [performance.now() - began[0], (await cpuOf()) - began[1]];
    return `${((1000 * tookMs) / crawledHosts).toFixed(0)} µs a host, of which Postgres computes ${((1000 * cpuMs) / crawledHosts).toFixed(0)} µs`;
  };
  console.log(`filled: ${await round()}`);
  await pool.query("update site_upkeep set finished_at = '2000-01-01'");
  console.log(`looked at again: ${await round()}`);
}

async function sizes(): Promise<void> {
  const { rows } = await pool.query<{ name: string; mb: number }>(
    `select relname as name, pg_relation_size(oid) / 1e6::float8 as mb
     from pg_class
     where oid = 'site'::regclass or oid in (select indexrelid from pg_index where indrelid = 'site'::regclass)
     order by mb desc`,
  );
  const all = rows.reduce((sum, { mb }) => sum + mb, 0);
  console.log(
    `on disk ${all.toFixed(0)} MB: ${rows.map(({ name, mb }) => `${name} ${mb.toFixed(0)}`).join(", ")}`,
  );
}

function questionOf(asked: Readonly<Record<string, string>>): SitesQuestion {
  const question = readSitesQuestion((name) => asked[name] ?? "");
  if (typeof question === "string") throw new Error(question);
  return question;
}

async function measurePages(): Promise<void> {
  console.log("\n| order | filter | matches | ms, median | 95th | most | Postgres computes, mean |");
  console.log("|---|---|---|---|---|---|---|");
  for (const order of ["up", "down"]) for (const sort of siteSorts) await measure({ sort, order }, figure);
  for (const filter of filters)
    for (const sort of ["failures", "pages", "fetched"]) await measure({ ...filter, sort });
}

async function measure(asked: Readonly<Record<string, string>>, state?: typeof figure): Promise<void> {
  const times: number[] = [];
  let matches = "";
  let after = "";
  let cpuMs = 0;
  for (let ask = -3; ask < asks; ask++) {
    if (ask === 0) cpuMs = await cpuOf();
    const beganMs = performance.now();
    const answer = await sitesAnswer(pool, questionOf({ ...asked, after }), now);
    if (ask >= 0) times.push(performance.now() - beganMs);
    // On through the list, from page to page, and then from its beginning.
    after = answer.next ?? "";
    matches = `${answer.isWholeCount ? "" : "> "}${answer.count}`;
  }
  const eachCpuMs = ((await cpuOf()) - cpuMs) / asks;
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(share * times.length))]!;
  const { sort, order = "", ...filter } = asked;
  const words = Object.entries(filter)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
  console.log(
    `| ${sort} ${order} | ${words} | ${matches} | ${at(0.5).toFixed(1)} | ${at(0.95).toFixed(1)} | ${times.at(-1)!.toFixed(0)} | ${eachCpuMs.toFixed(1)} |`,
  );
  state?.(`by ${sort} ${order}, 95th`, at(0.95), "ms");
}

/** Of the same table, as one would write it: a count of all that match, and the page by its offset. */
async function measurePlain(): Promise<void> {
  const plain: readonly (readonly [string, string, number])[] = [
    ["true", "s.pages desc", 0],
    ["true", "s.pages desc", 10_000],
    ["s.standing in ('opted-out', 'robots', 'payment', 'address')", "s.pages desc", 0],
    ["s.country = 'DE' and s.language = 'de'", "s.pages desc", 0],
    ["c.name = 'crawler-90'", "s.failures desc", 0],
  ];
  console.log("\n| the plain way | order | offset | ms, median of 5 | most |\n|---|---|---|---|---|");
  for (const [where, order, offset] of plain) {
    const from = `from site s left join crawler c on c.crawler_id = s.crawler_id where ${where}`;
    const times: number[] = [];
    for (let ask = 0; ask < 5; ask++) {
      const beganMs = performance.now();
      await pool.query(`select count(*) ${from}`);
      await pool.query(`select s.*, c.name ${from} order by ${order}, s.host_hash limit 51 offset ${offset}`);
      times.push(performance.now() - beganMs);
    }
    times.sort((a, b) => a - b);
    console.log(`| ${where} | ${order} | ${offset} | ${times[2]!.toFixed(0)} | ${times[4]!.toFixed(0)} |`);
  }
  console.log(`\n${madeSites}`);
}

/**
 * The list of sites at a million hosts: how long its job takes to fill it, what it takes on disk, and how long a page of the
 * list takes for each order and for usual and for awkward filters, warm, one after the other, as the 95th of a hundred. Beside
 * it in the same run the plain way: the same page from frontier_host with its joins. The frontier is made once and kept in a
 * folder for the next run.
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
import { madeSites, seedSites } from "./sites/seed-sites.ts";

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

try {
  await migrate(database);
  await seedSites(pool, hosts);
  await fill();
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

/** Only where it is not filled yet: the whole job, as fast as it goes. */
async function fill(): Promise<void> {
  const { rows } = await pool.query<{ finished_at: Date | null }>("select finished_at from site_upkeep");
  if (rows[0]!.finished_at === null) {
    const [beganMs, seen] = [performance.now(), { hosts: 0 }];
    for (let step = await keepSites(pool, now); !step.rests; step = await keepSites(pool, now))
      seen.hosts += step.hosts;
    const tookMs = performance.now() - beganMs;
    console.log(
      `filled with ${hosts} hosts in ${(tookMs / 1000).toFixed(0)} s: ${((1000 * tookMs) / hosts).toFixed(0)} µs each`,
    );
  }
  await pool.query("update site_upkeep set finished_at = '2000-01-01'");
  const beganMs = performance.now();
  let walked = 0;
  while (walked < Math.min(hosts, 50_000)) walked += (await keepSites(pool, now)).hosts;
  const eachUs = (1000 * (performance.now() - beganMs)) / walked;
  console.log(
    `looked at again without a change: ${eachUs.toFixed(0)} µs a host, a round of a fiftieth of a connection takes ${((eachUs * hosts * 50) / 60e6).toFixed(0)} min`,
  );
  figure("a host looked at again", eachUs / 1000, "ms");
  await pool.query("vacuum analyze site");
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

async function measurePages(): Promise<void> {
  console.log("\n| order | filter | matches | ms, median | 95th | most |");
  console.log("|---|---|---|---|---|---|");
  for (const order of ["up", "down"]) for (const sort of siteSorts) await measure({ sort, order }, figure);
  for (const filter of filters)
    for (const sort of ["failures", "pages", "fetched"]) await measure({ ...filter, sort });
}

async function measure(asked: Readonly<Record<string, string>>, state?: typeof figure): Promise<void> {
  const times: number[] = [];
  let matches = "";
  let after = "";
  for (let ask = -3; ask < asks; ask++) {
    const beganMs = performance.now();
    const answer = await sitesAnswer(pool, questionOf({ ...asked, after }), now);
    if (ask >= 0) times.push(performance.now() - beganMs);
    // On through the list, from page to page, and then from its beginning.
    after = answer.next ?? "";
    matches = `${answer.isWholeCount ? "" : "> "}${answer.count}`;
  }
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(share * times.length))]!;
  const { sort, order = "", ...filter } = asked;
  const words = Object.entries(filter)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
  console.log(
    `| ${sort} ${order} | ${words} | ${matches} | ${at(0.5).toFixed(1)} | ${at(0.95).toFixed(1)} | ${times.at(-1)!.toFixed(0)} |`,
  );
  state?.(`by ${sort} ${order}, 95th`, at(0.95), "ms");
}

/** From the tables that the crawl works on, as one would write it. */
async function measurePlain(): Promise<void> {
  const page = (where: string, order: string) => `
    select h.host, c.name, n.country, o.name, h.good_pages, h.fetched_bytes, d.rtt_ms
    from frontier_host h
    left join delegation d on d.subnet_id = h.subnet_id and h.finer_id is null
    left join crawler c on c.crawler_id = d.crawler_id
    left join subnet n on n.subnet_id = h.subnet_id
    left join holder o on o.holder_id = n.holder_id
    where ${where}
    order by ${order}, h.host_hash
    limit 51`;
  const plain: readonly (readonly [string, string])[] = [
    ["pages down", page("true", "h.good_pages + h.near_duplicates desc")],
    ["rtt down", page("true", "d.rtt_ms desc nulls last")],
    [
      "pages, country DE, language de",
      page("n.country = 'DE' and h.language = 'de'", "h.good_pages + h.near_duplicates desc"),
    ],
    ["pages, crawler crawler-90", page("c.name = 'crawler-90'", "h.good_pages + h.near_duplicates desc")],
  ];
  console.log("\n| the plain way | ms, median of 5 | most |\n|---|---|---|");
  for (const [name, text] of plain) {
    const times: number[] = [];
    for (let ask = 0; ask < 5; ask++) {
      const beganMs = performance.now();
      await pool.query(text);
      times.push(performance.now() - beganMs);
    }
    times.sort((a, b) => a - b);
    console.log(`| ${name} | ${times[2]!.toFixed(0)} | ${times[4]!.toFixed(0)} |`);
  }
  console.log(`\n${madeSites}`);
}

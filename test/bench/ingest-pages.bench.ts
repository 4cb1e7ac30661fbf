/**
 * What it costs to take in real pages: CPU of Postgres and of the coordinator, write-ahead log and disk, a page, at first
 * sight and at four later visits, with autovacuum at work. Batches, of 100 unless told otherwise, go through the flow that the gateway uses.
 *
 * The pages are those of the shared data (NEARCRAWL_DATA, suites/pages), extracted by the crawler; without them, made-up
 * ones of about their size, and the bench says so. Each bench host has the pages of one site: five of its URLs are
 * fetched, three fifths of the links within a host are the same on all of its pages (its navigation), the others are a
 * page's own. Of the other hosts that a page links to, a third are the real ones, which all sites share, and the others one
 * of 300 like it. Of later visits a third finds nothing new (304), a third another body with the same text and links,
 * and a third a tenth of the words and two links changed.
 *
 * Linux: the CPU of Postgres' processes is read from /proc; of a server elsewhere (DATABASE_URL) it is not known.
 * NEARCRAWL_BENCH_POSTGRES: lines for the embedded server's postgresql.conf, such as "wal_level = minimal".
 * Run: npm run bench -- ingest-pages [pages [visits [hosts of a batch [pages of each]]]] (3000 5 20 5; 1 1: each page alone)
 */
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createCrawlerStore } from "#coordinator/crawlers/crawler-store";
import { createDelegationStore } from "#coordinator/delegation/store";
import { createFrontierStore } from "#coordinator/frontier/frontier-store";
import { KnownUrls } from "#coordinator/frontier/known-urls";
import { applyLinks, defaultOutboxBounds } from "#coordinator/frontier/link-outbox-store";
import { defaultRecrawlSettings } from "#coordinator/recrawl/visit-findings";
import { createResultStore } from "#coordinator/results/result-store";
import { takeResults } from "#coordinator/results/take-results";
import { asLeaseId, asSubnetId, type CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import { urlKeyOf } from "#core/url-key";
import { openDatabase } from "#db/connect";
import { prepareCluster } from "#db/embedded-cluster";
import { readPidFile, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import type { FetchResult, PageExtract } from "#protocol/result";
import { sharedData } from "../support/shared-data.ts";
import { resultOf } from "./extracted-result.ts";
import { hexOf, madeUpResult } from "./made-up-result.ts";

const pages = Number(process.argv[2] ?? 3000);
const visits = Number(process.argv[3] ?? 5);
const hostsPerBatch = Number(process.argv[4] ?? 20);
const urlsPerHost = Number(process.argv[5] ?? 5);
const pagesPerBatch = urlsPerHost * hostsPerBatch;
const batches = Math.ceil(pages / pagesPerBatch);
/** They fill caches and the first pages of every table, and are not in the figures. */
const warmUpBatches = Math.ceil(500 / pagesPerBatch);
/** Pages with fewer are left out: with those above it, the mean is the 106 links of a page of the web. */
const fewestLinks = 5;
const navigationShare = 0.6;
const sharedHosts = 1 / 3;
const likeEachHost = 300;
const ticksPerSecond = 100;
const scope = { pagesPerHost: 1000, maxDepth: 8, admitNewHosts: true };
/** Of 1,000 results, as in a busy second. */
const batchesPerBite = Math.ceil(1000 / pagesPerBatch);
const spoolId = "00000000-0000-4000-8000-000000000001";

const ms = (value: number) => value.toFixed(2).padStart(7);
const kb = (bytes: number) => (bytes / 1024).toFixed(1).padStart(8);
const header = `         Postgres Node   both  vacuum  WAL KB  with vac  pages  records  disk KB  links`;

const random = seededRandom(1);
const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const ownSettings = process.env.NEARCRAWL_BENCH_POSTGRES;
if (ownSettings !== undefined) {
  const { dataFolder } = await prepareCluster(home);
  appendFileSync(join(dataFolder, "postgresql.conf"), `${ownSettings}\n`);
}
const database = await openDatabase({
  databaseUrl: process.env.DATABASE_URL ?? null,
  home,
  schema: `bench_${process.pid}`,
  // All in one backend, whose CPU can be read.
  maxConnections: 1,
});
const { pool } = database;
const isEmbedded = process.env.DATABASE_URL === undefined;
const postmaster = isEmbedded ? readPidFile(home)!.pid : null;
const samples = await samplePages();
const sites = Array.from({ length: (batches + warmUpBatches) * hostsPerBatch }, (_, site) => siteOf(site));
const known = new KnownUrls();
const store = createResultStore(pool, known);
let batchesTaken = 0;
let sequence = 0;

try {
  await migrate(database);
  // A minute between its looks is longer than a step takes.
  if (isEmbedded) await pool.query("alter system set autovacuum_naptime = '1s'");
  if (isEmbedded) await pool.query("select pg_reload_conf()");
  if (isEmbedded) await pool.query("create extension pg_walinspect with schema public");
  const crawlerId = await createCrawlerStore(pool).register({ name: "north", keyHash: "k" });
  await pool.query("insert into registry_generation (state, applied_at) values ('applied', now())");
  const { rows } = await pool.query<{ subnet_id: number }>(
    `insert into subnet (first_address, last_address, registry, added_in)
     select '198.51.100.0', '198.51.100.255', 'ripencc', max(generation) from registry_generation
     returning subnet_id`,
  );
  const subnetId = asSubnetId(rows[0]!.subnet_id);
  await createDelegationStore(pool).delegateOwnSubnet(subnetId, crawlerId, new Date());
  console.log(`${batches * pagesPerBatch} pages in ${batches} batches; a page:`);

  for (let batch = 0; batch < warmUpBatches; batch++) await take(batch, 1, batch === warmUpBatches - 1);
  const later = Array.from({ length: batches }, (_, batch) => warmUpBatches + batch);
  const sizes: Sizes[] = [await sizesOf()];
  console.log(header);
  for (let visit = 1; visit <= visits; visit++) {
    await pool.query("checkpoint");
    const before = await measured();
    let [coordinatorMs, backendMs, walBytes, ends] = [0, 0, 0, 0];
    for (const batch of later) {
      const took = await take(batch, visit, batch === later.at(-1));
      coordinatorMs += took.coordinatorMs;
      backendMs += took.backendMs;
      walBytes += took.walBytes;
      ends += took.links;
    }
    await autovacuumRests();
    const after = await measured();
    sizes.push(await sizesOf());
    const each = (value: number) => value / (batches * pagesPerBatch);
    const disk = total(sizes.at(-1)!) - total(sizes.at(-2)!);
    console.log(
      [
        `visit ${visit}`.padEnd(8),
        ms(each(backendMs)),
        ms(each(coordinatorMs)),
        ms(each(backendMs + coordinatorMs)),
        ms(each(after.backgroundMs - before.backgroundMs)),
        kb(each(walBytes)),
        kb(each(after.walBytes - before.walBytes)),
        each(after.fullPages - before.fullPages)
          .toFixed(2)
          .padStart(6),
        kb(each(await recordBytes(before.at, after.at))),
        kb(each(disk)),
        each(ends).toFixed(0).padStart(6),
      ].join(" "),
    );
  }
  printSizes(sizes);
  await printHotUpdates();
  console.log(
    `load average ${loadavg()
      .map((one) => one.toFixed(1))
      .join(", ")}`,
  );

  async function take(batch: number, visit: number, isLast: boolean) {
    const results = await leasedBatch(crawlerId, subnetId, batch, visit);
    const { pid } = (await pool.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!;
    const walBefore = await walPosition();
    const before = [processorMs(pid), ownCpuMs()] as const;
    const taken = await takeResults(
      { crawlerId, spoolId, results },
      store,
      { scope, recrawl: defaultRecrawlSettings },
      new Date(),
    );
    // What the batch does to other hosts is summed over so many batches.
    batchesTaken += 1;
    if (batchesTaken % batchesPerBite === 0 || isLast) {
      while ((await applyLinks(pool, { ...defaultOutboxBounds, scope, known }, new Date())) !== null);
    }
    const after = [processorMs(pid), ownCpuMs()] as const;
    if (taken.stored !== pagesPerBatch)
      throw new Error(`of ${pagesPerBatch} results ${taken.stored} were stored`);
    return {
      backendMs: after[0] - before[0],
      coordinatorMs: after[1] - before[1],
      walBytes: (await walPosition()) - walBefore,
      links: results.reduce((sum, { result }) => sum + (result.page?.links.length ?? 0), 0),
    };
  }
} finally {
  await pool.query(`drop schema "${database.schema}" cascade`);
  await database.close();
  if (isEmbedded) await stopEmbeddedPostgres(home);
  rmSync(home, { recursive: true, force: true });
}
process.exit();

// The sites and what is fetched of them.

interface Site {
  readonly number: number;
  readonly host: string;
  readonly urls: readonly string[];
  /** Of each URL: as it was last fetched. */
  readonly extracts: PageExtract[];
}

async function samplePages(): Promise<FetchResult[]> {
  const folder = sharedData("suites/pages");
  if (folder === null) return Array.from({ length: 200 }, (_, at) => madeUpPage(at));
  const entries = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")) as {
    readonly file: string;
    readonly url: string;
  }[];
  const results: FetchResult[] = [];
  for (const { file, url } of entries) {
    const result = await resultOf(url, readFileSync(join(folder, file)));
    if ((result.page?.links.length ?? 0) >= fewestLinks) results.push(result);
  }
  const mean = results.reduce((sum, { page }) => sum + page!.links.length, 0) / results.length;
  console.log(`${results.length} real pages with ${mean.toFixed(0)} links each on average`);
  return results;
}

/** Where the real ones are not at hand. */
function madeUpPage(at: number): FetchResult {
  const links = Array.from(
    { length: 106 },
    (_, link) =>
      `http://${link < 74 ? `made-up-${at}` : `other-${(at * 7 + link) % 14}`}.example/a-path-of-some-words/${at}-${link}`,
  );
  return madeUpResult(`http://made-up-${at}.example/`, links, random);
}

function siteOf(site: number): Site {
  const host = `site-${site}.example`;
  const template = samples[Math.floor(random() * samples.length)]!;
  const navigation = pathsWithin(template);
  const urls = Array.from({ length: urlsPerHost }, (_, page) => `http://${host}/page-${page}`);
  const extracts = urls.map((_, page) => {
    const sample = samples[Math.floor(random() * samples.length)]!;
    const sampleHost = new URL(sample.url).host;
    let within = 0;
    const ownLinks = sample.page!.links.filter(({ url }) => new URL(url).host === sampleHost).length;
    const links = sample.page!.links.map((link) => {
      const { host: linkHost, pathname, search } = new URL(link.url);
      if (linkHost !== sampleHost) return { ...link, url: otherHost(link.url, linkHost, site) };
      const at = within++;
      const path = at < navigationShare * ownLinks ? navigation[at] : undefined;
      return { ...link, url: `http://${host}${path ?? `/of-${page}${pathname}${search}`}` };
    });
    return { ...sample.page!, links, digest: hex(64), simhash: hex(16) };
  });
  return { number: site, host, urls, extracts };
}

function pathsWithin({ url, page }: FetchResult): string[] {
  const host = new URL(url).host;
  return page!.links
    .map((link) => new URL(link.url))
    .filter((one) => one.host === host)
    .map((one) => one.pathname + one.search);
}

/** The same one for all links of a site to that host. */
function otherHost(url: string, host: string, site: number): string {
  const chance = seededRandom(
    [...host].reduce((sum, letter) => (31 * sum + letter.charCodeAt(0)) % 1e9, site),
  );
  if (chance() < sharedHosts) return url;
  return url.replace(`//${host}`, `//like-${Math.floor(chance() ** 2 * likeEachHost)}.${host}`);
}

/** What a visit finds. */
function visited(site: Site, page: number, visit: number): FetchResult {
  const kind =
    visit === 1
      ? "first"
      : (["unchanged", "other-bytes", "changed"] as const)[(page + visit + site.number) % 3]!;
  const before = site.extracts[page]!;
  const after =
    kind === "changed" ? changed(before, `${page}-${visit}`, site.host) : { ...before, digest: hex(64) };
  if (kind !== "unchanged") site.extracts[page] = after;
  const sample = samples[0]!;
  return {
    ...sample,
    url: site.urls[page]!,
    fetchedAt: new Date().toISOString(),
    outcome: kind === "unchanged" ? { type: "unchanged", status: 304 } : sample.outcome,
    etag: '"one"',
    page: kind === "unchanged" ? null : after,
  };
}

function changed(page: PageExtract, name: string, host: string): PageExtract {
  const lexemes = page.lexemes.split(" ");
  const kept = lexemes.filter((_, at) => at % 10 !== 0);
  const came = lexemes.flatMap((_, at) =>
    at % 10 === 0 ? [`'new${Math.floor(random() * 1e5)}x':${at + 1}`] : [],
  );
  const links = page.links.map((link, at) =>
    at === 1 || at === page.links.length - 1 ? { ...link, url: `http://${host}/came-${name}-${at}` } : link,
  );
  return {
    ...page,
    lexemes: [...kept, ...new Map(came.map((one) => [one.split(":")[0], one])).values()].join(" "),
    title: `${page.title.slice(0, 100)} ${name}`,
    links,
    digest: hex(64),
    simhash: hex(16),
  };
}

async function leasedBatch(
  crawlerId: CrawlerId,
  subnetId: ReturnType<typeof asSubnetId>,
  batch: number,
  visit: number,
) {
  const frontier = createFrontierStore(pool);
  const own = sites.slice(batch * hostsPerBatch, (batch + 1) * hostsPerBatch);
  const hosts = own.map(({ host }) => host);
  const urls = own.flatMap((site) => site.urls);
  const now = new Date();
  if (visit === 1) {
    await frontier.admit(
      urls.map((url) => ({ key: keyOf(url), depth: 0 })),
      scope,
      now,
    );
    await frontier.saveResolutions(
      hosts.map((host) => ({
        type: "resolved",
        host,
        addresses: ["198.51.100.7"],
        subnetId,
        ttlSeconds: 86_400,
      })),
      now,
    );
  }
  // What was taken before is due as well, and left alone. Hosts that are merely linked to are not resolved.
  const keys = urls.map(keyOf);
  await pool.query(
    "update frontier_host set not_before = 'infinity' where not_before < 'infinity' and state = 'resolved'",
  );
  await pool.query(
    "update frontier_host set not_before = '-infinity', due_at = $2 where host_hash = any($1)",
    [keys.map((key) => key.hostHash), new Date(now.getTime() - 1e6)],
  );
  await pool.query(
    `update frontier_url set next_fetch_at = $2
     where host_hash = any($1) and url_hash = any($3)`,
    [keys.map((key) => key.hostHash), new Date(now.getTime() - 1e6), keys.map((key) => key.urlHash)],
  );
  const leases = await frontier.leaseHosts({
    crawlerId,
    hosts: hostsPerBatch,
    urlsPerHost,
    leaseSeconds: 600,
    now,
  });
  const byHost = new Map(own.map((site) => [site.host, site]));
  return leases.flatMap(({ leaseId, host, urls: held }) =>
    held.map(({ url }) => {
      sequence += 1;
      const site = byHost.get(host)!;
      const page = site.urls.indexOf(url);
      if (page < 0) throw new Error(`${url} was leased`);
      return { sequence, leaseId: asLeaseId(leaseId), result: visited(site, page, visit), wireBytes: 6000 };
    }),
  );
}

function keyOf(url: string) {
  const key = urlKeyOf(url);
  if (typeof key === "string") throw new Error(`${url}: ${key}`);
  return key;
}

function hex(digits: number): string {
  return hexOf(digits, random);
}

// What it took.

/** Time on a processor, ms (Documentation/scheduler/sched-stats.rst). */
function processorMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  } catch {
    // A server elsewhere.
    return Number.NaN;
  }
}

function ownCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

async function walPosition(): Promise<number> {
  const { rows } = await pool.query<{ at: number }>(
    "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as at",
  );
  return rows[0]!.at;
}

async function measured() {
  const { rows } = await pool.query<{ wal: number; full: number }>(
    "select wal_bytes::float8 as wal, wal_fpi::float8 as full from pg_stat_wal",
  );
  const at = await pool.query<{ lsn: string }>("select pg_current_wal_insert_lsn()::text as lsn");
  return {
    walBytes: rows[0]!.wal,
    fullPages: rows[0]!.full,
    backgroundMs: backgroundMs(),
    at: at.rows[0]!.lsn,
  };
}

/** Of all that was logged, without whole pages; pg_walinspect tells. */
async function recordBytes(from: string, to: string): Promise<number> {
  if (!isEmbedded) return Number.NaN;
  const { rows } = await pool.query<{ bytes: number }>(
    "select sum(record_size)::float8 as bytes from public.pg_get_wal_stats($1::pg_lsn, $2::pg_lsn, false)",
    [from, to],
  );
  return rows[0]!.bytes;
}

/** How many of a table's updates wrote no index (HOT). */
async function printHotUpdates(): Promise<void> {
  const { rows } = await pool.query<{ name: string; updates: number; share: number }>(
    `select p.relname as name, sum(s.n_tup_upd)::float8 as updates,
       (100 * sum(s.n_tup_hot_upd) / nullif(sum(s.n_tup_upd), 0))::float8 as share
     from pg_stat_user_tables s
     join pg_inherits i on i.inhrelid = s.relid
     join pg_class p on p.oid = i.inhparent
     where s.schemaname = current_schema()
     group by 1
     having sum(s.n_tup_upd) > 100
     order by 2 desc`,
  );
  for (const { name, updates, share } of rows)
    console.log(`${name}: ${updates} updates, ${share.toFixed(0)} % of them in place`);
}

/** Of autovacuum: its launcher, and its workers, which have ended and are in the postmaster's account. */
function backgroundMs(): number {
  if (postmaster === null) return Number.NaN;
  const stat = readFileSync(`/proc/${postmaster}/stat`, "utf8").split(") ")[1]!.split(" ");
  const endedMs = ((Number(stat[13]) + Number(stat[14])) * 1000) / ticksPerSecond;
  return endedMs;
}

/** Waits until autovacuum has had nothing to do for a while. */
async function autovacuumRests(): Promise<void> {
  if (!isEmbedded) return;
  for (let quiet = 0, looks = 0; quiet < 4 && looks < 60; looks++) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const { rows } = await pool.query(
      "select from pg_stat_activity where backend_type = 'autovacuum worker' and state is not null",
    );
    quiet = rows.length === 0 ? quiet + 1 : 0;
  }
}

type Sizes = ReadonlyMap<string, number>;

/** Of each table and index, its partitions together. */
async function sizesOf(): Promise<Sizes> {
  const { rows } = await pool.query<{ name: string; bytes: number }>(
    `select coalesce(parent.relname || ' (index)', case when t.relkind = 'i' then i.relname || ' (index)' end,
         p.relname, t.relname) as name,
       sum(case when t.relkind = 'i' then pg_relation_size(t.oid) else pg_table_size(t.oid) end)::float8 as bytes
     from pg_class t
     left join pg_index x on x.indexrelid = t.oid
     left join pg_class i on i.oid = t.oid and t.relkind = 'i'
     left join pg_inherits h on h.inhrelid = t.oid
     left join pg_class p on p.oid = h.inhparent and t.relkind = 'r'
     left join pg_class parent on parent.oid = h.inhparent and t.relkind = 'i'
     where t.relnamespace = current_schema()::regnamespace and t.relkind in ('r', 'i')
     group by 1`,
  );
  return new Map(rows.map(({ name, bytes }) => [name, bytes]));
}

function total(sizes: Sizes): number {
  return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
}

function printSizes(sizes: readonly Sizes[]): void {
  const count = batches * pagesPerBatch;
  const first = (name: string, visit: number) =>
    ((sizes[visit]!.get(name) ?? 0) - (sizes[0]!.get(name) ?? 0)) / count / 1024;
  const names = [...sizes.at(-1)!.keys()].sort((a, b) => first(b, visits) - first(a, visits));
  console.log(`\n${"KB a page on disk after visit".padEnd(44)} 1      2      3      4      5`);
  for (const name of names.slice(0, 30)) {
    const cells = Array.from({ length: visits }, (_, visit) =>
      first(name, visit + 1)
        .toFixed(2)
        .padStart(6),
    );
    console.log(`${name.padEnd(40)} ${cells.join(" ")}`);
  }
}

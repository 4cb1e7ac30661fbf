/**
 * What slices of the web cost: the same results taken in with 1, 2 and 4 slices, on two Postgres servers of their own each time
 * (the even slices on the first, the odd ones on the second), and the same work handed out and searches answered before and
 * behind it. On two cores more slices cannot be faster: what is told is processor time, statements, and what slices send one
 * another.
 *
 * Pages are made up as the real ones are on average: 106 links, of which 32 lead to other hosts: a quarter of those to hosts
 * of this crawl, whichever slice has them, the others to pages of hosts that are not crawled here. A batch of 100 results has
 * five pages each of 20 hosts, of all slices. After ten batches, which is a busy second, all outboxes are applied and what they
 * have for other slices is shipped, until nothing waits. The numbers of slices take turns after that, so that what else the
 * machine does meets all of them; the first round fills caches and counts for nothing. Postgres' processor time is that of
 * the backends of this process; what replicates the shared tables, autovacuum and other background work are told apart.
 * Upkeep by the clock (changes' numbers, the index' facts, lists of sites) is not in it. Linux: times are from /proc.
 *
 * Run: npm run bench -- slices [--pages 4000] [--rounds 3] [--searches 100] [--apart]
 *   --apart: each batch has results of one slice only, as where crawlers' work lies in one
 */
import { readdirSync, readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { Client } from "pg";
import { KnownUrls } from "#coordinator/frontier/known-urls";
import { defaultRecrawlSettings } from "#coordinator/recrawl/visit-findings";
import { takeResults } from "#coordinator/results/take-results";
import { searchPages } from "#coordinator/search/search";
import { createReports } from "#coordinator/slices/reports-reads";
import { nothingShipped, type Shipped, sumOfShipped } from "#coordinator/slices/shipment-store";
import type { CrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import type { FetchResult } from "#protocol/result";
import { SliceServers } from "../support/slice-servers.ts";
import { addSlices, type SlicedWorld, slicedWorld } from "../support/sliced-world.ts";
import { keyOf, scope, seeds, spoolId, subnet } from "../support/store-world.ts";
import { until } from "../support/until.ts";
import { figure } from "./figure.ts";
import { madeUpResult, madeUpWord } from "./made-up-result.ts";
import { serverPid } from "./registry/processor-time.ts";

const { values: options } = parseArgs({
  options: {
    pages: { type: "string", default: "4000" },
    rounds: { type: "string", default: "3" },
    searches: { type: "string", default: "100" },
    apart: { type: "boolean", default: false },
  },
});
const [pages, rounds, searches] = [options.pages, options.rounds, options.searches].map(Number) as [
  number,
  number,
  number,
];
const counts = [1, 2, 4] as const;
const urlsPerHost = 20;
const hostsPerBatch = 20;
const urlsOfBatch = 5;
const pagesPerBatch = hostsPerBatch * urlsOfBatch;
const batchesPerBite = 10;
const hostsPerRound = pages / urlsPerHost;
const roomy = { ...scope, pagesPerHost: 10_000, maxDepth: 8 };
const leasesPerAsk = 20;
const searchesTogether = 20;

if (pages % (pagesPerBatch * batchesPerBite) !== 0)
  throw new Error(`--pages ${pages}: must be a multiple of ${pagesPerBatch * batchesPerBite}`);

/** Of this process: every query of every connection, `begin` and `commit` included. */
let statements = 0;
const { query } = Client.prototype;
Client.prototype.query = function counted(this: Client, ...args: unknown[]) {
  statements += 1;
  return (query as (...given: unknown[]) => unknown).apply(this, args);
} as typeof query;

/** Processor time, ms, and what was asked and sent. */
interface Cost {
  readonly own: number;
  readonly backends: number;
  /** Of the shared tables, to and at the second server. */
  readonly replication: number;
  /** With whatever else ended meanwhile. */
  readonly autovacuum: number;
  /** Checkpoints, the log, reads for others. */
  readonly background: number;
  readonly statements: number;
  readonly shipped: Shipped;
}

interface Side {
  readonly slices: number;
  readonly servers: SliceServers;
  readonly world: SlicedWorld;
  readonly crawlerId: CrawlerId;
  /** First processes. */
  readonly postmasters: readonly number[];
  sequence: number;
  readonly taking: Cost[];
  readonly leasing: (Cost & { readonly leases: number })[];
  readonly searching: Cost[];
}

const sides: Side[] = [];
try {
  for (const slices of counts) sides.push(await beginSide(slices));
  for (let round = 0; round <= rounds; round++) await takeRound(round);
  await search();
  report();
} finally {
  for (const { world, servers } of sides) {
    await world.close();
    await servers.close();
  }
}
process.exit();

async function beginSide(slices: number): Promise<Side> {
  const servers = await SliceServers.begin();
  const world = await slicedWorld(servers.shared, { known: new KnownUrls(), scope: roomy });
  await addSlices(servers, slices);
  await world.moveAll();
  const crawlerId = await world.crawlers.register({ name: "north", keyHash: "k" });
  const subnetId = await subnet(servers.shared.pool, "16.0.0.0", "16.255.255.255");
  await world.delegations.delegateOwnSubnet(subnetId, crawlerId, new Date());
  const second = await servers.open(1, { schema: "public" });
  const isThere = async () =>
    (await world.rows("select from delegation join crawler using (crawler_id)")).length === slices;
  await until(isThere, 10_000);
  return {
    ...{ slices, servers, world, crawlerId, sequence: 0, taking: [], leasing: [], searching: [] },
    postmasters: [await serverPid(servers.shared.pool), await serverPid(second.pool)],
  };
}

/** The numbers of slices, another one first each time. */
function inTurn(turn: number): Side[] {
  const first = turn % sides.length;
  return [...sides.slice(first), ...sides.slice(0, first)];
}

async function takeRound(round: number): Promise<void> {
  const hosts = Array.from({ length: hostsPerRound }, (_, index) => `h${round}-${index}.example`);
  const leased = new Map<Side, ReadonlyMap<string, string>>();
  for (const side of inTurn(round)) {
    await makeDue(side, hosts);
    leased.set(side, await lease(side, hosts.length, round > 0));
  }
  const bites = pages / pagesPerBatch / batchesPerBite;
  for (let bite = 0; bite < bites; bite++) {
    const results = resultsOf(hosts, bite);
    for (const side of inTurn(bite)) {
      const batches = batchesOf(side, results);
      const cost = await costOf(side, async () => await take(side, batches, leased.get(side)!));
      if (round > 0) side.taking.push(cost);
    }
  }
  for (const { world } of sides) await world.rows("analyze");
}

/** All of them resolved, at addresses of their own; what earlier rounds left due is left alone. */
async function makeDue({ world }: Side, hosts: readonly string[]): Promise<void> {
  const now = new Date();
  const [{ subnet_id: subnetId }] = (
    await world.shared.pool.query<{ subnet_id: never }>("select subnet_id from subnet")
  ).rows as [{ subnet_id: never }];
  const urls = hosts.flatMap((host) =>
    Array.from({ length: urlsPerHost }, (_, page) => `http://${host}/page-${page}`),
  );
  await world.frontier.admit(seeds(...urls), roomy, now);
  await world.rows("update frontier_host set not_before = 'infinity' where state = 'resolved'");
  await world.frontier.saveResolutions(
    hosts.map((host) => ({
      ...{ type: "resolved", host, addresses: [addressOf(host)], subnetId, ttlSeconds: 86_400 },
    })),
    now,
  );
  await world.rows("analyze frontier_host, frontier_url");
}

function addressOf(host: string): string {
  const [round, index] = host.match(/\d+/g)!.map(Number) as [number, number];
  return `16.${round}.${index >> 8}.${index & 255}`;
}

/** By host, the lease's number. */
async function lease(side: Side, hosts: number, isMeasured: boolean): Promise<Map<string, string>> {
  const { world, crawlerId } = side;
  const leases = new Map<string, string>();
  const ask = {
    ...{ crawlerId, hosts: leasesPerAsk, urlsPerHost, leaseSeconds: 3600, addressRestSeconds: 0 },
  };
  while (leases.size < hosts) {
    let found = 0;
    const cost = await costOf(side, async () => {
      for (const { host, leaseId } of await world.frontier.leaseHosts({ ...ask, now: new Date() })) {
        leases.set(host, leaseId);
        found += 1;
      }
      return nothingShipped;
    });
    if (found === 0) throw new Error(`of ${hosts} hosts ${leases.size} were leased`);
    if (isMeasured) side.leasing.push({ ...cost, leases: found });
  }
  return leases;
}

/** The same for all numbers of slices. */
function resultsOf(hosts: readonly string[], bite: number): FetchResult[] {
  return Array.from({ length: batchesPerBite }, (_, at) => bite * batchesPerBite + at).flatMap((batch) => {
    const groups = hosts.length / hostsPerBatch;
    const first = (batch % groups) * hostsPerBatch;
    const firstPage = Math.floor(batch / groups) * urlsOfBatch;
    return hosts
      .slice(first, first + hostsPerBatch)
      .flatMap((host) =>
        Array.from({ length: urlsOfBatch }, (_, page) => resultOf(host, firstPage + page, hosts)),
      );
  });
}

function resultOf(host: string, page: number, hosts: readonly string[]): FetchResult {
  const random = seededRandom(
    [...`${host}${page}`].reduce((sum, letter) => (31 * sum + letter.charCodeAt(0)) % 1e9, 7),
  );
  const any = (count: number) => Math.floor(random() * count);
  const links = Array.from({ length: 106 }, (_, link) => {
    // Three fifths of those within a host are its navigation.
    if (link < 44) return `http://${host}/a-path-of-some-words/${link}`;
    if (link < 74) return `http://${host}/a-path-of-some-words/of-${page}/${link}`;
    if (link < 82) return `http://${hosts[any(hosts.length)]}/page-${any(urlsPerHost)}`;
    return `http://other-${Math.floor(random() ** 2 * 3000)}.example/a-path-of-some-words/${any(40)}`;
  });
  return madeUpResult(`http://${host}/page-${page}`, links, random);
}

function batchesOf({ world, slices }: Side, results: readonly FetchResult[]): FetchResult[][] {
  const ordered =
    options.apart && slices > 1 ? results.toSorted((a, b) => sliceOf(world, a) - sliceOf(world, b)) : results;
  return Array.from({ length: ordered.length / pagesPerBatch }, (_, at) =>
    ordered.slice(at * pagesPerBatch, (at + 1) * pagesPerBatch),
  );
}

function sliceOf(world: SlicedWorld, { url }: FetchResult): number {
  return world.slices.ofHost(keyOf(url).hostHash).number;
}

async function take(
  side: Side,
  batches: readonly (readonly FetchResult[])[],
  leases: ReadonlyMap<string, string>,
): Promise<Shipped> {
  const { world, crawlerId } = side;
  for (const batch of batches) {
    const results = batch.map((result) => {
      side.sequence += 1;
      const leaseId = leases.get(new URL(result.url).host)! as never;
      return { sequence: side.sequence, leaseId, result, wireBytes: 6000 };
    });
    const taken = await takeResults(
      { crawlerId, spoolId, results },
      world.results,
      { scope: roomy, recrawl: defaultRecrawlSettings },
      new Date(),
    );
    if (taken.stored !== batch.length)
      throw new Error(`of ${batch.length} results ${taken.stored} were stored`);
  }
  return await world.carryAll(new Date());
}

/** Each question once of each, in turns. */
async function search(): Promise<void> {
  const random = seededRandom(3);
  const reports = new Map(
    sides.map((side) => [side, createReports(side.world.slices, () => performance.now())]),
  );
  // The first ones fill caches.
  for (let at = -1; at < searches / searchesTogether; at++) {
    const questions = Array.from(
      { length: searchesTogether },
      () => `${madeUpWord(random)} ${madeUpWord(random)}`,
    );
    for (const side of inTurn(at + 1)) {
      const cost = await costOf(side, async () => {
        for (const words of questions) await searchPages(reports.get(side)!, words, {}, new Date());
        return nothingShipped;
      });
      if (at >= 0) side.searching.push(cost);
    }
  }
}

// What it took.

type Kind = "backends" | "replication" | "autovacuum" | "background";

async function costOf({ postmasters }: Side, work: () => Promise<Shipped>): Promise<Cost> {
  const before = { own: ownMs(), asked: statements, processes: processesOf(postmasters) };
  const shipped = await work();
  const own = ownMs() - before.own;
  const asked = statements - before.asked;
  const spent = { backends: 0, replication: 0, autovacuum: 0, background: 0 };
  for (const [name, { kind, ms }] of processesOf(postmasters))
    spent[kind] += ms - (before.processes.get(name)?.ms ?? 0);
  return { own, statements: asked, shipped, ...spent };
}

function ownMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function processesOf(
  postmasters: readonly number[],
): Map<string, { readonly kind: Kind; readonly ms: number }> {
  const found = new Map<string, { kind: Kind; ms: number }>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ")
        .map(Number);
      // proc(5): of children that ended and were waited for, in ticks of 10 ms. Autovacuum's workers do.
      if (postmasters.includes(Number(name)))
        found.set(`${name} ended`, { kind: "autovacuum", ms: 10 * (stat[13]! + stat[14]!) });
      if (!postmasters.includes(stat[1]!)) continue;
      // Time on a processor, ns (Documentation/scheduler/sched-stats.rst).
      const ms = Number(readFileSync(`/proc/${name}/schedstat`, "utf8").split(" ")[0]) / 1e6;
      found.set(name, { kind: kindOf(readFileSync(`/proc/${name}/cmdline`, "utf8")), ms });
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
}

function kindOf(title: string): Kind {
  if (/walsender|logical replication/.test(title)) return "replication";
  if (/autovacuum/.test(title)) return "autovacuum";
  return /^postgres: nearcrawl /.test(title) ? "backends" : "background";
}

// What is told of it.

function report(): void {
  const bite = pagesPerBatch * batchesPerBite;
  const baseline = sides[0]!;
  console.log(
    `\n${rounds} rounds of ${pages} results in batches of ${pagesPerBatch}${options.apart ? ", each of one slice" : ""}: medians (least to most) of ${baseline.taking.length} times ${bite}; times in ms of processor time a result, ratios to one slice of the same ${bite}\n`,
  );
  row(["slices", ...sides.map(({ slices }) => String(slices))]);
  row(["---", ...sides.map(() => "---")]);
  const perResult = (name: string, of: (cost: Cost) => number, digits = 2) => {
    row([
      name,
      ...sides.map(({ taking }) =>
        spread(
          taking.map((cost) => of(cost) / bite),
          digits,
        ),
      ),
    ]);
    for (const { slices, taking } of sides)
      figure(`${name}, ${slices} slices`, median(taking.map((cost) => of(cost) / bite)), "a result");
  };
  const ratio = (name: string, of: (cost: Cost) => number, costs: (side: Side) => readonly Cost[]) =>
    row([
      `${name}, of one slice's`,
      ...sides.map((side) => spread(costs(side).map((cost, at) => of(cost) / of(costs(baseline)[at]!)))),
    ]);
  const both = ({ own, backends }: Cost) => own + backends;
  const taking = ({ taking: costs }: Side) => costs;
  perResult("coordinator", ({ own }) => own);
  perResult("Postgres, backends", ({ backends }) => backends);
  ratio("coordinator", ({ own }) => own, taking);
  ratio("backends", ({ backends }) => backends, taking);
  ratio("both", both, taking);
  perResult("Postgres, replication of shared tables", ({ replication }) => replication, 3);
  perResult("Postgres, autovacuum", ({ autovacuum }) => autovacuum);
  perResult("Postgres, other background work", ({ background }) => background);
  perResult("statements", (cost) => cost.statements);
  perResult("links shipped to other slices", ({ shipped }) => shipped.effects, 1);
  perResult("bytes of them", ({ shipped }) => shipped.bytes, 0);
  perResult("shipments", ({ shipped }) => shipped.shipments, 4);

  const leases = ({ leasing }: Side) => leasing;
  row([
    "leases of 20 URLs per second of processor time",
    ...sides.map(({ leasing }) =>
      spread(
        leasing.map((cost) => (1000 * cost.leases) / both(cost)),
        0,
      ),
    ),
  ]);
  ratio("an ask for 20 leases", both, leases);
  row([
    "statements an ask",
    ...sides.map(({ leasing }) =>
      spread(
        leasing.map((cost) => cost.statements),
        0,
      ),
    ),
  ]);
  const searching = ({ searching: costs }: Side) => costs;
  row([
    "a search, ms coordinator",
    ...sides.map(({ searching: costs }) => spread(costs.map(({ own }) => own / searchesTogether))),
  ]);
  row([
    "a search, ms backends",
    ...sides.map(({ searching: costs }) => spread(costs.map(({ backends }) => backends / searchesTogether))),
  ]);
  ratio("a search", both, searching);
  row([
    "statements a search",
    ...sides.map(({ searching: costs }) =>
      spread(
        costs.map((cost) => cost.statements / searchesTogether),
        1,
      ),
    ),
  ]);
  const total = sides.map(({ taking: costs }) =>
    costs.map(({ shipped }) => shipped).reduce(sumOfShipped, nothingShipped),
  );
  row([
    "bytes a link shipped",
    ...total.map(({ bytes, effects }) => (effects === 0 ? "–" : (bytes / effects).toFixed(1))),
  ]);
  row([
    "links a shipment",
    ...total.map(({ shipments, effects }) => (shipments === 0 ? "–" : (effects / shipments).toFixed(0))),
  ]);
  console.log(
    `\nload average ${loadavg()
      .map((one) => one.toFixed(1))
      .join(", ")}`,
  );
}

function row(cells: readonly string[]): void {
  console.log(`| ${cells.join(" | ")} |`);
}

function spread(values: readonly number[], digits = 2): string {
  const [mid, least, most] = [median(values), Math.min(...values), Math.max(...values)].map((value) =>
    value.toFixed(digits),
  );
  return least === most ? `${mid}` : `${mid} (${least} to ${most})`;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

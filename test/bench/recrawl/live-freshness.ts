/**
 * Running fleets on the same changing web, each under one recrawl strategy, at once: crawlers come and go, and how
 * fresh each fleet's index is gets sampled. Beside the strategies run fleets with one interval for all pages, of
 * several lengths. Everything is real but the Internet and the pace of time.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { readCoordinatorConfig } from "#coordinator/config";
import type { RecrawlStrategy } from "#coordinator/recrawl/recrawl-plan";
import { startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import type { Database } from "#db/server-database";
import { generateWorld } from "#ops/world/generate-world";
import type { RunningWorld } from "#ops/world/main";
import { changingWeb, FreshnessMeter, type FreshShares } from "./changing-web.ts";
import { type LiveFleet, startFleet } from "./live-fleet.ts";

export interface LiveRun {
  readonly seed: number;
  readonly strategies: readonly Exclude<RecrawlStrategy, "fixed">[];
  readonly sites: number;
  readonly pagesPerHost: number;
  /** In each fleet at once; as many again take their places one by one. */
  readonly crawlers: number;
  /** Until the measurement begins, and how long it takes. */
  readonly warmUpSeconds: number;
  readonly measuredSeconds: number;
  /** With which all strategies begin, and of all pages together what `optimal` has to divide. */
  readonly intervalSeconds: number;
  /** Of the fleets with one interval for all pages, which they keep. */
  readonly fixedSeconds: readonly number[];
}

export type Sample = FreshShares & { readonly second: number };

export interface LiveFreshness {
  readonly strategy: RecrawlStrategy;
  readonly samples: readonly Sample[];
  /** In the time that was measured. */
  readonly fetchesPerSecond: number;
  /** Of those that could tell, the fetches that found a change. */
  readonly changedShare: number;
  /** Mean time that hosts are behind at the end, in seconds. */
  readonly lateSeconds: number;
  /** Times that the intervals were made anew: before, and while it was measured. */
  readonly plans: readonly [number, number];
  readonly swaps: number;
}

export interface SeedFreshness {
  readonly strategies: readonly LiveFreshness[];
  /** One interval for all pages each; the more fetches the later. */
  readonly fixed: readonly LiveFreshness[];
}

const sampleEverySeconds = 2;

export async function measureFreshness(run: LiveRun): Promise<SeedFreshness> {
  const folder = mkdtempSync(join(tmpdir(), "nearcrawl-freshness-"));
  // The server runs as another user.
  chmodSync(folder, 0o711);
  const fleets: LiveFleet[] = [];
  try {
    const { url } = await startEmbeddedPostgres(folder);
    return await measure(run, { folder, url, fleets });
  } finally {
    await Promise.allSettled(fleets.map((fleet) => fleet.close()));
    await stopEmbeddedPostgres(folder);
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Place {
  readonly folder: string;
  readonly url: string;
  /** Those that run, to be closed. */
  readonly fleets: LiveFleet[];
}

async function measure(run: LiveRun, place: Place): Promise<SeedFreshness> {
  const world = generateWorld({ seed: run.seed, sites: run.sites, crawlers: 2 * run.crawlers });
  // As many changes as fetches, on the average over all pages: their logarithms' variance is 1.64.
  const medianSeconds = run.intervalSeconds * Math.exp(1.64 / 2);
  const changes = changingWeb(run.seed, Date.now(), medianSeconds);
  const start = async (strategy: RecrawlStrategy, name: string, intervalSeconds: number) => {
    const config = (internet: RunningWorld) => configFor(internet, run, { strategy, intervalSeconds });
    const { folder, url: databaseUrl } = place;
    const { crawlers } = run;
    const fleet = await startFleet({ name, folder, databaseUrl, world, changes, config, crawlers });
    place.fleets.push(fleet);
    return { strategy, fleet, meter: new FreshnessMeter(fleet.database.pool, fleet.internet, changes) };
  };
  // One after the other, so that nobody's probes wait; the warm-up begins when all are there.
  const all: Watched[] = [];
  for (const strategy of run.strategies) all.push(await start(strategy, strategy, run.intervalSeconds));
  for (const seconds of run.fixedSeconds) all.push(await start("fixed", `fixed_${seconds}`, seconds));
  const found = await watch(run, all);
  return {
    strategies: found.filter(({ strategy }) => strategy !== "fixed"),
    fixed: found
      .filter(({ strategy }) => strategy === "fixed")
      .toSorted((a, b) => a.fetchesPerSecond - b.fetchesPerSecond),
  };
}

interface Watched {
  readonly strategy: RecrawlStrategy;
  readonly fleet: LiveFleet;
  readonly meter: FreshnessMeter;
}

async function watch(run: LiveRun, all: readonly Watched[]): Promise<LiveFreshness[]> {
  const samples = new Map<Watched, Sample[]>(all.map((one) => [one, []]));
  const swapEverySeconds = Math.floor(run.measuredSeconds / (run.crawlers + 1));
  const startMs = Date.now();
  let from = new Date();
  let swapping: Promise<unknown> = Promise.resolve();
  for (let second = 1; second <= run.warmUpSeconds + run.measuredSeconds; second++) {
    await delay(Math.max(0, startMs + second * 1000 - Date.now()));
    if (second === run.warmUpSeconds) from = new Date();
    const measured = second - run.warmUpSeconds;
    if (measured <= 0) continue;
    if (measured % sampleEverySeconds === 0)
      for (const one of all) samples.get(one)!.push({ second: measured, ...(await one.meter.look()) });
    if (measured % swapEverySeconds === 0)
      swapping = swapping.then(async () => await Promise.all(all.map(({ fleet }) => fleet.swap())));
  }
  await swapping;
  const until = new Date();
  const found = async (one: Watched): Promise<LiveFreshness> => ({
    ...(await figures(one.fleet.database, from, until)),
    strategy: one.strategy,
    samples: samples.get(one)!,
    swaps: one.fleet.swaps(),
  });
  return await Promise.all(all.map(found));
}

/** Nothing is fetched but for the pages: no second fetches for trust, no balance, no rounds for slow answers. */
function configFor(
  internet: RunningWorld,
  run: LiveRun,
  { strategy, intervalSeconds }: { readonly strategy: RecrawlStrategy; readonly intervalSeconds: number },
) {
  return readCoordinatorConfig({
    listen: { host: "127.0.0.1", port: 0 },
    resolvers: [internet.dnsAddress],
    delegation: { expectedCrawlers: run.crawlers, settleSeconds: 20 },
    lease: { addressRestSeconds: 0, urlsPerHost: run.pagesPerHost, seconds: 10 },
    scope: { pagesPerHost: run.pagesPerHost, maxDepth: 100, admitNewHosts: false },
    trust: { share: 0, newcomerShare: 0, watchedShare: 0 },
    balance: { policy: "none" },
    recalibration: { everySeconds: 3600 },
    recrawl: {
      strategy,
      intervalHours: intervalSeconds / 3600,
      shortestHours: 2 / 3600,
      longestDays: (8 * intervalSeconds) / 86_400,
      everySeconds: 3,
      usualChangesPerDay: 86_400 / (intervalSeconds * Math.exp(1.64 / 2)),
    },
    logLevel: "silent",
  });
}

async function figures({ pool }: Database, from: Date, until: Date) {
  const { rows } = await pool.query<{
    fetches: number;
    changed: number;
    told: number;
    before: number;
    since: number;
  }>(
    `select count(*)::int as fetches, (count(*) filter (where changed))::int as changed,
       count(changed)::int as told,
       (select count(*)::int from recrawl_plan where made_at < $1) as before,
       (select count(*)::int from recrawl_plan where made_at >= $1) as since
     from page_fetch where fetched_at >= $1 and fetched_at < $2`,
    [from, until],
  );
  const { fetches, changed, told, before, since } = rows[0]!;
  const { rows: late } = await pool.query<{ seconds: number }>(
    `select coalesce(avg(greatest(0, extract(epoch from now() - due_at))), 0)::float8 as seconds
     from frontier_host where fetched_urls > 0 and state = 'resolved'`,
  );
  return {
    fetchesPerSecond: fetches / ((until.getTime() - from.getTime()) / 1000),
    changedShare: changed / Math.max(1, told),
    plans: [before, since] as const,
    lateSeconds: late[0]!.seconds,
  };
}

/** One chaos run: a fleet, the faults of a plan, rest, and the checks. */
import { setTimeout as delay } from "node:timers/promises";
import type { Pool } from "pg";
import { fetchAgain } from "#coordinator/crawl/frontier/lease-end-writes";
import type { UrlAddress } from "#core/url-key";
import { isConnectionLost } from "#db/server-database";
import { contradictionsIn, damagedIndexes, databaseChecks } from "../support/database-checks.ts";
import * as check from "./checks.ts";
import { applyFault, databaseAnswers, targetWords } from "./faults.ts";
import { ChaosFleet, type Death, type FleetSize, type Programs } from "./fleet.ts";
import { GrowthWatch } from "./growth.ts";
import { areOfOneThing, drawPlan, type FaultKind, type PlannedFault } from "./plan.ts";

export interface ChaosRun extends FleetSize {
  readonly lengthMs: number;
  readonly faultsPerMinute: number;
  readonly kinds?: readonly FaultKind[];
  readonly longestMs?: number;
  /** Pages requested again every ten seconds. */
  readonly wantedAgain: number;
  /** After the faults, the fleet runs until everything is fetched or nothing has moved for this long. */
  readonly stillMs: number;
}

interface DoneFault {
  readonly kind: FaultKind;
  readonly target: string;
  /** From the plan's beginning. */
  readonly atMs: number;
  readonly lastedMs: number;
}

export interface ChaosOutcome {
  readonly seed: number;
  readonly plan: readonly PlannedFault[];
  readonly faults: readonly DoneFault[];
  readonly verdicts: readonly check.Verdict[];
  readonly restedMs: number;
  /** Without the start. */
  readonly seconds: number;
  readonly figures: { readonly urls: number; readonly fetches: number; readonly requests: number };
  /** Whether disks could be filled for real. */
  readonly disks: "mounted" | "limited";
}

type Say = (line: string) => void;

/** `folder` must exist and be empty; the caller removes its contents. Rejects with the signal's reason when it aborts. */
export async function runChaos(
  run: ChaosRun,
  programs: Programs,
  folder: string,
  say: Say,
  stopping: AbortSignal = new AbortController().signal,
): Promise<ChaosOutcome> {
  const fleet = await ChaosFleet.start(run, folder, programs);
  const lateness = new check.LatenessWatch();
  try {
    const broken = breakAndJudge(fleet, run, { lateness, say });
    return await Promise.race([broken, abortOf(stopping)]);
  } finally {
    lateness.stop();
    await fleet.close();
  }
}

function abortOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, fail) => {
    if (signal.aborted) fail(signal.reason);
    signal.addEventListener("abort", () => fail(signal.reason));
  });
}

async function breakAndJudge(
  fleet: ChaosFleet,
  run: ChaosRun,
  { lateness, say }: { readonly lateness: check.LatenessWatch; readonly say: Say },
): Promise<ChaosOutcome> {
  const startMs = performance.now();
  const { seed, sites, crawlers, coordinators, lengthMs } = run;
  const plan = drawPlan(run);
  const size = `${sites} sites, ${crawlers} crawlers, ${coordinators} coordinators`;
  say(`seed ${seed}: ${size}; ${plan.length} faults in ${(lengthMs / 1000).toFixed(0)} s`);
  const over = new AbortController();
  const growth = new GrowthWatch(() =>
    [...fleet.coordinators, ...fleet.crawlers].map(({ process: { name, pid } }) => ({ name, pid })),
  );
  const [{ done, pauses }] = await Promise.all([
    doPlan(fleet, plan, { run, say }).finally(() => {
      over.abort();
      growth.stop();
    }),
    wantAgain(fleet, run, over.signal),
  ]);
  const restedMs = await rest(fleet, run.stillMs, say);
  const totals = await overviewTotals(fleet);
  const verdicts = [...(await judge(fleet, { run, pauses, lateness, totals, faults: done }))];
  if (plan.length === 0)
    verdicts.push(check.verdict("growth", "no process grows all through the run", growth.growing()));
  const figures = await figuresOf(fleet);
  const disks = fleet.databaseDisk.type;
  const seconds = (performance.now() - startMs) / 1000;
  return { seed, plan, faults: done, verdicts, restedMs, seconds, figures, disks };
}

/** A fault waits until the previous one at the same target is undone, which may take longer than planned. */
async function doPlan(
  fleet: ChaosFleet,
  plan: readonly PlannedFault[],
  { run, say }: { readonly run: ChaosRun; readonly say: Say },
): Promise<{ readonly done: readonly DoneFault[]; readonly pauses: readonly check.Pause[] }> {
  const beganMs = performance.now();
  const done: DoneFault[] = [];
  const pauses: check.Pause[] = [];
  const at = () => performance.now() - beganMs;
  const breakAndMend = async (fault: PlannedFault) => {
    const target = targetWords(fleet, fault);
    const [beganAtMs, fromMs] = [at(), Date.now()];
    const undo = await applyFault[fault.kind](fleet, fault);
    say(`${clock(beganAtMs)}  ${fault.kind}: ${target}, for ${(fault.lastsMs / 1000).toFixed(1)} s`);
    await delay(fault.lastsMs);
    await undo();
    say(`${clock(at())}  ${fault.kind}: ${target}, undone`);
    done.push({
      kind: fault.kind,
      target,
      atMs: Math.round(beganAtMs),
      lastedMs: Math.round(at() - beganAtMs),
    });
    if (fault.kind === "stop-crawler") pauses.push({ name: target, fromMs, toMs: Date.now() });
  };
  const underWay: { readonly fault: PlannedFault; readonly end: Promise<void> }[] = [];
  for (const fault of plan) {
    await delay(Math.max(0, fault.atMs - at()));
    const before = underWay.filter((one) => areOfOneThing(one.fault, fault));
    await Promise.allSettled(before.map(({ end }) => end));
    const end = breakAndMend(fault);
    // Its failure is reported when all are over.
    end.catch(() => {});
    underWay.push({ fault, end });
  }
  const ends = await Promise.allSettled(underWay.map(({ end }) => end));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  await delay(Math.max(0, run.lengthMs - at()));
  return { done: done.sort((a, b) => a.atMs - b.atMs), pauses };
}

const wantEveryMs = 10_000;

/** Makes visited pages due again, some of which have changed; skipped while the database is away. */
async function wantAgain(fleet: ChaosFleet, run: ChaosRun, over: AbortSignal): Promise<void> {
  const { pool } = fleet.database;
  for (let at = 1; run.wantedAgain > 0; at += 1) {
    await delay(wantEveryMs, undefined, { signal: over }).catch(() => {});
    if (over.aborted) return;
    try {
      const { rows } = await pool.query<UrlAddress>(
        `select host_hash as "hostHash", url_hash as "urlHash"
         from frontier_url
         where visits > 0
         order by hashint8(url_hash + $1)
         limit $2`,
        [run.seed + at, run.wantedAgain],
      );
      await fetchAgain(pool, rows, new Date());
    } catch (error) {
      if (!isOfOutage(error)) throw error;
    }
  }
}

/** Without connection, or without disk (SQLSTATE 53100 and what a server says that writes nothing: 58xxx, XX000). */
function isOfOutage(error: unknown): boolean {
  return isConnectionLost(error) || /^(53|58|XX)/.test(String((error as { code?: unknown }).code));
}

const stopMs = 60_000;

/**
 * Waits until all reachable pages are fetched and nothing is in transit, or nothing has moved for the given time; then the
 * crawlers stop and return their leases.
 */
async function rest(fleet: ChaosFleet, stillMs: number, say: Say): Promise<number> {
  await fleet.startDatabase();
  await databaseAnswers(fleet);
  const { pool } = fleet.database;
  const beganMs = performance.now();
  const restedMs = () => performance.now() - beganMs;
  let [toldMs, movedMs, last] = [0, 0, ""];
  for (;;) {
    const left = await check.unfetchedUrls(pool, fleet.world);
    const waiting = await waitingIn(pool);
    if (left.length === 0 && waiting === 0) break;
    const now = `${left.length} URLs to be fetched, ${waiting} effects and changes on their way`;
    if (now !== last) [movedMs, last] = [restedMs(), now];
    if (restedMs() - movedMs > stillMs) break;
    if (restedMs() - toldMs > 10_000) {
      toldMs = restedMs();
      say(`rest    ${now}`);
    }
    await delay(250);
  }
  const fetchedMs = restedMs();
  await Promise.all(fleet.crawlers.map(async ({ process }) => await process.stop(stopMs)));
  const stoppedMs = restedMs();
  while ((await openIn(pool)) > 0 && restedMs() - stoppedMs < stillMs) await delay(200);
  return fetchedMs;
}

async function waitingIn(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ waiting: number }>(
    `select (
       (select coalesce(sum(effects), 0) from link_outbox)
       + (select count(*) from page_change_inbox)
       + (select count(*) from frontier_host where state = 'unresolved')
       + (select count(*) from frontier_url u join frontier_host h using (host_hash)
          where u.next_fetch_at <= now() and u.state = 'due' and h.state = 'resolved')
     )::int as waiting`,
  );
  return rows[0]!.waiting;
}

/** Files that the crawlers left behind. */
async function openIn(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ open: number }>(
    `select (
       (select count(*) from lease where closed_at is null)
       + (select count(*) from link_outbox) + (select count(*) from page_change_inbox)
     )::int as open`,
  );
  return rows[0]!.open;
}

interface Totals {
  readonly hosts: number;
  readonly urls: number;
  readonly pages: number;
}

/** From the coordinators' own overviews, or a message for one that does not answer. */
async function overviewTotals(fleet: ChaosFleet): Promise<readonly (Totals | string)[]> {
  return await Promise.all(
    fleet.coordinators.map(async ({ webUrl, process }) => {
      try {
        const signal = AbortSignal.timeout(answerMs);
        const answer = await fetch(`${webUrl}/api/overview`, {
          headers: { accept: "application/json" },
          signal,
        });
        return ((await answer.json()) as { totals: Totals }).totals;
      } catch (error) {
        return `${process.name} does not answer: ${String((error as Error).cause ?? error)}`;
      }
    }),
  );
}

const answerMs = 30_000;

interface Evidence {
  readonly run: ChaosRun;
  readonly pauses: readonly check.Pause[];
  readonly lateness: check.LatenessWatch;
  readonly totals: readonly (Totals | string)[];
  readonly faults: readonly DoneFault[];
}

async function judge(fleet: ChaosFleet, evidence: Evidence): Promise<readonly check.Verdict[]> {
  const { run, pauses, lateness } = evidence;
  const { database, world, internet, crawlers } = fleet;
  const { pool } = database;
  const requests = internet.requestLog.entries();
  const crawlerNames = world.crawlers.map(({ name }) => name);
  const { verdict } = check;
  const found = await contradictionsIn(pool);
  const tables = databaseChecks.map(({ name, words }) =>
    verdict(name, words, found.find((one) => one.check === name)?.rows ?? []),
  );
  const politeness = { requests, leases: await check.readLeases(pool), pauses, crawlerNames };
  const damaged = await damagedIndexes(pool, database.schema);
  const indexes = "amcheck finds no damaged index";
  return [
    verdict(
      "reachable-pages",
      "every page that can be reached was fetched, as the sites' plan says",
      await check.unfetchedUrls(pool, world),
    ),
    verdict(
      "fetches-asked-for",
      "no URL has more fetches of a crawler than its site was asked by it",
      await check.fetchesNobodyAsked(pool, requests, crawlerNames),
    ),
    verdict(
      "requests-under-lease",
      "a crawler asks a host under a lease only",
      check.requestsWithoutLease(politeness),
    ),
    verdict(
      "pace",
      `a crawler leaves a host alone for ${run.floorMs} ms (half of it counts: what is measured is when requests arrive)`,
      check.hastyRequests(politeness, run.floorMs, lateness.noted),
    ),
    ...tables,
    verdict(
      "overview",
      "the overview's totals are what the tables have",
      await wrongTotals(pool, evidence.totals),
    ),
    verdict(
      "spools",
      "no result lies in a spool that was not acknowledged",
      await check.unacknowledgedSpools(pool, crawlers),
    ),
    verdict("drafts", "no unfinished file lies in a crawler's home", check.leftDrafts(crawlers)),
    verdict(
      "deaths",
      "no process ended by itself, but for want of its database or its disk",
      unexplained(fleet.deaths),
    ),
    verdict("logs", "no log has an error that no fault explains", check.unexpectedLines(fleet.logFolder)),
    damaged === null
      ? { ...verdict("indexes", indexes, []), skipped: "this server has no amcheck" }
      : verdict(
          "indexes",
          indexes,
          damaged.map((index) => ({ index })),
        ),
  ];
}

async function wrongTotals(pool: Pool, totals: Evidence["totals"]): Promise<readonly object[]> {
  const { rows } = await pool.query<Totals>(
    `select (select count(*)::int from frontier_host) as hosts, (select count(*)::int from page) as pages,
       (select count(*)::int from frontier_url) + (select count(*)::int from held_url) as urls`,
  );
  const counted = rows[0]!;
  return totals.flatMap((told): object[] => {
    if (typeof told === "string") return [{ overview: told }];
    const { hosts, urls, pages } = told;
    const isRight = hosts === counted.hosts && urls === counted.urls && pages === counted.pages;
    return isRight ? [] : [{ overview: { hosts, urls, pages }, counted }];
  });
}

/** A start without a database, or with a full disk. */
const explained = /database|Postgres|connect|ENOSPC|EFBIG|no space|disk/i;

function unexplained(deaths: readonly Death[]): readonly Death[] {
  return deaths.filter(({ how, lastWords }) => how.includes("SIG") || !explained.test(lastWords));
}

async function figuresOf({ database, internet }: ChaosFleet): Promise<ChaosOutcome["figures"]> {
  const { rows } = await database.pool.query<{ urls: number; fetches: number }>(
    "select (select count(*)::int from frontier_url) as urls, (select count(*)::int from page_fetch) as fetches",
  );
  return { ...rows[0]!, requests: internet.requestLog.total };
}

function clock(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${String(Math.floor(seconds / 60)).padStart(3)}:${String(seconds % 60).padStart(2, "0")}`;
}

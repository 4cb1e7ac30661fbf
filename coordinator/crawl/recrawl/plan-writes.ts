/**
 * Makes a new recrawl plan when one is due. With the strategies `iir` and `icr`: once half of the most urgent
 * channels have had more than five updates (SARSS section 3.1). With `optimal`: on every run, from what the fleet has
 * fetched since the last plan.
 */

import type { Pool } from "pg";
import type { HostHash } from "#core/ids";
import { alone } from "../../database/bounded-work.ts";
import { nextCapacity, type PlannedGroup, type RecrawlPlan, type SampledPages } from "./make-plan.ts";
import { optimalPlan, type PagesToRefresh } from "./optimal-rates.ts";
import {
  allowedPerDay,
  groupChannels,
  knownShare,
  lastLeaseId,
  latestPlan,
  measuredFetches,
  refreshChannels,
  savePlan,
} from "./plan-store.ts";
import { isReassignmentDue, iteratedCapacity, iteratedInterval } from "./priority-groups.ts";
import { freshnessOf, importanceOf, mostPerDay, type RateBounds } from "./recrawl-plan.ts";
import { boundsOf, emptyPlan, type RecrawlPolicies } from "./recrawl-settings.ts";
import { groupRecords, keepRecords, rankedPages, sampledPages } from "./sample-store.ts";

interface PlanningPorts {
  readonly pool: Pool;
  readonly policies: RecrawlPolicies;
  readonly now: Date;
}

const daySeconds = 86_400;

/** Saves and returns the new plan; null if the last one stays in force or another coordinator is planning. */
export async function planRecrawls(ports: PlanningPorts): Promise<RecrawlPlan | null> {
  return await alone(ports.pool, "nearcrawl-recrawl-plan", async () => await makePlan(ports));
}

async function makePlan(ports: PlanningPorts): Promise<RecrawlPlan | null> {
  const last = await latestPlan(ports.pool);
  switch (ports.policies.strategy) {
    case "fixed":
      return last === null || last.strategy === "fixed" ? null : await backToFixed(last, ports);
    case "iir":
    case "icr":
      return isContinued(last, ports) ? await reassign(last, ports) : await firstGroups(ports);
    case "optimal":
      return await planOptimal(last, ports);
  }
}

async function backToFixed(last: RecrawlPlan, ports: PlanningPorts): Promise<RecrawlPlan> {
  const plan = {
    ...emptyPlan(ports, last),
    reason: "the strategy is fixed: every page after the same interval",
  };
  await savePlan(ports.pool, plan, new Map());
  return plan;
}

function isContinued(last: RecrawlPlan | null, { policies }: PlanningPorts): last is RecrawlPlan {
  return last !== null && last.strategy === policies.strategy && last.groups.length === policies.groups;
}

/** Minimum share of pages with an estimate before the first grouping, which would otherwise be a guess. */
const knownEnough = 0.5;

async function firstGroups(ports: PlanningPorts): Promise<RecrawlPlan | null> {
  const { pool, policies } = ports;
  if ((await knownShare(pool)) < knownEnough) return null;
  await refreshChannels(pool, null);
  const groups = await groupedChannels(ports);
  if (groups.length < policies.groups) return null;
  const intervals = groups.map(({ initialSeconds }) => initialSeconds);
  const reason = `hosts and channels were divided into ${groups.length} groups by how often they change, with the intervals that follow from it`;
  return await saveGroups(ports, null, { groups, intervals, successRates: groups.map(() => 0), reason });
}

async function reassign(last: RecrawlPlan, ports: PlanningPorts): Promise<RecrawlPlan | null> {
  const { pool, policies, now } = ports;
  const { records, withEnoughUpdates } = await groupRecords(pool, last, now);
  const first = records.findIndex(({ channels }) => channels > 0);
  if (first < 0 || !isReassignmentDue(records[first]!.channels, withEnoughUpdates[first]!)) return null;
  const input = {
    groups: records,
    lastSuccessRates: last.groups.map(({ successRate }) => successRate),
    encourageRate: policies.encourageRate,
    limits: policies,
    intervalSeconds: last.groupIntervalSeconds,
    initialIntervalSeconds: last.groups.map(({ initialSeconds }) => initialSeconds),
  };
  const made = policies.strategy === "iir" ? iteratedInterval(input) : iteratedCapacity(input);
  await keepRecords(pool, last, now);
  await refreshChannels(pool, last.madeAt);
  const groups = await groupedChannels(ports);
  const reason =
    `${withEnoughUpdates[first]} of the ${records[first]!.channels} hosts and channels that change most had more ` +
    "than five updates since the last plan";
  const successRates = made.successRates;
  return await saveGroups(ports, last, { groups, intervals: made.intervalSeconds, successRates, reason });
}

type ChannelGroup = Pick<PlannedGroup, "channels" | "pages" | "changesPerDay" | "initialSeconds">;

async function groupedChannels({ pool, policies }: PlanningPorts): Promise<ChannelGroup[]> {
  const groups = await groupChannels(pool, policies.groups);
  return groups.map((group) => ({
    ...group,
    initialSeconds: bounded(daySeconds / group.changesPerDay, policies),
  }));
}

interface NewGroups {
  readonly groups: readonly ChannelGroup[];
  readonly intervals: readonly number[];
  readonly successRates: readonly number[];
  readonly reason: string;
}

async function saveGroups(
  ports: PlanningPorts,
  last: RecrawlPlan | null,
  made: NewGroups,
): Promise<RecrawlPlan> {
  const { pool, policies } = ports;
  const intervals = made.intervals.map((seconds) => bounded(seconds, policies));
  const achieved = last && (await measuredSince(last, ports));
  const plan: RecrawlPlan = {
    ...emptyPlan(ports, last),
    reason: made.reason,
    groupIntervalSeconds: intervals,
    groups: made.groups.map((group, index) => ({
      ...group,
      intervalSeconds: intervals[index]!,
      successRate: made.successRates[index]!,
    })),
    pages: made.groups.reduce((sum, { pages }) => sum + pages, 0),
    totalPerDay: made.groups.reduce(
      (sum, { pages }, index) => sum + (pages * daySeconds) / intervals[index]!,
      0,
    ),
    allowedPerDay: await allowedPerDay(pool),
    achievedPerDay: achieved,
    lastLeaseId: await lastLeaseId(pool),
  };
  await savePlan(pool, plan, new Map());
  return plan;
}

async function measuredSince(
  last: RecrawlPlan,
  { pool, policies, now }: PlanningPorts,
): Promise<number | null> {
  const from = last.madeAt;
  const window = { from, last: from, now, lateSeconds: policies.everySeconds };
  const { again, windowDays } = await measuredFetches(pool, window);
  return windowDays > 0 ? again / windowDays : null;
}

function bounded(seconds: number, { shortestHours, longestDays }: RecrawlPolicies): number {
  return Math.min(longestDays * daySeconds, Math.max(shortestHours * 3600, seconds));
}

// The *optimal* plan: the multiplier at which the pages' rates sum to the fleet's total, within the limits of pages
// and hosts, corrected by how closely fetches followed the last plan.

const dayMs = 86_400_000;

/** Maximum number of pages, for which computing rates takes 0.2 s of a core per plan. If there are more, hosts are sampled. */
const mostPages = 100_000;

/** Share of a host's allowed requests that may go to known pages. */
const hostShare = 0.5;

/** Crawlers always wait at least this long between two requests to a host (migrating-crawler/settings/config.ts). */
const leastDelayMs = 1000;

/** Returns null if the last plan stays in force because nobody is online or no page is known. */
async function planOptimal(last: RecrawlPlan | null, ports: PlanningPorts): Promise<RecrawlPlan | null> {
  const { pool, policies, now } = ports;
  const before = last?.strategy === "optimal" ? last : null;
  await refreshChannels(pool, before?.madeAt ?? null);
  const [sample, allowed, ranked, leaseId] = await Promise.all([
    sampledPages(pool, mostPages),
    allowedPerDay(pool),
    rankedPages(pool),
    lastLeaseId(pool),
  ]);
  if (sample.changesPerDay.length === 0 || allowed === 0) return null;
  const pages = Math.round(sample.changesPerDay.length / sample.share);
  const wished = policies.total === "capacity" ? Infinity : (pages * 24) / policies.intervalHours;
  const measured = before && (await measuredFetches(pool, windowOf(before, ports)));
  const capacity = nextCapacity({
    before,
    allowedPerDay: allowed,
    measured: measured ?? nothingMeasured,
    encourageRate: policies.encourageRate,
    isSettled: before !== null && isSettled(before, now),
  });
  const totalPerDay = Math.min(wished, capacity.capacityPerDay);
  const bounds = boundsOf(policies);
  const worked = workOut(sample, {
    totalPerDay: totalPerDay * capacity.correction,
    bounds,
    rankedPages: ranked,
  });
  const plan: RecrawlPlan = {
    ...emptyPlan(ports, last),
    ...capacity,
    allowedPerDay: allowed,
    totalPerDay: worked.mostPerDay ?? totalPerDay,
    rankedPages: ranked,
    pages,
    lastLeaseId: leaseId,
    bounds: worked.bounds,
    multiplier: worked.multiplier,
    freshness: worked.freshness,
    achievedPerDay: measured && measured.windowDays > 0 ? measured.again / measured.windowDays : null,
    reason: reasonOf(totalPerDay, wished, measured?.lateShare ?? 0),
  };
  await savePlan(pool, plan, worked.hostMultipliers);
  return plan;
}

const nothingMeasured = { windowDays: 0, sinceLastDays: 0, again: 0, first: 0, lateShare: 0 };

/** The window covers the last day, or less if the strategy was chosen later. */
function windowOf(before: RecrawlPlan, { now, policies }: PlanningPorts) {
  const from = new Date(Math.max(before.since.getTime(), now.getTime() - dayMs));
  const halfInterval = before.totalPerDay > 0 ? (before.pages / before.totalPerDay / 2) * 86_400 : 0;
  return { from, last: before.madeAt, now, lateSeconds: Math.max(policies.everySeconds, halfInterval) };
}

/** Returns true once twice the mean interval has passed, so that this strategy's plans have set the time of every page. */
function isSettled({ since, pages, totalPerDay }: RecrawlPlan, now: Date): boolean {
  return totalPerDay > 0 && (now.getTime() - since.getTime()) / dayMs > (2 * pages) / totalPerDay;
}

function reasonOf(totalPerDay: number, wished: number, lateShare: number): string {
  const late = lateShare > 0 ? `; ${Math.round(lateShare * 100)} % of the hosts are late` : "";
  return totalPerDay < wished
    ? `the total is the fleet's measured capacity${late}`
    : `the total follows from recrawl.intervalHours${late}`;
}

interface Asked {
  readonly totalPerDay: number;
  readonly bounds: RateBounds;
  readonly rankedPages: number;
}

interface Worked {
  readonly multiplier: number;
  readonly hostMultipliers: ReadonlyMap<HostHash, number>;
  readonly freshness: number;
  /** Limits of the rates, with the minimum reduced to what the total allows. */
  readonly bounds: RateBounds;
  /** The total at which every page has its maximum rate; null if the pages use up the total. */
  readonly mostPerDay: number | null;
}

function workOut(sample: SampledPages, asked: Asked): Worked {
  const total = asked.totalPerDay * sample.share;
  const count = sample.changesPerDay.length;
  // Minimum rates may use at most half of the total.
  const leastPerDay = Math.min(asked.bounds.leastPerDay, total / count / 2);
  const bounds = { ...asked.bounds, leastPerDay };
  const pages = pagesOf(sample, { ...asked, bounds });
  const { multiplier, hostMultipliers, ratesPerDay } = optimalPlan(pages, total);
  const own = new Map<HostHash, number>();
  hostMultipliers.forEach((at, host) => {
    if (at > multiplier) own.set(sample.hosts[host]!.hostHash, at);
  });
  const planned = ratesPerDay.reduce((sum, rate) => sum + rate, 0);
  const mostPerDay = planned < total * (1 - 1e-6) ? planned / sample.share : null;
  const freshness = weighted(pages, ratesPerDay);
  return { multiplier, hostMultipliers: own, freshness, bounds, mostPerDay };
}

function pagesOf(sample: SampledPages, { bounds, rankedPages }: Asked): PagesToRefresh {
  const { changesPerDay, backLinks, pageRank, hostOf, hosts } = sample;
  const least = new Float64Array(hosts.length);
  for (const host of hostOf) least[host]! += bounds.leastPerDay;
  return {
    changesPerDay,
    importance: changesPerDay.map((_rate, page) => {
      const rank = pageRank[page]!;
      return importanceOf(
        { backLinks: backLinks[page]!, pageRank: Number.isNaN(rank) ? null : rank },
        rankedPages,
      );
    }),
    mostPerDay: changesPerDay.map((rate) => mostPerDay(rate, bounds)),
    leastPerDay: new Float64Array(changesPerDay.length).fill(bounds.leastPerDay),
    hosts: {
      hostOf,
      mostPerDay: least.map((sum, host) => {
        const delayMs = Math.max(leastDelayMs, hosts[host]!.crawlDelayMs);
        return Math.max(sum, (hostShare * dayMs) / delayMs);
      }),
    },
  };
}

function weighted({ changesPerDay, importance }: PagesToRefresh, ratesPerDay: Float64Array): number {
  let [fresh, all] = [0, 0];
  ratesPerDay.forEach((rate, page) => {
    fresh += importance[page]! * freshnessOf(rate, changesPerDay[page]!);
    all += importance[page]!;
  });
  return all === 0 ? 1 : fresh / all;
}

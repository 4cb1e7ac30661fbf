/**
 * The plan of the strategy *optimal*: the multiplier at which the pages' rates come to the total that the fleet has,
 * under each page's and each host's bounds, corrected by how far the rates that were planned came true.
 */
import type { HostHash } from "#core/ids";
import { freshnessOf } from "./freshness.ts";
import type { RecrawlPlan, SampledPages } from "./make-plan.ts";
import { nextCapacity } from "./measured-capacity.ts";
import { optimalPlan, type PagesToRefresh } from "./optimal-rates.ts";
import { boundsOf, emptyPlan, type PlanningPorts } from "./plan.ts";
import { importanceOf, mostPerDay, type RateBounds } from "./recrawl-plan.ts";

const dayMs = 86_400_000;
/** Pages that are looked at; of more, a sample of the hosts. Their rates take 0.2 s of a core, in one turn, once a plan. */
const mostPages = 100_000;
/** Of the requests that a host's pace allows, so many are for pages that were fetched before. */
const hostShare = 0.5;
/** Crawlers wait so long between two requests to a host in any case (migrating-crawler/settings/config.ts). */
const leastDelayMs = 1000;

/** Null: the last plan stays, since nobody is online or no page is known yet. */
export async function planOptimal(
  last: RecrawlPlan | null,
  ports: PlanningPorts,
): Promise<RecrawlPlan | null> {
  const { store, policies, now } = ports;
  await store.refreshChannels(last?.strategy === "optimal" ? last.madeAt : null);
  const [sample, allowedPerDay, rankedPages, lastLeaseId] = await Promise.all([
    store.pages(mostPages),
    store.allowedPerDay(),
    store.rankedPages(),
    store.lastLeaseId(),
  ]);
  if (sample.changesPerDay.length === 0 || allowedPerDay === 0) return null;
  const before = last?.strategy === "optimal" ? last : null;
  const pages = Math.round(sample.changesPerDay.length / sample.share);
  const wished = policies.total === "capacity" ? Infinity : (pages * 24) / policies.intervalHours;
  const measured = before && (await store.measured(windowOf(before, ports)));
  const capacity = nextCapacity({
    before,
    allowedPerDay,
    measured: measured ?? nothingMeasured,
    encourageRate: policies.encourageRate,
    isSettled: before !== null && isSettled(before, now),
  });
  const totalPerDay = Math.min(wished, capacity.capacityPerDay);
  const bounds = boundsOf(policies);
  const worked = workOut(sample, { totalPerDay: totalPerDay * capacity.correction, bounds, rankedPages });
  const plan: RecrawlPlan = {
    ...emptyPlan(ports, last),
    ...capacity,
    ...{ allowedPerDay, totalPerDay: worked.mostPerDay ?? totalPerDay, rankedPages, lastLeaseId, pages },
    bounds: worked.bounds,
    multiplier: worked.multiplier,
    freshness: worked.freshness,
    achievedPerDay: measured && measured.windowDays > 0 ? measured.again / measured.windowDays : null,
    reason: reasonOf(totalPerDay, wished, measured?.lateShare ?? 0),
  };
  await store.save(plan, worked.hostMultipliers);
  return plan;
}

const nothingMeasured = { windowDays: 0, sinceLastDays: 0, again: 0, first: 0, lateShare: 0 };

/** The last day, as far as the strategy was in force. */
function windowOf(before: RecrawlPlan, { now, policies }: PlanningPorts) {
  const from = new Date(Math.max(before.since.getTime(), now.getTime() - dayMs));
  const halfInterval = before.totalPerDay > 0 ? (before.pages / before.totalPerDay / 2) * 86_400 : 0;
  return { from, last: before.madeAt, now, lateSeconds: Math.max(policies.everySeconds, halfInterval) };
}

/** Every page has had its time set by plans of this strategy: twice the mean interval has passed. */
function isSettled({ since, pages, totalPerDay }: RecrawlPlan, now: Date): boolean {
  return totalPerDay > 0 && (now.getTime() - since.getTime()) / dayMs > (2 * pages) / totalPerDay;
}

function reasonOf(totalPerDay: number, wished: number, lateShare: number): string {
  const late = lateShare > 0 ? `; ${Math.round(lateShare * 100)} % of the hosts are late` : "";
  return totalPerDay < wished
    ? `the total is what the fleet is found to manage${late}`
    : `the total is what recrawl.intervalHours comes to${late}`;
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
  /** With a least rate that the total can bear. */
  readonly bounds: RateBounds;
  /** Of all pages, where every one is at its most; null: they take the total. */
  readonly mostPerDay: number | null;
}

export function workOut(sample: SampledPages, asked: Asked): Worked {
  const total = asked.totalPerDay * sample.share;
  const count = sample.changesPerDay.length;
  // What every page gets in any case takes half of the total at most.
  const leastPerDay = Math.min(asked.bounds.leastPerDay, total / count / 2);
  const bounds = { ...asked.bounds, leastPerDay };
  const pages = pagesOf(sample, bounds, asked.rankedPages);
  const { multiplier, hostMultipliers, ratesPerDay } = optimalPlan(pages, total);
  const own = new Map<HostHash, number>();
  hostMultipliers.forEach((at, host) => {
    if (at > multiplier) own.set(sample.hosts[host]!.hostHash, at);
  });
  const planned = ratesPerDay.reduce((sum, rate) => sum + rate, 0);
  const mostPerDay = planned < total * (1 - 1e-6) ? planned / sample.share : null;
  return { multiplier, hostMultipliers: own, freshness: weighted(pages, ratesPerDay), bounds, mostPerDay };
}

function pagesOf(sample: SampledPages, bounds: RateBounds, rankedPages: number): PagesToRefresh {
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

/** Share of pages that are current at these rates, by importance. */
function weighted({ changesPerDay, importance }: PagesToRefresh, ratesPerDay: Float64Array): number {
  let [fresh, all] = [0, 0];
  ratesPerDay.forEach((rate, page) => {
    fresh += importance[page]! * freshnessOf(rate, changesPerDay[page]!);
    all += importance[page]!;
  });
  return all === 0 ? 1 : fresh / all;
}

/** The state of the whole crawl over all slices: how each figure of several slices becomes one. */
import { hostHashOf } from "#core/url-key";
import {
  byHash,
  byText,
  firstOf,
  joinedBy,
  largestOf,
  type OverSlices,
  summed,
} from "../database/over-slices.ts";
import type { WholeReads } from "../overview/alert-reads.ts";
import { gatedHostsOf } from "../overview/bot-gate-reads.ts";
import type { WholeCharts } from "../overview/chart-reads.ts";
import type { CrawlTotals, OverviewReads } from "../overview/overview.ts";
import { totalsOf } from "../overview/overview-reads.ts";
import type {
  CrawlerGauge,
  HostInHand,
  HostsInHand,
  InHandSort,
  LeftOutUrls,
  WaitingHost,
} from "../overview/overview-types.ts";
import { type LeaseCounts, queueAgesOf } from "../overview/queue-reads.ts";
import type { Share } from "../who/crawler-reads.ts";
import { noShare, type SliceReports } from "../who/reads.ts";

type Over = OverSlices<SliceReports>;

/** What else is shared is slice 0's to tell. */
export type MergedOverview = Pick<
  OverviewReads,
  | "crawlTotals"
  | "fleet"
  | "crawlerDetail"
  | "leftOutUrls"
  | "longestWaiting"
  | "hostsInHand"
  | "crawlerGauges"
>;

export function overviewOverSlices(over: Over): MergedOverview {
  return {
    crawlTotals: async (): Promise<CrawlTotals> => {
      if (over.isOne) return await over.shared.crawlTotals();
      const { answers } = await over.ask(async (slice) => await slice.totalsPart());
      return totalsOf(answers);
    },
    fleet: async () => {
      if (over.isOne) return await over.shared.fleet();
      const [crawlers, { answers }] = await Promise.all([
        over.shared.allCrawlers(),
        over.ask(async (slice) => await slice.fleetShares()),
      ]);
      return crawlers.map((crawler) => ({ ...crawler, ...shareOf(answers, crawler.crawlerId) }));
    },
    crawlerDetail: async (crawlerId) => {
      const detail = await over.shared.crawlerDetail(crawlerId);
      if (over.isOne) return detail;
      const { answers } = await over.ask(async (slice) => await slice.crawlerOutcomes(crawlerId));
      const outcomes = joinedBy(
        answers.flat(),
        ({ outcome }) => outcome,
        (a, b) => ({ outcome: a.outcome, ...summed([a, b], ["fetches"]) }),
      );
      return { ...detail, outcomes: outcomes.sort((a, b) => b.fetches - a.fetches) };
    },
    leftOutUrls: async (shown) => {
      const { answers } = await over.ask(async (slice) => await slice.leftOutUrls(shown));
      return over.isOne ? answers[0]! : leftOutOf(answers, shown);
    },
    longestWaiting: async (query, now) => {
      if (over.isOne) return await over.shared.longestWaiting(query, now);
      const leases = await leasesElsewhere(over);
      const { answers } = await over.ask(
        async (slice, { number }) => await slice.longestWaitingWith(leases(number), query, now),
      );
      return firstOf(answers, byDueDate, query.most);
    },
    hostsInHand: async (query, now) => {
      const { answers } = await over.ask(async (slice) => await slice.hostsInHand(query, now));
      return over.isOne ? answers[0]! : inHandOf(answers, query);
    },
    crawlerGauges: async (most) => {
      const { answers } = await over.ask(async (slice) => await slice.crawlerGauges(most));
      return over.isOne ? answers[0]! : gaugesOf(answers);
    },
  };
}

function shareOf(answers: readonly ReadonlyMap<number, Share>[], crawlerId: number): Share {
  const shares = answers.map((answer) => answer.get(crawlerId) ?? noShare);
  return { ...shares[0]!, ...summed(shares, ["pages", "bodyBytes", "shippedBytes", "openLeases"]) };
}

function leftOutOf(answers: readonly LeftOutUrls[], shown: number): LeftOutUrls {
  return {
    ...summed(answers, ["urls", "hosts"]),
    more: answers.some(({ more }) => more),
    most: firstOf(
      answers.map(({ most }) => most),
      (a, b) => b.urls - a.urls || byText(a.host, b.host),
      shown,
    ),
    domains: joinedBy(
      answers.flatMap(({ domains }) => domains),
      ({ domain }) => domain,
      (a, b) => ({ domain: a.domain, ...summed([a, b], ["waiting", "leftOut"]) }),
    )
      .sort((a, b) => b.waiting + b.leftOut - a.waiting - a.leftOut || byText(a.domain, b.domain))
      .slice(0, shown),
  };
}

const byDueDate = (a: WaitingHost, b: WaitingHost): number =>
  Date.parse(a.dueAt) - Date.parse(b.dueAt) || byHash(hostHashOf(a.host), hostHashOf(b.host));

type InHandOrder = (a: HostInHand, b: HostInHand) => number;

const byHost: InHandOrder = (a, b) => byText(a.host, b.host);

const inHandOrders: Readonly<Record<InHandSort, InHandOrder>> = {
  rate: (a, b) => b.urlsPerMinute - a.urlsPerMinute || byHost(a, b),
  open: (a, b) => b.openUrls - a.openUrls || byHost(a, b),
  since: (a, b) => Date.parse(a.since) - Date.parse(b.since) || byHost(a, b),
  host: byHost,
};

function inHandOf(
  answers: readonly HostsInHand[],
  { sort, most }: { readonly sort: InHandSort; readonly most: number },
): HostsInHand {
  const lists = answers.map(({ shown }) => shown);
  return {
    at: answers[0]!.at,
    ...summed(answers, ["hosts"]),
    shown: firstOf(lists, inHandOrders[sort], most),
  };
}

/** In the order of slice 0, where the crawlers are. */
function gaugesOf(answers: readonly (readonly CrawlerGauge[])[]): CrawlerGauge[] {
  const leases = new Map<string, number>();
  for (const { name, openLeases } of answers.flat()) leases.set(name, (leases.get(name) ?? 0) + openLeases);
  return answers[0]!.map((gauge) => ({ ...gauge, openLeases: leases.get(gauge.name) ?? 0 }));
}

/** Of each slice, what crawlers have leases of in the others: a crawler is full by all of them. */
async function leasesElsewhere(over: Over): Promise<(slice: number) => LeaseCounts> {
  const { answers } = await over.ask(async (slice, { number }) => ({
    number,
    leases: await slice.openLeases(),
  }));
  return (number) => {
    const sums = new Map<number, number>();
    for (const answer of answers)
      if (answer.number !== number)
        for (const [crawlerId, leases] of answer.leases)
          sums.set(crawlerId, (sums.get(crawlerId) ?? 0) + leases);
    return sums;
  };
}

/** What slice 0's alerts and charts ask all slices for. */
export function wholeOverSlices(over: Over): WholeReads & WholeCharts {
  return {
    queueAges: async (now) => {
      if (over.isOne) return await over.shared.own.queueAges(now);
      const leases = await leasesElsewhere(over);
      const { answers } = await over.ask(
        async (slice, { number }) => await slice.waitingPart(now, leases(number)),
      );
      return queueAgesOf(answers);
    },
    gatedHosts: async (now) => {
      const { answers } = await over.ask(async (slice) => await slice.own.gatedHosts(now));
      return gatedHostsOf(answers);
    },
    outboxBacklog: async () => {
      const { answers } = await over.ask(async (slice) => await slice.own.outboxBacklog());
      return {
        ...summed(answers, ["rows", "effects"]),
        ageSeconds: largestOf(answers.map(({ ageSeconds }) => ageSeconds)) ?? 0,
      };
    },
    keptWaiting: async (crawlerIds, now) => {
      const { answers } = await over.ask(async (slice) => await slice.own.keptWaiting(crawlerIds, now));
      return new Set(answers.flatMap((answer) => [...answer]));
    },
    comparisons: async (query) => {
      const { answers } = await over.ask(async (slice) => await slice.own.comparisons(query));
      if (over.isOne) return answers[0]!;
      return joinedBy(
        answers.flat(),
        ({ step }) => String(step),
        (a, b) => ({
          step: a.step,
          ...summed([a, b] as Record<string, number>[], ["agree", "alone", "once"]),
        }),
      );
    },
    plans: async (range) => await over.shared.own.plans(range),
  };
}

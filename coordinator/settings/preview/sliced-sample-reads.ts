/** Samples of what the crawl has done, of all slices: each is asked for its part of what is looked at. */
import type { Pool } from "pg";
import type { CrawlerId } from "#core/ids";
import { joinedBy, OverSlices, summed } from "../../database/over-slices.ts";
import { type Slices, slicesOf } from "../../database/slices.ts";
import { slicedSamples, type WaitingSubnet } from "./sample-reads.ts";
import type { FetchRates, FrontierSizes, LinkSample, PolicySamples } from "./types.ts";

type Over = OverSlices<ReturnType<typeof slicedSamples>>;

export function policySamplesOver(from: Pool | Slices, now: () => Date): PolicySamples {
  const over: Over = new OverSlices(slicesOf(from), ({ pool }) => slicedSamples(pool, now));
  const each = (most: number) => Math.ceil(most / over.slices.open.length);
  return {
    rounds: async (most) => await over.shared.rounds(most),
    decidedBefore: async (before, most) => await over.shared.decidedBefore(before, most),
    trustScores: async () => await over.shared.trustScores(),
    measuredBy: async (most) => await over.shared.measuredBy(most),
    fetches: async (mostHosts, perHost) => {
      const { answers } = await over.ask(async (slice) => await slice.fetches(each(mostHosts), perHost));
      const fetches = answers.flatMap((answer) => answer.fetches);
      return { ...summed(answers, ["hosts", "allHosts"]), fetches };
    },
    frontier: async (pagesPerHost) => {
      const { answers } = await over.ask(async (slice) => await slice.frontier(pagesPerHost));
      return over.isOne ? answers[0]! : sizesOf(answers);
    },
    shareAtDepth: async (depth) => {
      const { answers } = await over.ask(async (slice) => await slice.shareAtDepth(depth));
      const { urls } = summed(answers, ["urls"]);
      const deep = answers.reduce((sum, answer) => sum + answer.urls * answer.share, 0);
      return { urls, share: urls === 0 ? 0 : deep / urls };
    },
    links: async (most) => (over.isOne ? await over.shared.links(most) : await linksOf(over, each(most))),
    fetchRates: async (most) => {
      const { answers } = await over.ask(async (slice) => await slice.fetchRates(each(most)));
      return over.isOne ? answers[0]! : ratesOf(answers);
    },
    probeRates: async (mostWaiting) => {
      const rates = await over.shared.probeRates(mostWaiting);
      if (over.isOne) return rates;
      const waiting = Math.min(mostWaiting, (await waitingOf(over, mostWaiting)).length);
      return { ...rates, waiting, isCountedInFull: waiting < mostWaiting };
    },
    leases: async (most) => {
      const { answers } = await over.ask(async (slice) => await slice.leases(each(most)));
      return answers.flat();
    },
    waitingWithUrls: async (urls, most) => {
      if (over.isOne) return await over.shared.waitingWithUrls(urls, most);
      const waiting = await waitingOf(over, most);
      return Math.min(most, waiting.filter((subnet) => subnet.urls >= urls).length);
    },
  };
}

/** A subnet may have hosts in several slices. */
async function waitingOf(over: Over, most: number): Promise<WaitingSubnet[]> {
  const { answers } = await over.ask(async (slice) => await slice.waitingSubnets(most));
  return joinedBy(
    answers.flat(),
    ({ subnetId }) => String(subnetId),
    (a, b) => ({ ...a, ...summed([a, b], ["urls"]) }),
  );
}

const sizes = [
  ...(["hosts", "fetchedUrls", "newUrls", "heldUrls"] as const),
  ...(["releasable", "hostsOver"] as const),
] as const;

function sizesOf(answers: readonly FrontierSizes[]): FrontierSizes {
  const sums = summed(answers, sizes);
  const looked = answers.reduce((sum, { hosts, share }) => sum + hosts * share, 0);
  return { ...sums, share: sums.hosts === 0 ? 1 : looked / sums.hosts };
}

/** Hosts that links lead to are known to their own slices. */
async function linksOf(over: Over, most: number): Promise<LinkSample> {
  const { answers } = await over.ask(async (slice) => await slice.linkTargets(most));
  const targets = [...new Set(answers.flatMap((answer) => answer.targets))];
  const unknown = await over.eachOfHost(targets, (hostHash) => hostHash, {
    ask: async (slice, own) => await slice.unknownHosts(own),
    absent: false,
  });
  return {
    ...summed(answers, ["links", "nofollow"]),
    hosts: targets.length,
    unknownHosts: unknown.filter(Boolean).length,
  };
}

/** Of each crawler the sums of its rates: a slice with more fetches than are looked at is looked at over a shorter time. */
function ratesOf(answers: readonly FetchRates[]): FetchRates {
  const crawlers = new Map<CrawlerId, FetchRates["crawlers"][number]>();
  for (const rate of answers.flatMap((answer) => answer.crawlers)) {
    const known = crawlers.get(rate.crawlerId);
    crawlers.set(rate.crawlerId, {
      ...rate,
      pagesPerDay: rate.pagesPerDay + (known?.pagesPerDay ?? 0),
    });
  }
  return {
    ...summed(answers, ["fetches"]),
    hours: Math.max(...answers.map(({ hours }) => hours)),
    crawlers: [...crawlers.values()].sort((a, b) => a.crawlerId - b.crawlerId),
  };
}

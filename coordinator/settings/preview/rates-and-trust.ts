/** Another rule of recalibration: the latest fetches weighed again, and decisions that would count as old. */
import type { SubnetId } from "#core/ids";
import { FetchWatch } from "../../delegation/recalibration/fetch-watch.ts";
import { defaultRecalibrationRule, type RecalibrationRule } from "../../delegation/recalibration/rule.ts";
import { samplingShare } from "../../trust/page-sketch.ts";
import type { PolicySettings } from "../schema.ts";
import { nothingYet } from "./delegation.ts";
import type { FetchRates, PastFetch, PreviewPolicies, PreviewPorts } from "./types.ts";

const mostHosts = 200;
const fetchesPerHost = 50;

/** The coordinator probes so many old decisions again in a day at most (coordinator/delegation/start.ts). */
const mostRefreshedADay = 43_200;

const mostCounted = 1_000_000;

export const previewRecalibration: PreviewPolicies = async ({ before, after, names }, ports) => {
  const sample = await ports.samples.fetches(mostHosts, fetchesPerHost);
  const days = hostDays(sample.fetches);
  const aDay = ({ recalibration }: PolicySettings) => {
    const { slowerThanFactor: factor, timesInARow: inARow } = recalibration;
    const rounds = roundsBy({ ...defaultRecalibrationRule, factor, inARow }, sample.fetches);
    return days === 0 ? null : (rounds / days) * sample.allHosts;
  };
  return {
    title: "Recalibration: the latest fetches weighed again",
    figures: [
      {
        name: "slowRoundsPerDay",
        words: "Subnets probed again because a host in them turned slow",
        unit: "rounds/day",
        before: aDay(before),
        after: aDay(after),
      },
      ...(names.has("recalibration.refreshDays")
        ? [
            {
              name: "recheckRoundsPerDay",
              words: "Decisions probed again for their age",
              unit: "rounds/day",
              before: await rechecksPerDay(before, ports),
              after: await rechecksPerDay(after, ports),
            },
          ]
        : []),
    ],
    basis: `The latest ${fetchesPerHost} fetches each of ${sample.hosts} hosts that were fetched recently (${sample.fetches.length} fetches, ${days.toFixed(1)} days of one host), scaled to all ${sample.allHosts} hosts.`,
    limits: [
      "A subnet is probed again once an hour at most, in the replay as in the coordinator; that hosts of one subnet share this is seen only within the sample.",
      ...(days < 1
        ? ["The hosts were watched for less than a day together: take the numbers for their order of size."]
        : []),
      ...(names.has("recalibration.everySeconds")
        ? ["How often it is looked changes how long a slow subnet waits, not how many there are."]
        : []),
      ...(names.has("recalibration.refreshDays")
        ? [
            `Decisions are probed again at ${mostRefreshedADay.toLocaleString("en-GB")} per day at most, those first of which most is saved.`,
          ]
        : []),
    ],
  };
};

async function rechecksPerDay(
  { recalibration }: PolicySettings,
  { samples, now }: PreviewPorts,
): Promise<number> {
  const decisions = await samples.decidedBefore(now(), mostCounted);
  return Math.min(mostRefreshedADay, decisions / recalibration.refreshDays);
}

/** A subnet that was probed is left alone for so long (delegation/recalibration/recalibrate.ts). */
const coolDownMs = 3_600_000;

/** Rounds that these fetches would have led to; each host's in the order of time. */
export function roundsBy(rule: RecalibrationRule, fetches: readonly PastFetch[]): number {
  const watch = new FetchWatch(rule, Number.POSITIVE_INFINITY);
  const probedAtMs = new Map<SubnetId, number>();
  let rounds = 0;
  for (const fetch of fetches.toSorted((a, b) => a.atMs - b.atMs)) {
    if (watch.note(fetch) === null) continue;
    const before = probedAtMs.get(fetch.subnetId) ?? Number.NEGATIVE_INFINITY;
    if (fetch.atMs - before <= coolDownMs) continue;
    probedAtMs.set(fetch.subnetId, fetch.atMs);
    rounds += 1;
  }
  return rounds;
}

/** How long the hosts were watched, all together, in days of one host. */
export function hostDays(fetches: readonly PastFetch[]): number {
  const spans = new Map<string, { firstMs: number; lastMs: number }>();
  for (const { hostKey, atMs } of fetches) {
    const span = spans.get(hostKey) ?? { firstMs: atMs, lastMs: atMs };
    span.firstMs = Math.min(span.firstMs, atMs);
    span.lastMs = Math.max(span.lastMs, atMs);
    spans.set(hostKey, span);
  }
  const watchedMs = [...spans.values()].reduce((sum, { firstMs, lastMs }) => sum + lastMs - firstMs, 0);
  return watchedMs / 86_400_000;
}

// Other shares of pages that are fetched twice, and another evidence that is needed to distrust.

const mostFetches = 10_000;

export const previewSampling: PreviewPolicies = async ({ before, after }, { samples }) => {
  const rates = await samples.fetchRates(mostFetches);
  const title = "Pages that are fetched twice";
  if (rates.fetches === 0) return nothingYet(title);
  const pages = rates.crawlers.reduce((sum, { pagesPerDay }) => sum + pagesPerDay, 0);
  const figure = (name: string, words: string, unit: string, of: (settings: PolicySettings) => number) => ({
    ...{ name, words, unit },
    before: of(before),
    after: of(after),
  });
  return {
    title,
    figures: [
      figure("secondFetchesPerDay", "Second fetches", "pages/day", (settings) => second(settings, rates)),
      figure("ofAllPages", "Of all pages", "%", (settings) => (100 * second(settings, rates)) / pages),
    ],
    basis: `${rates.fetches.toLocaleString("en-GB")} fetches of the last ${rates.hours.toFixed(1)} hours, crawler by crawler: who is new or watched more closely is counted with the share that holds for it.`,
    limits: ["Differences lead to further fetches, one or two each; they are not counted."],
  };
};

function second({ trust }: PolicySettings, { crawlers }: FetchRates): number {
  return crawlers.reduce((sum, crawler) => sum + crawler.pagesPerDay * samplingShare(crawler, trust), 0);
}

export const previewDistrust: PreviewPolicies = async ({ before, after }, { samples }) => {
  const scores = await samples.trustScores();
  const above = ({ trust }: PolicySettings) => scores.filter(({ score }) => score >= trust.threshold);
  const fresh = above(after).filter(({ isDistrusted }) => !isDistrusted);
  const below = scores.filter(({ isDistrusted, score }) => isDistrusted && score < after.trust.threshold);
  const named = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name).join(", ");
  return {
    title: "Crawlers that would be judged otherwise",
    figures: [
      {
        name: "atOrAboveThreshold",
        words: "Crawlers whose evidence reaches the threshold",
        unit: "crawlers",
        before: above(before).length,
        after: above(after).length,
      },
      {
        name: "newlyDistrusted",
        words: "Trusted now, and distrusted at their next comparison that is weighed",
        unit: "crawlers",
        before: above(before).filter(({ isDistrusted }) => !isDistrusted).length,
        after: fresh.length,
      },
    ],
    basis: `The evidence of ${scores.length} crawlers as it was when it was last weighed${fresh.length === 0 ? "" : `; newly distrusted would be: ${named(fresh)}`}.`,
    limits: [
      below.length === 0
        ? "Who is not trusted stays so until an operator restores it, whatever the threshold is then."
        : `${named(below)} would stay distrusted although the evidence is below the threshold: an operator restores it.`,
      ...(before.trust.onDistrust === after.trust.onDistrust
        ? []
        : ["What happens on distrust holds for crawlers that are distrusted from then on."]),
    ],
  };
};

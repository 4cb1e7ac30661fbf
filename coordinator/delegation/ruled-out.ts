/**
 * Which crawlers a round could leave unasked: RTTs nearly obey the triangle inequality, so a crawler that is
 * far from one that answered fast cannot be near the target (design section 5, step 3). A round records the
 * bounds of the first crawlers that it ruled out; those of the others follow from today's RTTs between the
 * crawlers, by the policy's own rule.
 */

import type { CrawlerName, RecordedRound, RuledOut } from "../who/who-answer.ts";
import { parseReason } from "./policies/reason.ts";
import { trustInTriangle } from "./policies/triangle.ts";

export interface PeerDistance {
  readonly from: number;
  readonly to: number;
  readonly rttMs: number;
}

/** Crawlers without a probe in this round, by lower bound, those without one first. */
export function notAsked(
  round: RecordedRound,
  crawlers: readonly CrawlerName[],
  distances: readonly PeerDistance[],
): RuledOut[] {
  const asked = new Set(round.probes.map((probe) => probe.crawler.crawlerId));
  const boundOf = lowerBounds(round, distances);
  const bestMs = Math.min(...round.probes.map((probe) => probe.rttMs ?? Number.POSITIVE_INFINITY));
  return crawlers
    .filter((crawler) => !asked.has(crawler.crawlerId))
    .map(({ crawlerId, name, state }) => {
      const lowerBoundMs = boundOf(crawlerId);
      const ruledOut = lowerBoundMs !== null && lowerBoundMs >= bestMs;
      return { crawler: { crawlerId, name, state }, lowerBoundMs, ruledOut };
    })
    .sort((a, b) => (a.lowerBoundMs ?? -1) - (b.lowerBoundMs ?? -1));
}

function lowerBounds(
  round: RecordedRound,
  distances: readonly PeerDistance[],
): (crawlerId: number) => number | null {
  const reason = parseReason(round.reason);
  if (reason?.type !== "expected-gain") return () => null;
  const recorded = new Map<number, number>(reason.ruledOut.map((one) => [one.crawlerId, one.lowerBoundMs]));
  const between = new Map(distances.map((one) => [`${one.from} ${one.to}`, one.rttMs]));
  return (crawlerId) => {
    const bounds = round.probes.flatMap(({ crawler, rttMs }) => {
      const apartMs =
        between.get(`${crawler.crawlerId} ${crawlerId}`) ?? between.get(`${crawlerId} ${crawler.crawlerId}`);
      return rttMs === null || apartMs === undefined ? [] : [trustInTriangle * Math.abs(apartMs - rttMs)];
    });
    const today = bounds.length === 0 ? null : Math.max(...bounds);
    const lowerBoundMs = recorded.get(crawlerId) ?? today;
    return lowerBoundMs === null ? null : Math.round(lowerBoundMs * 10) / 10;
  };
}

/**
 * Past rounds replayed. Three crawlers, whose subnets are unrelated to the targets: 1 and 2 are 40 ms apart, 3 is 30 ms from 1
 * and 20 ms from 2.
 */
import { expect, it } from "vitest";
import type { Placement } from "#coordinator/place/delegation/placement";
import type { PastRound } from "#coordinator/run/settings/change";
import { differenceOf, replayRounds } from "#coordinator/run/settings/preview/preview";
import { asCrawlerId, type CrawlerId } from "#core/ids";

const placeOf = (subnetKey: number): Placement => ({
  subnetKey,
  holderKey: null,
  ancestorKeys: [],
  country: null,
  slash8Key: subnetKey,
});
const apartMs: Readonly<Record<string, number>> = { "1 2": 40, "1 3": 30, "2 3": 20 };
const crawlerRttMs = (a: CrawlerId, b: CrawlerId) => apartMs[`${Math.min(a, b)} ${Math.max(a, b)}`] ?? null;
const crawlers = [1, 2, 3].map((id) => ({ crawlerId: asCrawlerId(id), placement: placeOf(900 + id) }));
const round = (subnet: number, ...rttsMs: (number | null)[]): PastRound => ({
  placement: placeOf(subnet),
  rttsMs: new Map(rttsMs.map((rttMs, at) => [asCrawlerId(at + 1), rttMs])),
});

const exhaustive = { policy: "exhaustive" } as const;
const ipmicra = (thresholdMs: number) => ({ policy: "ipmicra", parameters: { thresholdMs } }) as const;

it("gives recorded answers to crawlers that were asked then, and counts probes, moves and milliseconds", () => {
  const rounds = [round(1, 45, 10, 20), round(2, 5, 90, 90)];
  const input = { crawlers, crawlerRttMs, rounds };

  const [loose, all] = replayRounds(input, [ipmicra(50), exhaustive]);

  expect(loose!.rounds).toEqual([
    { crawlerId: 1, probes: 1, rttMs: 45, isMeasured: true },
    { crawlerId: 1, probes: 1, rttMs: 5, isMeasured: true },
  ]);
  expect(all!.rounds.map(({ crawlerId, probes }) => [crawlerId, probes])).toEqual([
    [2, 3],
    [1, 3],
  ]);
  expect(differenceOf(loose!, all!)).toEqual({
    rounds: 2,
    probesBefore: 2,
    probesAfter: 6,
    changed: 1,
    extraRttMs: (10 - 45 + 0) / 2,
    predictedShare: 0,
  });
});

it("predicts the answers of other crawlers from the crawlers' distances, and says so", () => {
  // From 1: 3 is between |30 - 10| and 30 + 10; from 2: between |20 - 35| and 55. Together 20 to 40: 30 ms.
  const input = { crawlers, crawlerRttMs, rounds: [round(1, 10, 35)] };

  const [all] = replayRounds(input, [exhaustive]);

  expect(all).toEqual({
    rounds: [{ crawlerId: 1, probes: 3, rttMs: 10, isMeasured: true }],
    predictedProbes: 1,
  });
});

it("a crawler that had no answer then has none in the replay", () => {
  const input = { crawlers, crawlerRttMs, rounds: [round(1, null, 35, 60)] };

  const [all] = replayRounds(input, [exhaustive]);

  expect(all!.rounds).toEqual([{ crawlerId: 2, probes: 3, rttMs: 35, isMeasured: true }]);
});

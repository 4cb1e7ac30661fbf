/** Anycast by its answers: contradictions, whom a round asks to check and to confirm them, and false alarms on measured data. */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  contradictions,
  distanceKm,
  type KnownFleet,
  type PlacedAnswer,
} from "#coordinator/place/delegation/anycast";
import {
  type AnycastView,
  checkingCrawler,
  confirmingCrawler,
  provenAnycast,
} from "#coordinator/place/delegation/anycast-check";
import { seededRandom } from "#core/random";
import { sharedData } from "../support/shared-data.ts";
import { everyPair, id, peerTable } from "./rounds.ts";

/** The strongest contradiction, or null when one machine can have given all answers. */
const anycastEvidence = (answers: readonly PlacedAnswer[], fleet: KnownFleet) =>
  contradictions(answers, fleet)[0] ?? null;

const [inAthens, inTokyo] = [
  { latitude: 37.98, longitude: 23.73 },
  { latitude: 35.68, longitude: 139.69 },
];
const answer = (crawler: number, rttMs: number, place: typeof inAthens | null = null) => ({
  ...{ crawlerId: id(crawler), rttMs, place },
});
const fleetOf = (rows: Parameters<typeof peerTable>[0]): KnownFleet => ({
  candidates: rows.map((_, index) => id(index + 1)),
  peerRtts: peerTable(rows),
});
const [noPeers, farPeers] = [fleetOf([]), fleetOf(everyPair(2, 250))];
/** Athens and Delhi measured each other in a bad moment; over Dubai it is 110 ms. */
const badMoment = fleetOf([
  [0, 900, 50],
  [900, 0, 60],
  [50, 60, 0],
]);
const light = { by: "light", near: { crawlerId: 2, rttMs: 3 }, far: { crawlerId: 1, rttMs: 4 } };

it("Athens and Tokyo are 9,500 km apart", () => {
  expect(Math.round(distanceKm(inAthens, inTokyo) / 100)).toBe(95);
});

it.each<[string, PlacedAnswer[], KnownFleet, object | null]>([
  [
    "two answers faster than light in glass between Athens and Tokyo",
    [answer(1, 4, inAthens), answer(2, 3, inTokyo)],
    noPeers,
    { ...light, leastSumMs: expect.closeTo(94, 0) },
  ],
  [
    "not of one machine in Athens, however fast it answers there",
    [answer(1, 1, inAthens), answer(2, 190, inTokyo)],
    noPeers,
    null,
  ],
  [
    "the crawlers' own distance where no place is stated",
    [answer(1, 4), answer(2, 5)],
    farPeers,
    { by: "peer-rtt", leastSumMs: 125 },
  ],
  ["not where only a long detour breaks the triangle", [answer(1, 60), answer(2, 70)], farPeers, null],
  ["not without answers", [], noPeers, null],
  ["not by one answer", [answer(1, 0.1, inAthens)], noPeers, null],
  ["not by crawlers at one place", [answer(1, 0.1, inAthens), answer(2, 0.1, inAthens)], noPeers, null],
  ["not by crawlers at unknown distance", [answer(1, 0.1), answer(2, 0.1)], noPeers, null],
  ["not by crawlers near each other", [answer(1, 0.1), answer(2, 0.1)], fleetOf(everyPair(2, 30)), null],
  ["not by a distance measured in a bad moment", [answer(1, 30), answer(2, 40)], badMoment, null],
  [
    "the way over a third crawler after a bad moment",
    [answer(1, 5), answer(2, 6)],
    badMoment,
    { leastSumMs: 55 },
  ],
  [
    "not by a stated place that light cannot reach in the crawlers' own time",
    [answer(1, 4, inAthens), answer(2, 3, inTokyo)],
    fleetOf(everyPair(2, 2)),
    null,
  ],
])("anycast is proved by %s", (_, answers, fleet, evidence) => {
  if (evidence === null) expect(anycastEvidence(answers, fleet)).toBeNull();
  else expect(anycastEvidence(answers, fleet)).toMatchObject(evidence);
});

it.each([[[1, 2, 3]], [[3, 2, 1]]])("the strongest contradiction comes first, in the order %j", (order) => {
  const peers = fleetOf([
    [0, 250, 100],
    [250, 0, 240],
    [100, 240, 0],
  ]);

  const evidence = anycastEvidence(
    order.map((crawler) => answer(crawler, crawler + 3)),
    peers,
  );
  expect([evidence?.near.crawlerId, evidence?.far.crawlerId]).toEqual([1, 2]);
});

/** Five crawlers: two in Europe, two in East Asia, one in America. */
const [athens, rome, seoul, tokyo, boston] = [id(1), id(2), id(3), id(4), id(5)];
const countries = ["GR", "IT", "KR", "JP", "US"];
const fiveCrawlers = fleetOf([
  [0, 25, 280, 270, 120],
  [25, 0, 270, 260, 100],
  [280, 270, 0, 30, 180],
  [270, 260, 30, 0, 160],
  [120, 100, 180, 160, 0],
]);
const from = (crawlerId: PlacedAnswer["crawlerId"], rttMs: number) => ({ crawlerId, rttMs });
const view = (differences: Partial<AnycastView> = {}): AnycastView => {
  const { answers = [] } = differences;
  const crawlers = countries.map((country, at) => ({ crawlerId: id(at + 1), place: null, country }));
  return {
    crawlers: new Map(crawlers.map((crawler) => [crawler.crawlerId, crawler])),
    ...{
      loadOf: () => 0,
      fleet: fiveCrawlers,
      answers,
      country: null,
      holder: null,
      isLarge: false,
      listed: null,
    },
    asked: new Set(answers.map(({ crawlerId }) => crawlerId)),
    ...differences,
  };
};
const fast = from(athens, 3);

it.each<[string, Partial<AnycastView>, number | null]>([
  ["asks nobody where the fast crawler is in the country of the registration", { country: "GR" }, null],
  ["asks nobody where the country is unknown", {}, null],
  ["asks a far crawler, if possible in the country of the registration", { country: "US" }, boston],
  ["asks the farthest crawler where none is in that country", { country: "BR" }, seoul],
  ["is made wherever many URLs wait, since the load matters", { country: "GR", isLarge: true }, seoul],
  [
    "asks nobody after an answer as slow as one from elsewhere",
    { country: "US", answers: [from(athens, 20)] },
    null,
  ],
  ["is made at once for a holder whose other ranges are anycast", { country: "GR", holder: true }, seoul],
  ["is never made for a holder that was clear", { country: "US", holder: false }, null],
  ["is not needed where a far crawler was asked", { country: "US", answers: [fast, from(tokyo, 250)] }, null],
  [
    "asks the far crawler with the most room about a holder of anycast ranges",
    { holder: true, loadOf: (crawlerId) => (crawlerId === tokyo ? 0.1 : 0.5) },
    tokyo,
  ],
])("a check %s", (_, differences, asked) => {
  const { answers = [fast] } = differences;

  expect(checkingCrawler(view({ ...differences, answers }), answers[0]!)).toBe(asked);
});

const pair = [from(athens, 3), from(tokyo, 4)];
const twoRegions = {
  fleet: { ...fiveCrawlers, candidates: [athens, rome, seoul, tokyo] },
  crawlers: new Map([...view().crawlers].slice(0, 4)),
};
it.each<[string, AnycastView["answers"], Partial<AnycastView>, readonly (number | null)[], object | null]>([
  ["is confirmed by a crawler far from both", pair, {}, [boston], null],
  [
    "is proved once no single crawler can be at fault",
    [...pair, from(boston, 8)],
    {},
    [null],
    { confirmed: { crawlerId: boston, rttMs: 8 }, evidence: { by: "peer-rtt" } },
  ],
  ["is confirmed by a neighbour where nobody is far from both", pair, twoRegions, [rome, seoul], null],
  ["is confirmed by the other's neighbour next", [...pair, from(seoul, 33)], twoRegions, [rome], null],
  ["is proved by neighbours of both", [...pair, from(seoul, 33), from(rome, 27)], twoRegions, [null], {}],
  [
    // Something beside tokyo answers for everybody; the target is in Athens.
    "is not confirmed where all contradictions have one crawler in common",
    [...pair, from(rome, 27), from(seoul, 275), from(boston, 121)],
    ...([{}, [null], null] as const),
  ],
  ["does not exist among answers that one machine can give", [fast, from(tokyo, 268)], {}, [null], null],
  [
    "is not confirmed when everybody was asked",
    [...pair, from(rome, 300), from(seoul, 300), from(boston, 300)],
    ...([{}, [null], null] as const),
  ],
])("a contradiction %s", (_, answers, differences, next, proven) => {
  const seen = view({ ...differences, answers });

  expect(next).toContain(confirmingCrawler(seen));
  if (proven === null) expect(provenAnycast(seen)).toBeNull();
  else expect(provenAnycast(seen)).toMatchObject(proven);
});

it("an anycast range goes to the crawler with the most room among those that answered fast", () => {
  const loadOf = (crawlerId: number) => [0.4, 1, 0.1, 0.2, 0][crawlerId - 1]!;
  const answers = [...pair, from(seoul, 12), from(boston, 20)];

  const proven = provenAnycast(view({ answers, loadOf }));

  expect(proven?.byLoad.map(({ crawlerId }) => crawlerId)).toEqual([seoul, tokyo, athens]);
});

/** Every target has one machine, so that every alarm is false. */
const instance = z.object({
  crawlers: z.array(z.unknown()),
  crawlerRtt: z.array(z.array(z.number().nullable())),
  targets: z.array(z.object({ rtt: z.array(z.number().nullable()) })),
});

describe.each(["PL12", "PL50"])("measured RTTs (%s)", (name) => {
  const file = sharedData(`latency/${name}.json`);

  it.skipIf(file === null)("raise no alarm, whichever crawlers answer", () => {
    const { crawlerRtt, targets } = instance.parse(JSON.parse(readFileSync(file!, "utf8")));
    const fleet = fleetOf(crawlerRtt);

    const alarms = targets.filter(({ rtt }) => {
      const answers = rtt.flatMap((rttMs, index) => (rttMs === null ? [] : [answer(index + 1, rttMs)]));
      return anycastEvidence(answers, fleet) !== null;
    });

    expect(alarms).toEqual([]);
  });
});

describe("a full matrix of 490 hosts", () => {
  const file = sharedData("latency/PlanetLabData_1.gz");

  it.skipIf(file === null)(
    "raises an alarm for fewer than one target in a hundred, although twelve crawlers answer for each",
    () => {
      const rows = gunzipSync(readFileSync(file!)).toString().trim().split("\n");
      const matrix = rows.map((row) =>
        row
          .trim()
          .split(/[\s,]+/)
          .map(Number),
      );
      const random = seededRandom(7);
      let targets = 0;
      let alarms = 0;

      for (let fleets = 0; fleets < 8; fleets++) {
        const hosts = matrix.map((_, host) => ({ host, at: random() })).sort((a, b) => a.at - b.at);
        const crawlers = hosts.slice(0, 12).map(({ host }) => host);
        const rtt = (a: number, b: number) => (matrix[a]![b]! > 0 ? matrix[a]![b]! : null);
        const fleet = fleetOf(crawlers.map((a) => crawlers.map((b) => (a === b ? 0 : rtt(a, b)))));
        for (const { host } of hosts.slice(12)) {
          const answers = crawlers.flatMap((crawler, index) => {
            const rttMs = rtt(crawler, host);
            return rttMs === null ? [] : [answer(index + 1, rttMs)];
          });
          targets += 1;
          if (anycastEvidence(answers, fleet) !== null) alarms += 1;
        }
      }

      expect(targets).toBe(8 * 478);
      expect(alarms / targets).toBeLessThan(0.01);
    },
  );
});

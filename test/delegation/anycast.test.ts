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
import { seededRandom } from "#core/random";
import { sharedData } from "../support/shared-data.ts";
import { id, peerTable } from "./rounds.ts";

/** The strongest contradiction; null: one machine can have given all answers. */
const anycastEvidence = (answers: readonly PlacedAnswer[], fleet: KnownFleet) =>
  contradictions(answers, fleet)[0] ?? null;

const athens = { latitude: 37.98, longitude: 23.73 };
const tokyo = { latitude: 35.68, longitude: 139.69 };
const answer = (crawler: number, rttMs: number, place: typeof athens | null = null) => ({
  crawlerId: id(crawler),
  rttMs,
  place,
});
const fleetOf = (rows: Parameters<typeof peerTable>[0]): KnownFleet => ({
  candidates: rows.map((_, index) => id(index + 1)),
  peerRtts: peerTable(rows),
});
const noPeers = fleetOf([]);
const farPeers = fleetOf([
  [0, 250],
  [250, 0],
]);

describe("anycast", () => {
  it("is proved by two answers faster than light in glass between Athens and Tokyo, 9,500 km apart", () => {
    const evidence = anycastEvidence([answer(1, 4, athens), answer(2, 3, tokyo)], noPeers);

    expect(distanceKm(athens, tokyo)).toBeGreaterThan(9400);
    expect(distanceKm(athens, tokyo)).toBeLessThan(9600);
    expect(evidence).toMatchObject({
      by: "light",
      near: { crawlerId: 2, rttMs: 3 },
      far: { crawlerId: 1, rttMs: 4 },
    });
    expect(evidence?.leastSumMs).toBeCloseTo(94, 0);
  });

  it("is not claimed of one machine in Athens, however fast it answers there", () => {
    expect(anycastEvidence([answer(1, 1, athens), answer(2, 190, tokyo)], noPeers)).toBeNull();
  });

  it("is seen by the crawlers' own distance where nobody says where they stand", () => {
    expect(anycastEvidence([answer(1, 4), answer(2, 5)], farPeers)).toMatchObject({
      by: "peer-rtt",
      leastSumMs: 125,
    });
  });

  it("is not claimed where the triangle is broken by a long detour only", () => {
    expect(anycastEvidence([answer(1, 60), answer(2, 70)], farPeers)).toBeNull();
  });

  it("needs two answers from crawlers that are apart", () => {
    expect(anycastEvidence([], noPeers)).toBeNull();
    expect(anycastEvidence([answer(1, 0.1, athens)], noPeers)).toBeNull();
    expect(anycastEvidence([answer(1, 0.1, athens), answer(2, 0.1, athens)], noPeers)).toBeNull();
    expect(anycastEvidence([answer(1, 0.1), answer(2, 0.1)], noPeers)).toBeNull();
    const nearPeers = fleetOf([
      [0, 30],
      [30, 0],
    ]);
    expect(anycastEvidence([answer(1, 0.1), answer(2, 0.1)], nearPeers)).toBeNull();
  });

  it("names the pair that contradicts one place most", () => {
    const peers = fleetOf([
      [0, 250, 100],
      [250, 0, 240],
      [100, 240, 0],
    ]);

    for (const order of [
      [1, 2, 3],
      [3, 2, 1],
    ]) {
      const evidence = anycastEvidence(
        order.map((crawler) => answer(crawler, crawler + 3)),
        peers,
      );
      expect([evidence?.near.crawlerId, evidence?.far.crawlerId]).toEqual([1, 2]);
    }
  });

  it("is not claimed because of one bad moment between two crawlers: the way over a third one counts", () => {
    // Athens and Delhi measured each other in a second in which something was down; over Dubai it is 110 ms.
    const fleet = fleetOf([
      [0, 900, 50],
      [900, 0, 60],
      [50, 60, 0],
    ]);

    expect(anycastEvidence([answer(1, 30), answer(2, 40)], fleet)).toBeNull();
    expect(anycastEvidence([answer(1, 5), answer(2, 6)], fleet)).toMatchObject({ leastSumMs: 55 });
  });

  it("does not believe a partner's place that light cannot reach in the time the crawlers measured", () => {
    const nextDoor = fleetOf([
      [0, 2],
      [2, 0],
    ]);

    expect(anycastEvidence([answer(1, 4, athens), answer(2, 3, tokyo)], nextDoor)).toBeNull();
  });
});

/** Crawlers and targets of one place each: whatever is claimed of them is a false alarm. */
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
    "raises an alarm for less than one target in a hundred, though every twelve of them answer",
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

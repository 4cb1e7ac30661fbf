import { describe, expect, it } from "vitest";
import { anycastEvidence, distanceKm } from "#core/delegation/anycast";
import { id, peerTable } from "./rounds.ts";

const athens = { latitude: 37.98, longitude: 23.73 };
const tokyo = { latitude: 35.68, longitude: 139.69 };
const answer = (crawler: number, rttMs: number, place: typeof athens | null = null) => ({
  crawlerId: id(crawler),
  rttMs,
  place,
});
const noPeers = peerTable([]);
const farPeers = peerTable([
  [0, 250],
  [250, 0],
]);

describe("anycast", () => {
  it("is proved by two answers faster than light in glass between Athens and Tokyo, 9,500 km apart", () => {
    const evidence = anycastEvidence([answer(1, 4, athens), answer(2, 3, tokyo)], noPeers);

    expect(distanceKm(athens, tokyo)).toBeGreaterThan(9400);
    expect(distanceKm(athens, tokyo)).toBeLessThan(9600);
    expect(evidence).toMatchObject({
      type: "anycast",
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
      leastSumMs: 75,
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
    const nearPeers = peerTable([
      [0, 30],
      [30, 0],
    ]);
    expect(anycastEvidence([answer(1, 0.1), answer(2, 0.1)], nearPeers)).toBeNull();
  });

  it("names the pair that contradicts one place most", () => {
    const peers = peerTable([
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
});

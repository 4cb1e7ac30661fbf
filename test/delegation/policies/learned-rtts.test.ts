import { describe, expect, it } from "vitest";
import { candidateFleet } from "#coordinator/place/delegation/fleet";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import { GainCalibration, LearnedRtts } from "#coordinator/place/delegation/policies/learned-rtts";
import {
  learnFromRound,
  nextStep,
  observe,
  startRound,
} from "#coordinator/place/delegation/policies/policies";
import { defaultParameters } from "#coordinator/place/delegation/policies/round";
import { seededRandom } from "#core/random";
import { smallestOf } from "#core/small-collections";
import { id, peerTable, placement } from "../rounds.ts";

/*
 * Three crawlers in a row, and targets that lie off the line, so that the distances between the crawlers say
 * little of them: 60 ms from 1 and 2, but 20 ms from 3.
 *
 *   1 ──40── 2 ──40── 3
 */
const peers = [
  [0, 40, 80],
  [40, 0, 40],
  [80, 40, 0],
];
const offTheLine = [60, 60, 20];
const fleet = candidateFleet([1, 2, 3].map(id), peerTable(peers));

/** Runs a round for a target of this holder; returns who was asked and who won. */
function run(
  learned: LearnedRtts,
  knowledge: DelegationKnowledge,
  subnetKey: string,
  answersMs = offTheLine,
) {
  const where = placement({ subnetKey, holderKey: "h", ancestorKeys: ["p"], country: "XA" });
  let round = startRound("nearest", {
    placement: where,
    fleet,
    knowledge,
    learned,
    parameters: defaultParameters,
  });
  const asked: number[] = [];
  let step = nextStep(round);
  for (; step.type === "probe"; step = nextStep(round)) {
    asked.push(step.crawlerId);
    round = observe(round, step.crawlerId, { rttMs: answersMs[step.crawlerId - 1]! });
  }
  learnFromRound(round);
  if (step.type === "decided") knowledge.record(where, step.crawlerId);
  return { asked, winner: step.type === "decided" ? step.crawlerId : null };
}

describe("what finished rounds measured", () => {
  it("lets later rounds nearby ask fewer crawlers for the same answer", () => {
    const learned = new LearnedRtts();
    const knowledge = new DelegationKnowledge();
    knowledge.record(placement({ subnetKey: "s", holderKey: "h", ancestorKeys: ["p"] }), id(1));

    const rounds = Array.from({ length: 8 }, (_, index) => run(learned, knowledge, `t${index}`));

    expect(rounds.map(({ winner }) => winner)).toEqual(Array(8).fill(3));
    expect(rounds[0]!.asked).toHaveLength(3);
    expect(rounds[7]!.asked).toEqual([3]);
  });

  it("is kept as measured where a crawler answered, and as expected within the triangle's bounds elsewhere", () => {
    const learned = new LearnedRtts();
    const knowledge = new DelegationKnowledge();
    const where = placement({ subnetKey: "t", holderKey: "h", ancestorKeys: ["p"] });
    let round = startRound("nearest", {
      placement: where,
      fleet,
      knowledge,
      learned,
      parameters: defaultParameters,
    });
    round = observe(round, id(1), { rttMs: 5 });

    learnFromRound(round);

    const row = learned.wonBy(id(1))[0]!;
    const kept = (crawler: number) => learned.figuresOf(row, id(crawler))!;
    expect(kept(1)).toEqual({ rttMs: 5, spreadMs: 0 });
    // Crawler 2 is 40 ms from crawler 1: at most 45 ms, and hardly less than 0.8 · 35.
    expect(kept(2).rttMs).toBeGreaterThanOrEqual(28);
    expect(kept(2).rttMs).toBeLessThanOrEqual(45);
    expect(kept(2).spreadMs).toBeGreaterThan(0);
    const { vectors } = learned;
    const nearest = [0, 1, 2].map((rank) => vectors.slots[vectors.nearest.at(row, rank)]);
    expect(vectors.nearest.counts[row]).toBe(3);
    expect(nearest).toEqual([1, 2, 3].map((crawler) => learned.slotOf(id(crawler))));
  });

  it("is bounded, whatever the number of subnets, holders and crawlers", () => {
    const learned = new LearnedRtts();

    for (let number = 0; number < 20_000; number++) {
      learned.keep(
        id(1 + (number % 300)),
        placement({
          subnetKey: number,
          holderKey: `h${number >> 1}`,
          ancestorKeys: [`p${number}`],
          published: [{ source: "s", place: `x${number}` }],
        }),
        { slots: [0, 1], rttsMs: [1, 2], spreadsMs: [0, 0] },
      );
    }

    expect(learned.size).toBeLessThanOrEqual(3200);
    expect(learned.vectors.size).toBeLessThanOrEqual(3200 + 3 * 8000);
    // The latest are there, the first are not.
    expect(learned.alike(placement({ holderKey: "h9999" }))).toHaveLength(2);
    expect(learned.alike(placement({ holderKey: "h0" }))).toEqual([]);
    expect(learned.atPublished("x19999")).toHaveLength(1);
    expect(learned.atPublished("x0")).toEqual([]);
  });

  it("teaches nothing when nobody answered", () => {
    const learned = new LearnedRtts();
    const knowledge = new DelegationKnowledge();
    let round = startRound("nearest", {
      placement: placement(),
      fleet,
      knowledge,
      learned,
      parameters: defaultParameters,
    });
    round = observe(round, id(1), { failed: "timed out" });

    learnFromRound(round);

    expect(learned.size).toBe(0);
  });
});

describe("the correction of expected gains", () => {
  it("is 1 before anything is known, falls where probes save less than expected and rises where they save more", () => {
    const calibration = new GainCalibration();
    expect(calibration.scale).toBe(1);

    for (let number = 0; number < 50; number++) calibration.note({ expectedMs: 2, savedMs: 0.5 });
    const disappointed = calibration.scale;
    for (let number = 0; number < 200; number++) calibration.note({ expectedMs: 2, savedMs: 10 });

    expect(disappointed).toBeGreaterThan(1 / 3);
    expect(disappointed).toBeLessThan(0.5);
    expect(calibration.scale).toBeGreaterThan(1.5);
  });

  it("stays within a third and three times, and counts a saving up to 15 ms", () => {
    const never = new GainCalibration();
    const always = new GainCalibration();

    for (let number = 0; number < 5000; number++) {
      never.note({ expectedMs: 10, savedMs: 0 });
      always.note({ expectedMs: 10, savedMs: 1000 });
    }

    expect(never.scale).toBe(1 / 3);
    expect(always.scale).toBeCloseTo(1.5, 1);
  });
});

describe("the smallest values", () => {
  it("are found in their order, as sorting finds them", () => {
    const draw = seededRandom(7);

    for (let round = 0; round < 200; round++) {
      const values = Float64Array.from({ length: Math.floor(draw() * 40) }, () =>
        draw() < 0.2 ? Number.NaN : draw(),
      );
      const sorted = [...values.keys()].filter((at) => !Number.isNaN(values[at]!));
      sorted.sort((a, b) => values[a]! - values[b]!);
      expect([...smallestOf(values, 9)], `round ${round}`).toEqual(sorted.slice(0, 9));
    }
  });
});

/** What networks publish of a range steers a round as far as its source has been right. */
import { describe, expect, it } from "vitest";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import { LearnedRtts, SourceTrust } from "#coordinator/place/delegation/policies/learned-rtts";
import {
  learnFromRound,
  nextStep,
  observe,
  startRound,
} from "#coordinator/place/delegation/policies/policies";
import { explainReason } from "#coordinator/place/delegation/policies/reason";
import { id, inputOf, placement } from "./rounds.ts";

/* Crawlers 100 ms apart on a line: 1 ── 2 ── 3 ── 4 */
const line = [
  [0, 100, 200, 300],
  [100, 0, 100, 200],
  [200, 100, 0, 100],
  [300, 200, 100, 0],
];
const answersAt = (crawler: number) => [1, 2, 3, 4].map((one) => 2 + 100 * Math.abs(one - crawler));

/** A coordinator that delegates one subnet after the other, each of a holder of its own. */
function coordinator() {
  const knowledge = new DelegationKnowledge();
  const learned = new LearnedRtts();
  // Somebody has to be the likeliest where nothing is published.
  for (let subnet = 0; subnet < 20; subnet++) knowledge.record(placement({ subnetKey: `s${subnet}` }), id(1));
  let subnets = 0;
  return {
    learned,
    delegate(nearest: number, source?: string, place = "XX city") {
      const number = subnets++;
      const where = placement({
        subnetKey: `t${number}`,
        holderKey: `h${number}`,
        ...(source === undefined ? {} : { published: [{ source, place }] }),
      });
      const answers = answersAt(nearest);
      let round = startRound("nearest", {
        ...inputOf({ policy: "nearest", answers, peers: line, placement: where, knowledge, learned }),
      });
      const asked: number[] = [];
      let step = nextStep(round);
      for (; step.type === "probe"; step = nextStep(round)) {
        asked.push(step.crawlerId);
        round = observe(round, step.crawlerId, { rttMs: answers[step.crawlerId - 1]! });
      }
      if (step.type !== "decided") throw new Error("nobody");
      learnFromRound(round);
      knowledge.record(where, step.crawlerId);
      return { asked, winner: step.crawlerId, reason: step.reason };
    },
  };
}

describe("published places", () => {
  it("decide a subnet by a hint and one probe, once others of the place are known, and say so", () => {
    const { delegate } = coordinator();
    const first = delegate(3, "aws");
    expect(first.asked[0]).toBe(1);
    for (let subnet = 0; subnet < 4; subnet++) delegate(3, "aws");

    const other = delegate(3, "geofeed https://net.example/geofeed.csv");

    expect(other).toMatchObject({ asked: [3], winner: 3 });
    expect(explainReason(other.reason, (crawlerId) => `crawler ${crawlerId}`)).toContain(
      "According to geofeed https://net.example/geofeed.csv it lies in XX city (source trusted 67 %); 5 other subnets are known there. " +
        "It was asked first, as the likeliest by past delegations there and nearby, and answered in 2 ms.",
    );
    expect(delegate(3).asked[0]).toBe(1);
  });

  it("lose their weight where the source is wrong again and again, and another source of the same place does not", () => {
    const { delegate, learned } = coordinator();
    for (let subnet = 0; subnet < 12; subnet++) delegate(3, "aws");
    for (let subnet = 0; subnet < 60; subnet++) delegate(1 + ((subnet * 7) % 4), "liar");

    expect(learned.sources.of("liar")).toBeLessThan(0.6);
    expect(learned.sources.of("aws")).toBeGreaterThan(0.9);
    // Whatever it says, the subnet goes to the nearest.
    expect(delegate(2, "liar").winner).toBe(2);
  });

  it("that contradict each other are outvoted by the first probes", () => {
    const { delegate } = coordinator();
    delegate(4, "a", "east");
    delegate(2, "b", "west");

    expect(delegate(4, "b", "west").winner).toBe(4);
    expect(delegate(2, "a", "east").winner).toBe(2);
  });
});

describe("the trust in a source", () => {
  it("begins at two thirds, follows what was seen, and forgets", () => {
    const trust = new SourceTrust();
    expect(trust.of("s")).toBeCloseTo(2 / 3, 6);

    for (let number = 0; number < 400; number++) trust.note("s", 0);
    const liar = trust.of("s");
    for (let number = 0; number < 400; number++) trust.note("s", 1);

    expect(liar).toBeLessThan(0.03);
    expect(trust.of("s")).toBeGreaterThan(0.9);
  });

  it("is kept of a bounded number of sources, the latest", () => {
    const trust = new SourceTrust();
    for (let number = 0; number < 20_500; number++) trust.note(`s${number}`, 1);

    expect(trust.of("s0")).toBeCloseTo(2 / 3, 6);
    expect(trust.of("s20499")).toBeCloseTo(0.75, 6);
  });
});

import { describe, expect, it } from "vitest";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import { explainReason, parseReason } from "#coordinator/place/delegation/policies/reason";
import type { CrawlerId } from "#core/ids";
import { decisionOf, id, placement, type RoundSetup, runRound } from "../rounds.ts";

const names = ["", "athens", "berlin", "cairo", "delhi"];
const nameOf = (crawlerId: CrawlerId) => names[crawlerId] ?? `crawler ${crawlerId}`;
const line = [
  [0, 100, 200, 300],
  [100, 0, 100, 200],
  [200, 100, 0, 100],
  [300, 200, 100, 0],
];
const athensFirst = new DelegationKnowledge();
athensFirst.record(placement({ subnetKey: "s", holderKey: "h" }), id(1));
const target = placement({ subnetKey: "t", holderKey: "h" });
const words = (setup: RoundSetup) =>
  explainReason(JSON.parse(JSON.stringify(decisionOf(setup).reason)), nameOf);

describe("a reason in words", () => {
  it("says which crawlers the triangle inequality ruled out, and by which probe", () => {
    const text = words({
      policy: "nearest",
      answers: [2, 98, 198, 298],
      peers: line,
      placement: target,
      knowledge: athensFirst,
    });

    expect(text).toBe(
      "It was asked first, as the likeliest by past delegations nearby, and answered in 2 ms. " +
        "Ruled out by the triangle inequality, without asking: " +
        "berlin (at least 78.4 ms, since athens measured 2 ms and is 100 ms from it), " +
        "cairo (at least 158 ms, since athens measured 2 ms and is 200 ms from it), " +
        "delhi (at least 238 ms, since athens measured 2 ms and is 300 ms from it). " +
        "Nobody was left who could be nearer. " +
        "Runner-up: berlin (not asked, at most about 102 ms).",
    );
  });

  it("says what one more probe was expected to save, and why that was too little", () => {
    const text = words({
      policy: "nearest",
      answers: [6, 7],
      peers: [
        [0, 10],
        [10, 0],
      ],
      placement: target,
      knowledge: athensFirst,
      parameters: { lambdaMs: 3 },
    });

    expect(text).toMatch(
      /berlin, was expected to save 0\.\d+ ms, less than the 0\.2 ms that a probe must be worth \(λ is 3 ms; less is/,
    );
  });

  it("says who failed to answer and that it is tried again", () => {
    const text = words({
      policy: "nearest",
      answers: ["timed out", "refused"],
      placement: target,
      knowledge: athensFirst,
    });

    expect(text).toContain("Nobody answered, so the likeliest by past delegations nearby was taken");
    expect(text).toContain("It will be tried again.");
    expect(text).toContain("Asked, in this order: athens no answer (timed out), berlin no answer (refused).");
  });

  it("speaks for every policy", () => {
    const setup = { answers: [70, 60], placement: target } as const;

    expect(words({ ...setup, policy: "random", random: 0 })).toContain(
      "Drawn at random from 2 crawlers, without a probe. Runner-up: berlin.",
    );
    expect(words({ ...setup, policy: "exhaustive" })).toContain(
      "With 60 ms it was the fastest; every crawler was asked.",
    );
    expect(words({ ...setup, policy: "ipmicra" })).toContain("Nobody was under the threshold of 50 ms.");
    expect(words({ ...setup, policy: "ipmicra", knowledge: athensFirst })).toContain(
      "belong to this crawler alone",
    );
    expect(words({ ...setup, policy: "ipmicra", answers: [9, 1] })).toContain(
      "It answered in 9 ms, the first under the threshold of 50 ms, found among all crawlers.",
    );
    expect(words({ ...setup, policy: "nearest", candidates: [2] })).toContain("only crawler");
    expect(
      explainReason(runRound({ ...setup, policy: "nearest", candidates: [] }).end.reason, nameOf),
    ).toContain("No crawler could take the subnet");
  });

  it("explains anycast", () => {
    const reason = {
      type: "anycast",
      near: { crawlerId: 1, rttMs: 3 },
      far: { crawlerId: 4, rttMs: 4 },
      leastSumMs: 60,
      by: "light",
    };

    expect(explainReason(reason, nameOf)).toContain(
      "athens (3 ms) and delhi (4 ms) are so far apart that light in glass allows one machine no less than 60 ms",
    );
  });

  it("names at most eight crawlers that were ruled out and counts the others, so that a large fleet's reason stays small", () => {
    const peers = Array.from({ length: 300 }, (_, a) => Array.from({ length: 300 }, (_, b) => 50 + a + b));
    const knowledge = athensFirst;

    const { reason } = decisionOf({
      policy: "nearest",
      answers: new Array(300).fill(1),
      peers,
      placement: target,
      knowledge,
    });

    expect(reason).toMatchObject({ type: "expected-gain", ruledOutCount: 299 });
    expect(reason.type === "expected-gain" && reason.ruledOut).toHaveLength(8);
    expect(JSON.stringify(reason).length).toBeLessThan(2000);
  });

  it("does not fail on what another version wrote", () => {
    expect(parseReason({ type: "by-horoscope" })).toBeNull();
    expect(parseReason(null)).toBeNull();
    expect(explainReason({ type: "random" }, nameOf)).toBe(
      "The reason was recorded in a form that this version does not know.",
    );
  });
});

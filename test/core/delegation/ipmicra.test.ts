/** The paper's delegation procedure (section 4.3), on its own example (figure 2). */
import { describe, expect, it } from "vitest";
import { DelegationKnowledge } from "#core/delegation/knowledge";
import { decisionOf, id, placement, runRound } from "./rounds.ts";

/*
 * Figure 2, as far as the text gives it:
 *
 *   2 (12.0.0.1 - 18.255.255.255)
 *   └─ 8 (14.0.0.1 - 16.255.255.255)
 *      ├─ 11  company 1, crawler X
 *      ├─ 12  unary: 15.10.0.7
 *      ├─ 13  company 2, crawler Y
 *      └─ 14  not delegated
 */
const X = id(1);
const Y = id(2);
const elsewhere = id(3);
const subnet11 = placement({ subnetKey: 11, holderKey: "company 1", ancestorKeys: [8, 2] });
const subnet13 = placement({ subnetKey: 13, holderKey: "company 2", ancestorKeys: [8, 2] });
/** 15.10.0.7 lies in 12, which is unary; so 8 is to be delegated. */
const subnet8 = placement({ subnetKey: 8, holderKey: "company 3", ancestorKeys: [2] });
const farAway = placement({ subnetKey: 90, holderKey: "company 9", slash8Key: "200/8" });

function figure2(): DelegationKnowledge {
  const knowledge = new DelegationKnowledge();
  knowledge.record(subnet11, X);
  knowledge.record(subnet13, Y);
  knowledge.record(farAway, elsewhere);
  return knowledge;
}

describe("ipmicra on the paper's example: a URL at 15.10.0.7", () => {
  it("asks X and Y, who own the children 11 and 13 of subnet 8, and nobody else", () => {
    const round = runRound({
      policy: "ipmicra",
      answers: [70, 30, 10],
      placement: subnet8,
      knowledge: figure2(),
    });

    expect(round.asked).toEqual([X, Y]);
    expect(round.end).toMatchObject({
      type: "decided",
      crawlerId: Y,
      rttMs: 30,
      measured: true,
      reason: { type: "under-threshold", thresholdMs: 50, level: "subnet", askedCount: 2 },
    });
  });

  it("stops at X when X is under the threshold, though Y would be faster", () => {
    const round = runRound({
      policy: "ipmicra",
      answers: [40, 5, 10],
      placement: subnet8,
      knowledge: figure2(),
    });

    expect(round.asked).toEqual([X]);
    expect(round.end).toMatchObject({ crawlerId: X });
  });

  it("climbs to the root when neither is under the threshold", () => {
    const round = runRound({
      policy: "ipmicra",
      answers: [70, 60, 20],
      placement: subnet8,
      knowledge: figure2(),
    });

    expect(round.asked).toEqual([X, Y, elsewhere]);
    expect(round.end).toMatchObject({ crawlerId: elsewhere, reason: { level: "root" } });
  });

  it("takes the fastest when nobody at all is under the threshold; an answer at the threshold is not under it", () => {
    const decision = decisionOf({
      policy: "ipmicra",
      answers: [70, 50, 90],
      placement: subnet8,
      knowledge: figure2(),
    });

    expect(decision).toMatchObject({ crawlerId: Y, reason: { type: "fastest-of-all", askedCount: 3 } });
  });

  it("gives a new subnet of company 1 to X without a probe", () => {
    const another = placement({ subnetKey: 99, holderKey: "company 1", slash8Key: "99/8" });

    const round = runRound({
      policy: "ipmicra",
      answers: [400, 1, 1],
      placement: another,
      knowledge: figure2(),
    });

    expect(round.asked).toEqual([]);
    expect(round.end).toMatchObject({
      crawlerId: X,
      rttMs: null,
      measured: true,
      reason: { type: "same-company", subnetsOwned: 1 },
    });
  });

  it("delegates subnet 14 later by the same way, now with subnet 8 delegated too", () => {
    const knowledge = figure2();
    knowledge.record(subnet8, Y);
    const subnet14 = placement({ subnetKey: 14, holderKey: "company 4", ancestorKeys: [8, 2] });

    const round = runRound({ policy: "ipmicra", answers: [70, 20, 5], placement: subnet14, knowledge });

    expect(round.asked).toEqual([X, Y]);
    expect(round.end).toMatchObject({ crawlerId: Y, reason: { level: "ancestor" } });
  });
});

describe("ipmicra with a company that several crawlers serve", () => {
  const knowledge = () => {
    const made = figure2();
    made.record(placement({ subnetKey: 21, holderKey: "company 5", slash8Key: "21/8" }), Y);
    made.record(placement({ subnetKey: 22, holderKey: "company 5", slash8Key: "22/8" }), elsewhere);
    return made;
  };
  const target = placement({ subnetKey: 23, holderKey: "company 5", ancestorKeys: [8, 2] });

  it("asks them until one is under the threshold", () => {
    const round = runRound({
      policy: "ipmicra",
      answers: [1, 80, 30],
      placement: target,
      knowledge: knowledge(),
    });

    expect(round.asked).toEqual([Y, elsewhere]);
    expect(round.end).toMatchObject({ crawlerId: elsewhere, reason: { level: "company" } });
  });

  it("climbs the tree when none of them is, and asks nobody twice", () => {
    const round = runRound({
      policy: "ipmicra",
      answers: [10, 80, 90],
      placement: target,
      knowledge: knowledge(),
    });

    expect(round.asked).toEqual([Y, elsewhere, X]);
    expect(round.end).toMatchObject({ crawlerId: X, reason: { level: "ancestor" } });
  });

  it("does not count a company's crawler that is no candidate now", () => {
    const round = runRound({
      policy: "ipmicra",
      answers: [10, 80, 90],
      candidates: [1, 3],
      placement: target,
      knowledge: knowledge(),
    });

    expect(round.asked).toEqual([]);
    expect(round.end).toMatchObject({ crawlerId: elsewhere, reason: { type: "same-company" } });
  });
});

/** The paper's delegation procedure (section 4.3), on its own example (figure 2). */
import { describe, expect, it } from "vitest";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import { type Placement, placementOf } from "#coordinator/place/delegation/placement";
import type { Subnet } from "#coordinator/place/subnets/subnet";
import { buildSubnetTree } from "#coordinator/place/subnets/subnet-tree";
import { asHolderId, asSubnetId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { parseRange } from "#core/ip/range";
import { id, placement, type RoundSetup, runRound } from "./rounds.ts";

/*
 * Figure 2. Subnets 2, 8 and 12 are the paper's; where 11, 13 and 14 lie within 8 it does not say:
 *
 *   2  12.0.0.1 - 18.255.255.255
 *   └─ 8  14.0.0.1 - 16.255.255.255
 *      ├─ 11  14.16.0.0/12, company 1, crawler X
 *      ├─ 12  15.10.0.7 alone
 *      ├─ 13  16.32.0.0/12, company 2, crawler Y
 *      └─ 14  15.64.0.0/12, company 4
 */
const tree = buildSubnetTree([
  registered(2, "12.0.0.1 - 18.255.255.255"),
  registered(8, "14.0.0.1 - 16.255.255.255", 3),
  registered(11, "14.16.0.0/12", 1),
  registered(12, "15.10.0.7", 5),
  registered(13, "16.32.0.0/12", 2),
  registered(14, "15.64.0.0/12", 4),
  registered(90, "200.1.0.0/16", 9),
]);
const X = id(1);
const Y = id(2);
const elsewhere = id(3);

function registered(subnetId: number, range: string, company: number | null = null): Subnet {
  return {
    id: asSubnetId(subnetId),
    range: parseRange(range)!,
    parentId: null,
    holderId: company === null ? null : asHolderId(company),
    country: null,
    registry: "ripencc",
    name: "",
  };
}

const subnet = (subnetId: number): Placement => placementOf(tree, asSubnetId(subnetId))!;

/** The subnet to delegate for a URL at this address. */
function smallestNonUnary(text: string): number | undefined {
  return tree.mostSpecificNonUnaryId(parseAddress(text)!) ?? undefined;
}

/** Who has what in the figure; `elsewhere` has a subnet under no common parent, and was there first. */
function figure2(): DelegationKnowledge {
  const knowledge = new DelegationKnowledge();
  knowledge.record(subnet(90), elsewhere);
  knowledge.record(subnet(11), X);
  knowledge.record(subnet(13), Y);
  return knowledge;
}

const owners = (knowledge: DelegationKnowledge, subnetId: number) =>
  knowledge.owners({ kind: "own", key: subnetId }).map(({ crawlerId }) => crawlerId);

const ipmicra = (
  answers: RoundSetup["answers"],
  target: Placement,
  knowledge: DelegationKnowledge,
  differences: Partial<RoundSetup> = {},
) => runRound({ policy: "ipmicra", answers, placement: target, knowledge, ...differences });

describe("ipmicra on the paper's example: a URL at 15.10.0.7", () => {
  it("lies in subnet 12, which is unary, so subnet 8 is delegated", () => {
    expect(tree.mostSpecific(parseAddress("15.10.0.7")!)?.id).toBe(12);
    expect(smallestNonUnary("15.10.0.7")).toBe(8);
    expect(owners(figure2(), 8)).toEqual([]);
  });

  it("asks X and Y, who own the children 11 and 13 of subnet 8, and nobody else", () => {
    const round = ipmicra([70, 30, 10], subnet(8), figure2());

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
    const round = ipmicra([40, 5, 10], subnet(8), figure2());

    expect(round.asked).toEqual([X]);
    expect(round.end).toMatchObject({ crawlerId: X });
  });

  it("proceeds to higher levels of the hierarchy when neither is under the threshold", () => {
    const knowledge = figure2();
    const neighbour = id(4);
    knowledge.record(subnet(2), neighbour);

    const round = ipmicra([70, 60, 20, 51], subnet(8), knowledge);

    expect(round.asked).toEqual([X, Y, neighbour, elsewhere]);
    expect(round.end).toMatchObject({ crawlerId: elsewhere, reason: { level: "root" } });
  });

  it("takes the fastest when nobody at all is under the threshold; an answer at the threshold is not under it", () => {
    const decision = ipmicra([70, 50, 90], subnet(8), figure2()).end;

    expect(decision).toMatchObject({ crawlerId: Y, reason: { type: "fastest-of-all", askedCount: 3 } });
  });

  it("delegates both subnets 8 and 12, leaves 11 and 13 to X and Y, and 14 to nobody", () => {
    const knowledge = figure2();

    knowledge.record(subnet(8), Y);

    expect(smallestNonUnary("15.10.0.7")).toBe(8);
    expect([8, 11, 13, 14].map((subnetId) => owners(knowledge, subnetId))).toEqual([[Y], [X], [Y], []]);
    expect([smallestNonUnary("14.17.0.1"), smallestNonUnary("15.65.0.1")]).toEqual([11, 14]);
  });

  it("delegates subnet 14 later by the same way: first its parent's own crawler, then those of its siblings", () => {
    const knowledge = figure2();
    knowledge.record(subnet(8), Y);

    const near = ipmicra([20, 30, 5], subnet(14), knowledge);
    const far = ipmicra([70, 80, 90], subnet(14), knowledge);

    expect(near.asked).toEqual([Y]);
    expect(near.end).toMatchObject({ crawlerId: Y, reason: { level: "ancestor" } });
    expect(far.asked).toEqual([Y, X, elsewhere]);
    expect(far.end).toMatchObject({ crawlerId: X, reason: { type: "fastest-of-all" } });
  });
});

describe("ipmicra on a subnet's company", () => {
  it("gives a new subnet of company 1 to X without a probe", () => {
    const another = placement({ subnetKey: 99, holderKey: 1, slash8Key: 99 });

    const round = ipmicra([400, 1, 1], another, figure2());

    expect(round.asked).toEqual([]);
    expect(round.end).toMatchObject({
      crawlerId: X,
      rttMs: null,
      measured: true,
      reason: { type: "same-company", subnetsOwned: 1 },
    });
  });
});

describe("ipmicra on its way up", () => {
  it("asks at each subnet its own crawler, then those of its children, then those of their descendants", () => {
    const knowledge = new DelegationKnowledge();
    const under = (key: string, ...ancestorKeys: string[]) => placement({ subnetKey: key, ancestorKeys });
    knowledge.record(under("grandchild", "sibling", "parent", "top"), id(4));
    knowledge.record(under("cousin", "uncle", "top"), id(6));
    knowledge.record(under("sibling", "parent", "top"), id(3));
    knowledge.record(under("other sibling", "parent", "top"), id(2));
    knowledge.record(under("uncle", "top"), id(5));
    knowledge.record(under("parent", "top"), id(1));
    knowledge.record(under("inside", "target", "parent", "top"), id(7));

    const round = ipmicra(
      Array.from({ length: 8 }, () => 99),
      under("target", "parent", "top"),
      knowledge,
    );

    expect(round.asked).toEqual([7, 1, 3, 2, 4, 5, 6, 8]);
  });
});

describe("ipmicra with a company that several crawlers serve", () => {
  const knowledge = () => {
    const made = figure2();
    made.record(placement({ subnetKey: 21, holderKey: "company 5", slash8Key: 21 }), Y);
    made.record(placement({ subnetKey: 22, holderKey: "company 5", slash8Key: 22 }), elsewhere);
    return made;
  };
  const target = placement({ subnetKey: 23, holderKey: "company 5", ancestorKeys: [8, 2] });

  it("asks them until one is under the threshold", () => {
    const round = ipmicra([1, 80, 30], target, knowledge());

    expect(round.asked).toEqual([Y, elsewhere]);
    expect(round.end).toMatchObject({ crawlerId: elsewhere, reason: { level: "company" } });
  });

  it("climbs the tree when none of them is, and asks nobody twice", () => {
    const round = ipmicra([10, 80, 90], target, knowledge());

    expect(round.asked).toEqual([Y, elsewhere, X]);
    expect(round.end).toMatchObject({ crawlerId: X, reason: { level: "ancestor" } });
  });

  it("does not count a company's crawler that is no candidate now", () => {
    const round = ipmicra([10, 80, 90], target, knowledge(), { candidates: [1, 3] });

    expect(round.asked).toEqual([]);
    expect(round.end).toMatchObject({ crawlerId: elsewhere, reason: { type: "same-company" } });
  });
});

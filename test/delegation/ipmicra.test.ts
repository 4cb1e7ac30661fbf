/** The paper's delegation procedure (section 4.3), on its own example (figure 2). */
import { describe, expect, it } from "vitest";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import { type Placement, placementOf } from "#coordinator/place/delegation/placement";
import { buildSubnetTree } from "#coordinator/place/subnets/subnet-tree";
import { asHolderId, asSubnetId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { parseRange } from "#core/ip/range";
import { id, placement, type RoundSetup, runRound } from "./rounds.ts";

/*
 * Figure 2. Subnets 2, 8 and 12 are the paper's; it does not say where 11, 13 and 14 are within 8:
 *
 *   2  12.0.0.1 - 18.255.255.255
 *   └─ 8  14.0.0.1 - 16.255.255.255
 *      ├─ 11  14.16.0.0/12, company 1, crawler X
 *      ├─ 12  15.10.0.7 alone
 *      ├─ 13  16.32.0.0/12, company 2, crawler Y
 *      └─ 14  15.64.0.0/12, company 4
 */
const registered: readonly [subnetId: number, range: string, company: number | null][] = [
  [2, "12.0.0.1 - 18.255.255.255", null],
  [8, "14.0.0.1 - 16.255.255.255", 3],
  [11, "14.16.0.0/12", 1],
  [12, "15.10.0.7", 5],
  [13, "16.32.0.0/12", 2],
  [14, "15.64.0.0/12", 4],
  [90, "200.1.0.0/16", 9],
];
const tree = buildSubnetTree(
  registered.map(([subnetId, range, company]) => ({
    ...{ id: asSubnetId(subnetId), range: parseRange(range)!, parentId: null },
    holderId: company === null ? null : asHolderId(company),
    ...({ country: null, registry: "ripencc", name: "" } as const),
  })),
);
const [X, Y, elsewhere, neighbour] = [1, 2, 3, 4].map(id);
const subnet = (subnetId: number): Placement => placementOf(tree, asSubnetId(subnetId))!;

/** Who has what in the figure, and more; `elsewhere` has a subnet under no common parent, and was there first. */
function figure2(...more: (readonly [Placement, number])[]): DelegationKnowledge {
  const knowledge = new DelegationKnowledge();
  for (const [where, crawler] of [[subnet(90), 3], [subnet(11), 1], [subnet(13), 2], ...more] as const)
    knowledge.record(where, id(crawler));
  return knowledge;
}
const company = (key: number) => placement({ subnetKey: key, holderKey: "company 5", slash8Key: key });
const shared = () => figure2([company(21), 2], [company(22), 3]);
const ofShared = placement({ subnetKey: 23, holderKey: "company 5", ancestorKeys: [8, 2] });
const ofCompany1 = placement({ subnetKey: 99, holderKey: 1, slash8Key: 99 });
const decided8 = () => figure2([subnet(8), 2]);

it("delegates the smallest subnet that is not unary for the paper's URL at 15.10.0.7", () => {
  const nonUnary = (text: string) => tree.mostSpecificNonUnaryId(parseAddress(text)!);

  expect(tree.mostSpecific(parseAddress("15.10.0.7")!)?.id).toBe(12);
  expect(["15.10.0.7", "14.17.0.1", "15.65.0.1"].map(nonUnary)).toEqual([8, 11, 14]);
});

describe("ipmicra", () => {
  const fastest = { type: "fastest-of-all" };
  it.each<
    [
      string,
      RoundSetup["answers"],
      Placement,
      () => DelegationKnowledge,
      unknown[],
      unknown,
      object,
      (readonly number[])?,
    ]
  >([
    [
      "asks the owners of the children 11 and 13 of subnet 8, and nobody else",
      [70, 30, 10],
      subnet(8),
      figure2,
      [X, Y],
      Y,
      { type: "under-threshold", thresholdMs: 50, rttMs: 30, level: "subnet", askedCount: 2 },
    ],
    ["stops at the first under the threshold", [40, 5, 10], subnet(8), figure2, [X], X, { level: "subnet" }],
    [
      "climbs when no child's owner is under the threshold",
      [70, 60, 20, 51],
      subnet(8),
      () => figure2([subnet(2), 4]),
      [X, Y, neighbour, elsewhere],
      elsewhere,
      { level: "root" },
    ],
    [
      "takes the fastest when nobody is under the threshold, which an answer at the threshold is not",
      [70, 50, 90],
      subnet(8),
      figure2,
      [X, Y, elsewhere],
      Y,
      { ...fastest, askedCount: 3 },
    ],
    ["first asks the parent's own crawler", [20, 30, 5], subnet(14), decided8, [Y], Y, { level: "ancestor" }],
    ["then asks the siblings' crawlers", [70, 80, 90], subnet(14), decided8, [Y, X, elsewhere], X, fastest],
    [
      "gives a company's new subnet to its only crawler without a probe",
      [400, 1, 1],
      ofCompany1,
      figure2,
      [],
      X,
      { type: "same-company", subnetsOwned: 1 },
    ],
    [
      "asks a company's several crawlers until one is under the threshold",
      [1, 80, 30],
      ofShared,
      shared,
      [Y, elsewhere],
      elsewhere,
      { level: "company" },
    ],
    [
      "climbs when none of a company's crawlers is, and asks nobody twice",
      [10, 80, 90],
      ofShared,
      shared,
      [Y, elsewhere, X],
      X,
      { level: "ancestor" },
    ],
    [
      "ignores a company's crawler that is no candidate",
      [10, 80, 90],
      ofShared,
      shared,
      [],
      elsewhere,
      { type: "same-company" },
      [1, 3],
    ],
  ])("%s", (_, answers, target, knowledge, asked, crawlerId, reason, candidates) => {
    const setup = { policy: "ipmicra", answers, placement: target, knowledge: knowledge() } as const;
    const round = runRound({ ...setup, ...(candidates && { candidates }) });

    expect(round.asked).toEqual(asked);
    expect(round.end).toMatchObject({ type: "decided", crawlerId, measured: true, reason });
  });

  it("asks at each subnet its own crawler, then its children's, then its descendants'", () => {
    const under = (key: string, ...ancestorKeys: string[]) => placement({ subnetKey: key, ancestorKeys });
    const knowledge = new DelegationKnowledge();
    for (const [where, crawler] of [
      [under("grandchild", "sibling", "parent", "top"), 4],
      [under("cousin", "uncle", "top"), 6],
      [under("sibling", "parent", "top"), 3],
      [under("other sibling", "parent", "top"), 2],
      [under("uncle", "top"), 5],
      [under("parent", "top"), 1],
      [under("inside", "target", "parent", "top"), 7],
    ] as const)
      knowledge.record(where, id(crawler));

    const answers = new Array(8).fill(99);
    const target = under("target", "parent", "top");
    const { asked } = runRound({ policy: "ipmicra", answers, placement: target, knowledge });

    expect(asked).toEqual([7, 1, 3, 2, 4, 5, 6, 8]);
  });
});

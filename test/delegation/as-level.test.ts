/** The AS that announces a range, as a level of what past delegations teach. */
import { expect, it } from "vitest";
import { backOffLevels } from "#coordinator/delegation/knowledge";
import { CoordinatorState } from "#coordinator/delegation/state";
import { OriginTable, segmentsOf } from "#coordinator/subnets/routing-table";
import { buildSubnetTree } from "#coordinator/subnets/subnet-tree";
import { asCrawlerId, asHolderId, asSubnetId } from "#core/ids";
import { parseRange } from "#core/ip/range";

const subnet = (id: number, text: string, parent: number | null) => ({
  id: asSubnetId(id),
  range: parseRange(text)!,
  parentId: parent === null ? null : asSubnetId(parent),
  holderId: asHolderId(40 + id),
  country: "CY",
  registry: "ripencc" as const,
  name: "",
});
const tree = buildSubnetTree([
  subnet(1, "66.1.0.0/16", null),
  subnet(2, "66.1.2.0/24", 1),
  subnet(3, "66.9.0.0/24", null),
]);

/** 66.1.0.0/16 by AS1, the /24 in it by another; nobody announces 66.9.0.0/24. */
function originsWith(asNumber: number): OriginTable {
  const none = { starts: new Float64Array(0), asNumbers: new Uint32Array(0) };
  const prefixes = {
    firstBlocks: Float64Array.of(0x420100, 0x420102),
    lengths: Uint8Array.of(16, 24),
    asNumbers: Uint32Array.of(1, asNumber),
  };
  return new OriginTable({ 4: segmentsOf(4, prefixes), 6: none });
}

const [north, south] = [asCrawlerId(1), asCrawlerId(2)];
const delegation = (subnetId: number, crawlerId = north) => ({
  subnetId: asSubnetId(subnetId),
  crawlerId,
  measured: true,
  rttMs: 5,
  runnerUpId: null,
  runnerUpRttMs: null,
});
const owners = (state: CoordinatorState, asKey: string) => state.knowledge.owners({ kind: "as", key: asKey });

it("stands between the subnets and the country, and only where an AS is known", () => {
  const state = new CoordinatorState();
  state.setTree(tree, 1, originsWith(7));
  const levels = (id: number) =>
    backOffLevels(state.placementOf(asSubnetId(id))!).map(({ kind, key }) => `${kind} ${key}`);

  expect(levels(2)).toEqual([
    "holder 42",
    "subnet 2",
    "subnet 1",
    "as AS7",
    "country CY",
    "slash8 66",
    "root 0",
  ]);
  expect(levels(1)).toContain("as AS1");
  expect(levels(3)).toEqual(["holder 43", "subnet 3", "country CY", "slash8 66", "root 0"]);
});

it("takes back what it recorded, also after another routing table", () => {
  const state = new CoordinatorState();
  state.setTree(tree, 1, originsWith(7));
  state.setDelegation(delegation(2));
  expect(owners(state, "AS7")).toEqual([{ crawlerId: north, count: 1 }]);

  state.setTree(tree, 2, originsWith(8));
  expect([owners(state, "AS7"), owners(state, "AS8")]).toEqual([[], [{ crawlerId: north, count: 1 }]]);

  state.setDelegation(delegation(2, south));
  expect(owners(state, "AS8")).toEqual([{ crawlerId: south, count: 1 }]);

  state.setTree(tree, 3);
  expect([owners(state, "AS7"), owners(state, "AS8")]).toEqual([[], []]);
  expect(state.placementOf(asSubnetId(2))).not.toHaveProperty("asKey");
});

import { describe, expect, it } from "vitest";
import { placementOf, type SubnetLookup, slash8KeyOf } from "#core/delegation/placement";
import { asHolderId, asSubnetId } from "#core/ids";
import { parseRange } from "#core/ip/range";
import type { Subnet } from "#core/subnet/subnet";

function subnet(id: number, text: string, parent: number | null, holder: number | null = null): Subnet {
  const range = parseRange(text);
  if (range === null) throw new Error(text);
  return {
    id: asSubnetId(id),
    range,
    parentId: parent === null ? null : asSubnetId(parent),
    holderId: holder === null ? null : asHolderId(holder),
    country: "CY",
    registry: "ripencc",
    name: "",
  };
}

/*  1 64.0.0.0/6 ─ 2 66.0.0.0/8 ─ 3 66.1.0.0/16 ─ 4 66.1.2.0 - 66.1.2.99        5 2001::/16 ─ 6 2001:db8::/32  */
const subnets = [
  subnet(1, "64.0.0.0/6", null),
  subnet(2, "66.0.0.0/8", 1),
  subnet(3, "66.1.0.0/16", 2),
  subnet(4, "66.1.2.0 - 66.1.2.99", 3, 40),
  subnet(5, "2001::/16", null),
  subnet(6, "2001:db8::/32", 5),
];
const get = (id: number) => subnets.find((one) => one.id === id) ?? null;
const tree: SubnetLookup = {
  get,
  *ancestors(id) {
    for (let at = get(id)?.parentId; at != null; at = get(at)?.parentId) yield get(at)!;
  },
};

describe("the placement of a subnet", () => {
  it("lists ancestors nearest first and stops below the /8", () => {
    expect(placementOf(tree, asSubnetId(4))).toEqual({
      subnetKey: 4,
      holderKey: 40,
      ancestorKeys: [3],
      country: "CY",
      slash8Key: 66,
    });
  });

  it("takes the first 16 bits of an IPv6 range for its /8, apart from every IPv4 /8", () => {
    expect(placementOf(tree, asSubnetId(6))).toMatchObject({
      ancestorKeys: [],
      slash8Key: 256 + 0x2001,
      holderKey: null,
    });
    expect(slash8KeyOf({ family: 4, first: 0xff00_0000, last: 0xff00_0001 })).toBe(255);
    expect(slash8KeyOf({ family: 6, first: 0n, last: 1n })).toBe(256);
  });

  it("is null for a subnet that the tree does not hold", () => {
    expect(placementOf(tree, asSubnetId(99))).toBeNull();
  });
});

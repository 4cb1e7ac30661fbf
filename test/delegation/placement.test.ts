import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { placementOf } from "#coordinator/place/delegation/placement";
import type { Subnet } from "#coordinator/place/subnets/subnet";
import { buildSubnetTree } from "#coordinator/place/subnets/subnet-tree";
import { asHolderId, asSubnetId } from "#core/ids";
import { formatRange, type IpRange, parseRange } from "#core/ip/range";
import { seededRandom } from "#core/random";

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

/*
 * 1 64.0.0.0/6 ─ 2 66.0.0.0/8 ─ 3 66.1.0.0/16 ─ 4 66.1.2.0 - 66.1.2.99     5 2001::/16 ─ 6 2001:db8::/32 ─ 7 …::8/125
 * 8 80.0.0.0 - 80.255.255.254 ─ 9 80.1.0.0/24                              10 2400:: - 2401:1:: ─ 11 2400::/32
 */
const tree = buildSubnetTree([
  subnet(1, "64.0.0.0/6", null),
  subnet(2, "66.0.0.0/8", 1),
  subnet(3, "66.1.0.0/16", 2),
  subnet(4, "66.1.2.0 - 66.1.2.99", 3, 40),
  subnet(5, "2001::/16", null),
  subnet(6, "2001:db8::/32", 5),
  subnet(7, "2001:db8::8/125", 6),
  subnet(8, "80.0.0.0 - 80.255.255.254", null),
  subnet(9, "80.1.0.0/24", 8),
  subnet(10, "2400:: - 2401:1::", null),
  subnet(11, "2400::/32", 10),
  subnet(12, "255.0.0.0/24", null),
  subnet(13, "::/64", null),
]);
const placed = (id: number) => placementOf(tree, asSubnetId(id));

describe("the placement of a subnet", () => {
  it("lists ancestors nearest first and stops below the /8", () => {
    expect(placed(4)).toEqual({
      subnetKey: 4,
      holderKey: 40,
      ancestorKeys: [3],
      widerKeys: [2, 1],
      country: "CY",
      slash8Key: 66,
    });
  });

  it("takes the first 16 bits of an IPv6 range for its /8, apart from every IPv4 /8", () => {
    expect(placed(6)).toMatchObject({
      ancestorKeys: [],
      widerKeys: [5],
      slash8Key: 256 + 0x2001,
      holderKey: null,
    });
    expect(placed(7)).toMatchObject({ ancestorKeys: [6], slash8Key: 256 + 0x2001 });
    expect([placed(12)?.slash8Key, placed(13)?.slash8Key]).toEqual([255, 256]);
  });

  it("counts addresses, also where a range is no CIDR block", () => {
    expect(placed(9)).toMatchObject({ ancestorKeys: [8], widerKeys: [] });
    expect(placed(11)).toMatchObject({ ancestorKeys: [], widerKeys: [10] });
  });

  it("agrees with the tree's own records on random nested ranges of both families", () => {
    const seed = 20260308;
    const random = seededRandom(seed);
    const wide = buildSubnetTree([...randomBlocks(4, random), ...randomBlocks(6, random)]);

    const ids = Array.from({ length: 2000 }, (_, index) => asSubnetId(index + 1));

    const wrong = ids.filter((id) => {
      const { range, holderId, country } = wide.get(id)!;
      const above: Subnet[] = [];
      for (let at = wide.get(id); at?.parentId != null; at = wide.get(at.parentId))
        above.push(wide.get(at.parentId)!);
      const expected = {
        subnetKey: id,
        holderKey: holderId,
        ancestorKeys: above.filter((one) => !isAsWideAsItsTop(one.range)).map((one) => one.id),
        widerKeys: above.filter((one) => isAsWideAsItsTop(one.range)).map((one) => one.id),
        country,
        slash8Key: range.family === 4 ? range.first >>> 24 : 256 + Number(range.first >> 112n),
      };
      return !isDeepStrictEqual(placementOf(wide, id), expected);
    });

    expect(wrong, `seed ${seed}`).toEqual([]);
  });

  it("is null for a subnet that the tree does not hold", () => {
    expect(placed(99)).toBeNull();
  });
});

/** A thousand different blocks, many within others; ids are odd for IPv4, even for IPv6. */
function randomBlocks(family: 4 | 6, random: () => number): Subnet[] {
  const below = (limit: number) => Math.floor(random() * limit);
  const blocks = new Map<string, Subnet>();
  while (blocks.size < 1000) {
    const id = 2 * blocks.size + (family === 4 ? 1 : 2);
    const text =
      family === 4
        ? `${10 + below(3)}.${below(4)}.${below(8)}.${below(256)}/${4 + below(28)}`
        : `24${below(3)}0:${below(3)}:${below(4)}:${below(9)}::/${8 + below(90)}`;
    const one = subnet(id, text, null, below(2) === 0 ? null : below(50));
    const country = below(3) === 0 ? null : "GR";
    if (!blocks.has(formatRange(one.range))) blocks.set(formatRange(one.range), { ...one, country });
  }
  return [...blocks.values()];
}

function isAsWideAsItsTop({ family, first, last }: IpRange): boolean {
  return BigInt(last) - BigInt(first) + 1n >= 1n << (family === 4 ? 24n : 112n);
}

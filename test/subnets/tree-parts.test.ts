/** A tree taken apart and put together again is the same tree. */
import { describe, expect, it } from "vitest";
import { nest } from "#coordinator/subnets/nest";
import { columnsOf, rangeAt } from "#coordinator/subnets/range-columns";
import { SubnetRows } from "#coordinator/subnets/subnet-rows";
import { buildSubnetTree, type SubnetTree, treeOfRows } from "#coordinator/subnets/subnet-tree";
import { partKinds, partsOf, type TreeParts, treeFromParts } from "#coordinator/subnets/tree-arrays";
import { asHolderId } from "#core/ids";
import { firstAddress, formatRange, lastAddress } from "#core/ip/range";
import { randomRanges } from "./random-ranges.ts";

/** Both families, crossings, names in three scripts. */
function someTree(): SubnetTree {
  const rows = new SubnetRows();
  let id = 7;
  for (const family of [4, 6] as const) {
    const drawn = columnsOf(randomRanges({ seed: 77, family, count: 300, crossing: true }));
    const twice = new Set(nest(drawn).duplicates.map(({ index }) => index));
    for (let index = 0; index < drawn.count; index += 1) {
      if (twice.has(index)) continue;
      const range = rangeAt(drawn, index);
      rows.addRange(range, {
        id: id++,
        holderId: index % 3 === 0 ? null : index % 17,
        country: index % 4 === 0 ? null : "GR",
        registry: "ripencc",
        name: `${["NET", "Δίκτυο", "网"][index % 3]}-${index}`,
      });
    }
  }
  return treeOfRows(rows);
}

describe("a tree from its parts", () => {
  const tree = someTree();
  const copy = treeFromParts(partsOf(tree));

  it("has every subnet with all that is known of it", () => {
    const all = Array.from(tree.columns.ids, (id) => tree.get(id as never));

    expect(all.length).toBeGreaterThan(500);
    expect(Array.from(copy.columns.ids, (id) => copy.get(id as never))).toEqual(all);
  });

  it("answers look-ups alike, in both families, where ranges cross as well", () => {
    for (const id of tree.columns.ids) {
      const range = tree.get(id as never)?.range;
      if (!range) throw new Error(`no subnet ${id}`);
      for (const address of [firstAddress(range), lastAddress(range)])
        expect(copy.mostSpecific(address), formatRange(range)).toEqual(tree.mostSpecific(address));
    }
  });

  it("knows holders and ways alike", () => {
    expect([...copy.ofHolder(asHolderId(5))]).toEqual([...tree.ofHolder(asHolderId(5))]);
    expect([...copy.roots()]).toEqual([...tree.roots()]);
  });

  it("keeps the arrays, and takes as much as the first", () => {
    expect(partsOf(copy)["ipv4.keys"]).toBe(partsOf(tree)["ipv4.keys"]);
    expect(copy.bytes).toEqual(tree.bytes);
  });
});

it("an empty tree has parts too", () => {
  expect(treeFromParts(partsOf(buildSubnetTree([]))).size).toBe(0);
});

const whole = partsOf(someTree());
const checked = ["ipv4.keys", "ipv6.keys", "ids", "holderIds", "labels", "nameIds", "nameText"] as const;

it.each(checked)("parts whose %s is too short make no tree", (name) => {
  const damaged: TreeParts = { ...whole, [name]: whole[name].subarray(1) };

  expect(() => treeFromParts(damaged)).toThrow(RangeError);
});

it("every part is an array of the kind that is written down", () => {
  for (const [name, Kind] of Object.entries(partKinds))
    expect(whole[name as keyof TreeParts]).toBeInstanceOf(Kind);
});

/** Which stretches a look-up may answer by the way up, and which need the table of segments. */
import { describe, expect, it } from "vitest";
import { nest } from "#coordinator/subnets/nest";
import { columnsOf } from "#coordinator/subnets/range-columns";
import { cutHardSegments, findHardStretches } from "#coordinator/subnets/segments";
import { buildSubnetTree } from "#coordinator/subnets/subnet-tree";
import { asSubnetId } from "#core/ids";
import { formatAddress, type IpAddress, parseAddress } from "#core/ip/address";
import { type IpRange, parseRange } from "#core/ip/range";

/** The ranges stand in the order of places. */
function hierarchyOf(texts: readonly string[]) {
  const columns = columnsOf(texts.map((text) => parseRange(text) as IpRange));
  return { columns, ...nest(columns) };
}

/** Positions in the list of the ranges whose stretch is hard. */
function hardPlaces(texts: readonly string[]): number[] {
  return [...findHardStretches(hierarchyOf(texts))].flatMap((hard, place) => (hard === 1 ? [place] : []));
}

/** 10.0.0.0 – 10.0.0.255 with so many more inside, each one address shorter at its end. */
const shells = (count: number) =>
  Array.from({ length: count }, (_, depth) => `10.0.0.0 - 10.0.0.${255 - depth}`);

function ownerOf(texts: readonly string[], address: string): string | null {
  const tree = buildSubnetTree(
    texts.map((text, index) => ({
      id: asSubnetId(index),
      range: parseRange(text) as IpRange,
      parentId: null,
      holderId: null,
      country: null,
      registry: "ripencc",
      name: text,
    })),
  );
  return tree.mostSpecific(parseAddress(address) as IpAddress)?.name ?? null;
}

describe("a stretch is easy", () => {
  it("where ranges hold each other or lie apart", () => {
    expect(hardPlaces(["10.0.0.0/8", "10.0.0.0/16", "10.0.0.0/24", "10.0.9.0/24", "11.0.0.0/8"])).toEqual([]);
  });

  it("beside the part that crossing ranges share", () => {
    const ranges = [
      "10.0.0.0 - 10.0.0.99",
      "10.0.0.10 - 10.0.0.19",
      "10.0.0.90 - 10.0.0.200",
      "10.0.0.150 - 10.0.0.160",
    ];

    expect(hardPlaces(ranges)).toEqual([2]);
  });

  it("where the way up has eight steps", () => {
    expect(hardPlaces([...shells(8), "10.0.1.0/24"])).toEqual([]);
  });
});

describe("a stretch is hard", () => {
  it("where it begins in two ranges that cross, whichever ends first", () => {
    const inside = [
      "10.0.0.0 - 10.0.0.99",
      "10.0.0.50 - 10.0.0.149",
      "10.0.0.60 - 10.0.0.69",
      "10.0.0.100 - 10.0.0.120",
    ];

    expect(hardPlaces(inside)).toEqual([1, 2]);
  });

  it("where a third range hides the crossing of two", () => {
    // The second ends the first's run for the nesting walk, and holds the third, which crosses the first too.
    const ranges = ["10.0.0.0 - 10.0.0.50", "10.0.0.10 - 10.0.0.200", "10.0.0.20 - 10.0.0.60"];

    expect(hardPlaces(ranges)).toEqual([1, 2]);
  });

  it("where the way up has more than eight steps", () => {
    expect(hardPlaces([...shells(9), "10.0.1.0/24"])).toEqual([8]);
  });

  it("in IPv6 as well, below 64 bits too", () => {
    expect(
      hardPlaces(["2001:db8:: - 2001:db8::5", "2001:db8::3 - 2001:db8::9", "2001:db8::8 - 2001:db8::f"]),
    ).toEqual([1, 2]);
  });
});

describe("an address in a hard stretch", () => {
  const crossing = ["10.0.0.0 - 10.0.0.99", "10.0.0.40 - 10.0.0.49", "10.0.0.45 - 10.0.0.120", "10.0.0.47"];

  it.each([
    ["10.0.0.44", "10.0.0.40 - 10.0.0.49"],
    ["10.0.0.45", "10.0.0.40 - 10.0.0.49"],
    ["10.0.0.46", "10.0.0.40 - 10.0.0.49"],
    ["10.0.0.47", "10.0.0.47"],
    ["10.0.0.50", "10.0.0.45 - 10.0.0.120"],
    ["10.0.0.100", "10.0.0.45 - 10.0.0.120"],
    ["10.0.0.121", null],
  ])("%s belongs to %s, though the way up would say otherwise", (address, owner) => {
    expect(ownerOf(crossing, address)).toBe(owner);
  });

  it("is in a table of the ranges over hard stretches alone", () => {
    const ranges = [
      "10.0.0.0/8",
      "10.1.0.0/16",
      "10.2.0.0 - 10.2.0.9",
      "10.2.0.5 - 10.2.0.14",
      "10.3.0.0/16",
    ];
    const hierarchy = hierarchyOf(ranges);

    const { starts, owners } = cutHardSegments(hierarchy.columns, findHardStretches(hierarchy));

    expect(
      [...owners].map((owner, at) => [formatAddress({ family: 4, value: starts[at] as number }), owner]),
    ).toEqual([
      ["10.0.0.0", 0],
      ["10.2.0.0", 2],
      ["10.2.0.5", 3],
      ["10.2.0.15", 0],
      ["11.0.0.0", -1],
    ]);
  });
});

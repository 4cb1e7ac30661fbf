import { describe, expect, it } from "vitest";
import { nest } from "#coordinator/place/subnets/nest";
import { countryOf, packLabel, registries, registryOf, type Subnet } from "#coordinator/place/subnets/subnet";
import { buildSubnetTree, type SubnetTree } from "#coordinator/place/subnets/subnet-tree";
import { indexIds } from "#coordinator/place/subnets/tree-columns";
import { asHolderId, asSubnetId } from "#core/ids";
import { formatAddress, type IpAddress, parseAddress } from "#core/ip/address";
import {
  firstAddress,
  formatRange,
  type IpRange,
  isUnary,
  lastAddress,
  parseRange,
  rangeHolds,
} from "#core/ip/range";
import { seededRandom } from "#core/random";
import { placed, randomRanges, sizeOf, spaceSize } from "./random-ranges.ts";

const ip = (text: string): IpAddress => parseAddress(text) as IpAddress;

function subnet(
  id: number,
  text: string,
  rest: { parent?: number; holder?: number; country?: string } = {},
): Subnet {
  return {
    id: asSubnetId(id),
    range: parseRange(text) as IpRange,
    parentId: rest.parent === undefined ? null : asSubnetId(rest.parent),
    holderId: rest.holder === undefined ? null : asHolderId(rest.holder),
    country: rest.country ?? null,
    registry: "ripencc",
    name: `NET-${id}`,
  };
}

/**
 * The hierarchy of the paper's figure 2 around its example (section 4.3), with the ranges it states:
 * 2 holds 8, 8 holds 11, 13 and the unary 12. There is also an IPv6 branch 20 > 21 > 22.
 */
const world: readonly Subnet[] = [
  subnet(2, "12.0.0.1 - 18.255.255.255", { holder: 900 }),
  subnet(8, "14.0.0.1 - 16.255.255.255", { parent: 2, country: "CY" }),
  subnet(11, "14.0.0.1 - 14.255.255.255", { parent: 8, holder: 1 }),
  subnet(12, "15.10.0.7", { parent: 8, holder: 1 }),
  subnet(13, "16.0.0.0/16", { parent: 8, holder: 2 }),
  subnet(20, "2001:db8::/32", { holder: 1 }),
  subnet(21, "2001:db8:1::/48", { parent: 20, holder: 2 }),
  subnet(22, "2001:db8:1::7", { parent: 21 }),
];

describe("the paper's example", () => {
  const tree = buildSubnetTree(world);

  it.each([
    ["15.10.0.7", 12, 8],
    ["15.10.0.8", 8, 8],
    ["14.0.0.1", 11, 11],
    ["14.255.255.255", 11, 11],
    ["16.0.255.255", 13, 13],
    ["16.1.0.0", 8, 8],
    ["12.0.0.1", 2, 2],
    ["18.255.255.255", 2, 2],
    ["12.0.0.0", null, null],
    ["19.0.0.0", null, null],
    ["255.255.255.255", null, null],
    ["2001:db8:1::7", 22, 21],
    ["2001:db8:1:ffff:ffff:ffff:ffff:ffff", 21, 21],
    ["2001:db8:2::", 20, 20],
    ["2001:db9::", null, null],
    ["::", null, null],
  ])(
    "the most specific subnet of %s is %s, the most specific that is not unary %s",
    (text, specific, nonUnary) => {
      expect(tree.mostSpecific(ip(text))?.id ?? null).toBe(specific);
      expect(tree.mostSpecificNonUnaryId(ip(text))).toBe(nonUnary);
    },
  );

  it("returns each subnet as it was given", () => {
    expect(world.map(({ id }) => tree.get(id))).toEqual(world);
    expect(tree.size).toBe(world.length);
  });

  it("has no subnet for an unknown id", () => {
    expect(tree.get(asSubnetId(777))).toBeNull();
  });
});

describe("a tree", () => {
  it("may be empty", () => {
    const tree = buildSubnetTree([]);

    expect(tree.size).toBe(0);
    expect(tree.mostSpecific(ip("10.0.0.1"))).toBeNull();
    expect(tree.mostSpecificNonUnaryId(ip("::1"))).toBeNull();
  });

  it("may cover both address spaces", () => {
    const tree = buildSubnetTree([subnet(1, "0.0.0.0/0"), subnet(2, "::/0")]);

    for (const text of ["0.0.0.0", "255.255.255.255"]) expect(tree.mostSpecific(ip(text))?.id).toBe(1);
    for (const text of ["::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"])
      expect(tree.mostSpecific(ip(text))?.id).toBe(2);
  });

  it("has no non-unary subnet for a unary one without a parent", () => {
    const tree = buildSubnetTree([subnet(1, "10.0.0.1")]);

    expect(tree.mostSpecific(ip("10.0.0.1"))?.id).toBe(1);
    expect(tree.mostSpecificNonUnaryId(ip("10.0.0.1"))).toBeNull();
  });

  it("gives an address in two crossing ranges to the smaller, and of equal ones to the later", () => {
    const tree = buildSubnetTree([
      subnet(1, "202.98.116.0 - 202.98.119.255"),
      subnet(2, "202.98.119.0 - 202.98.120.255"),
      subnet(3, "10.0.0.0 - 10.0.0.9"),
      subnet(4, "10.0.0.5 - 10.0.0.14"),
    ]);

    expect(tree.mostSpecific(ip("202.98.118.255"))?.id).toBe(1);
    expect(tree.mostSpecific(ip("202.98.119.7"))?.id).toBe(2);
    expect(tree.mostSpecific(ip("10.0.0.4"))?.id).toBe(3);
    expect(tree.mostSpecific(ip("10.0.0.5"))?.id).toBe(4);
  });

  it.each([
    [
      "an id that appears twice",
      [subnet(1, "10.0.0.0/8"), subnet(1, "11.0.0.0/8")],
      /subnet id 1 appears twice/,
    ],
    [
      "a range that appears twice",
      [subnet(1, "10.0.0.0/8"), subnet(2, "10.0.0.0/8")],
      /10\.0\.0\.0\/8 appears twice/,
    ],
    ["a negative id", [subnet(-1, "10.0.0.0/8")], /not an id: -1/],
    ["a country that is no code", [subnet(1, "10.0.0.0/8", { country: "eu" })], /not a country code.*eu/],
  ])("refuses %s", (_, subnets, message) => {
    expect(() => buildSubnetTree(subnets)).toThrow(message);
  });
});

describe.each([
  { crossing: false, seeds: [11, 12, 13, 14] },
  { crossing: true, seeds: [21, 22, 23, 24, 25, 26] },
])("on random ranges of both families (crossing: $crossing)", ({ crossing, seeds }) => {
  it.each(seeds)("the tree agrees with a simple table, seed %i", (seed) => {
    const subnets = [
      ...randomSubnets({ seed, family: 4, count: 150, crossing, firstId: 1 }),
      ...randomSubnets({ seed: seed + 1000, family: 6, count: 150, crossing, firstId: 5000 }),
    ];

    const tree = buildSubnetTree(shuffled(subnets, seed));

    expectLookUps(tree, subnets, seed);
    expect(subnets.map(({ id }) => tree.get(id))).toEqual(subnets);
  });
});

function randomSubnets(world: {
  seed: number;
  family: 4 | 6;
  count: number;
  crossing: boolean;
  firstId: number;
}): Subnet[] {
  const drawn = randomRanges(world);
  const ranges = drawn.filter(
    (range, index) => drawn.findIndex((other) => formatRange(other) === formatRange(range)) === index,
  );
  const { parents } = nest(ranges);
  const id = (index: number) => asSubnetId(world.firstId + 3 * index);
  return ranges.map((range, index) => ({
    id: id(index),
    range,
    parentId: (parents[index] as number) < 0 ? null : id(parents[index] as number),
    holderId: index % 5 === 0 ? null : asHolderId(index % 17),
    country: index % 3 === 0 ? null : "GR",
    registry: index % 2 === 0 ? "apnic" : "arin",
    name: `N${index}`,
  }));
}

function shuffled<Item>(items: readonly Item[], seed: number): Item[] {
  const random = seededRandom(seed);
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

/** All ranges that contain the address, smallest first, and of equal ones the latest first. */
function slowHolders(subnets: readonly Subnet[], address: IpAddress): Subnet[] {
  const holders = subnets.filter(({ range }) => rangeHolds(range, address));
  return holders.sort(
    (a, b) => Number(sizeOf(a.range) - sizeOf(b.range)) || (a.range.first < b.range.first ? 1 : -1),
  );
}

function expectLookUps(tree: SubnetTree, subnets: readonly Subnet[], seed: number): void {
  const random = seededRandom(seed);
  const drawn = Array.from({ length: 300 }, (_, index) => {
    const at = Math.floor(random() * spaceSize);
    return firstAddress(placed(index % 2 === 0 ? 4 : 6, at, at));
  });
  const ends = subnets.flatMap(({ range }) => [firstAddress(range), lastAddress(range)]);
  for (const address of [...drawn, ...ends, ...ends.flatMap(neighbours)]) {
    const [slow] = slowHolders(subnets, address);
    const fast = tree.mostSpecific(address);
    expect(fast, `${formatAddress(address)}, seed ${seed}`).toEqual(slow ?? null);
    const nonUnary = slowHolders(subnets, address).find(({ range }) => !isUnary(range));
    expect(tree.mostSpecificNonUnaryId(address)).toEqual(nonUnary?.id ?? null);
  }
}

function neighbours(address: IpAddress): IpAddress[] {
  if (address.family === 4) {
    const values = [address.value - 1, address.value + 1].filter((value) => value >= 0 && value < 2 ** 32);
    return values.map((value) => ({ family: 4, value }));
  }
  const values = [address.value - 1n, address.value + 1n].filter(
    (value) => value >= 0n && value < 1n << 128n,
  );
  return values.map((value) => ({ family: 6, value }));
}

const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
const countries = [null, ...letters.flatMap((first) => letters.map((second) => first + second))];

it("every country, or none, with every registry has a label of its own below 2^12", () => {
  const labels = new Set<number>();
  for (const country of countries) {
    for (const registry of registries) {
      const label = packLabel(country, registry);
      labels.add(label);
      expect([countryOf(label), registryOf(label)]).toEqual([country, registry]);
    }
  }

  expect(labels.size).toBe(677 * 6);
  expect(Math.max(...labels)).toBeLessThan(2 ** 12);
});

it.each(["eu", "E", "EUR", "", "É1", "A["])("%j is no country", (text) => {
  expect(() => packLabel(text, "arin")).toThrow(`not a country code of two capital letters: ${text}`);
});

it("a registry that is none is refused", () => {
  expect(() => packLabel(null, "internic" as "arin")).toThrow("not a registry: internic");
});

const seed = 20260301;

/** Different ids below `limit`, in no order. */
function drawIds(count: number, limit: number): Int32Array {
  const random = seededRandom(seed);
  const drawn = new Set<number>();
  while (drawn.size < count) drawn.add(Math.floor(random() * limit));
  return Int32Array.from(drawn);
}

describe.each([
  ["dense", 12_000],
  ["sparse", 2 ** 31],
])("an index over %s ids", (_, limit) => {
  const ids = drawIds(10_000, limit);
  const index = indexIds(ids);

  it("finds the row of each", () => {
    expect([...ids].filter((id, row) => index.firstRow(id) !== row)).toEqual([]);
  });

  it("finds no row for an id that is none of them, nor for a negative one", () => {
    const known = new Set(ids);
    const others = [...drawIds(5000, limit)].map((id) => (id + 1) % limit).filter((id) => !known.has(id));

    expect([...others, -1, 2 ** 31 - 1].filter((id) => !known.has(id) && index.firstRow(id) !== -1)).toEqual(
      [],
    );
  });

  it("refuses an id that appears twice, by its name", () => {
    const twice = ids.slice();
    twice[77] = twice[9_000] as number;

    expect(() => indexIds(twice)).toThrow(`the subnet id ${twice[77]} appears twice`);
  });
});

it("an index over no ids finds none", () => {
  expect(indexIds(new Int32Array()).firstRow(0)).toBe(-1);
});

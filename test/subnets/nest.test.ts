import { describe, expect, it } from "vitest";
import { type Nesting, nest } from "#coordinator/place/subnets/nest";
import { formatRange, type IpRange, parseRange, rangeCovers } from "#core/ip/range";
import { randomRanges, sizeOf } from "./random-ranges.ts";

const range = (text: string): IpRange => parseRange(text) as IpRange;

/** Child → parent, in words. */
function parentsInWords(texts: readonly string[]): Record<string, string | null> {
  const { parents } = nest(texts.map(range));
  return Object.fromEntries(texts.map((text, index) => [text, texts[parents[index] as number] ?? null]));
}

describe("nest", () => {
  it("gives each range the smallest range that holds it", () => {
    expect(
      parentsInWords([
        "10.1.2.0/24",
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.1.0.0/16",
        "10.1.2.7",
        "11.0.0.0/8",
        "10.200.0.0 - 10.201.0.9",
      ]),
    ).toEqual({
      "0.0.0.0/0": null,
      "10.0.0.0/8": "0.0.0.0/0",
      "10.1.0.0/16": "10.0.0.0/8",
      "10.1.2.0/24": "10.1.0.0/16",
      "10.1.2.7": "10.1.2.0/24",
      "10.200.0.0 - 10.201.0.9": "10.0.0.0/8",
      "11.0.0.0/8": "0.0.0.0/0",
    });
  });

  it("nests IPv6 ranges whose ends differ in any of the four words", () => {
    expect(
      parentsInWords([
        "2001:db8::/32",
        "2001:db8::/64",
        "2001:db8::1",
        "::/0",
        "2001:db8::2 - 2001:db8::1:0:0",
      ]),
    ).toEqual({
      "::/0": null,
      "2001:db8::/32": "::/0",
      "2001:db8::/64": "2001:db8::/32",
      "2001:db8::1": "2001:db8::/64",
      "2001:db8::2 - 2001:db8::1:0:0": "2001:db8::/64",
    });
  });

  it("knows ranges that start or end together", () => {
    expect(parentsInWords(["10.0.0.0/24", "10.0.0.0/25", "10.0.0.128/25", "10.0.0.255"])).toEqual({
      "10.0.0.0/24": null,
      "10.0.0.0/25": "10.0.0.0/24",
      "10.0.0.128/25": "10.0.0.0/24",
      "10.0.0.255": "10.0.0.128/25",
    });
  });

  it("keeps both of two ranges that cross, lists them, and gives what lies in both to the smaller", () => {
    const texts = [
      "202.98.116.0 - 202.98.119.255",
      "202.98.119.0 - 202.98.120.255",
      "202.98.119.8/29",
      "202.98.0.0/16",
    ];

    expect(parentsInWords(texts)).toEqual({
      "202.98.0.0/16": null,
      "202.98.116.0 - 202.98.119.255": "202.98.0.0/16",
      "202.98.119.0 - 202.98.120.255": "202.98.0.0/16",
      "202.98.119.8/29": "202.98.119.0 - 202.98.120.255",
    });
    expect(nest(texts.map(range)).crossings).toEqual([{ earlier: 0, later: 1 }]);
  });

  it.each([
    ["of one size to the one that starts later", "10.0.0.14", "10.0.0.5 - 10.0.0.14"],
    ["of which the later is large to the small early one", "10.0.3.255", "10.0.0.0 - 10.0.0.9"],
  ])("gives what lies in two crossing ranges %s", (_, last, parent) => {
    const inside = "10.0.0.6 - 10.0.0.7";
    const found = parentsInWords(["10.0.0.0 - 10.0.0.9", `10.0.0.5 - ${last}`, inside]);

    expect(found[inside]).toBe(parent);
  });

  it("reports the later of two equal ranges and gives it the same parent", () => {
    const nesting = nest(["10.0.0.0/8", "10.1.0.0/16", "10.1.0.0/16", "10.1.1.0/24"].map(range));

    expect(nesting.duplicates).toEqual([{ index: 2, of: 1 }]);
    expect([...nesting.parents]).toEqual([-1, 0, 0, 1]);
  });

  it("has no parents for no ranges", () => {
    expect(nest([])).toMatchObject({ duplicates: [], crossings: [] });
  });

  it("refuses ranges of both families at once", () => {
    expect(() => nest([range("10.0.0.0/8"), range("::/0")])).toThrow(/IPv6 range among IPv4/);
  });

  it("nests 100,000 ranges inside each other, and a staircase of 3,000 that all cross", () => {
    const deep = Array.from(
      { length: 100_000 },
      (_, index): IpRange => ({ family: 4, first: index, last: 2 ** 32 - 1 - index }),
    );
    const stairs = Array.from(
      { length: 3_000 },
      (_, index): IpRange => ({ family: 4, first: index, last: 200_000 + 2 * index }),
    );

    expect([...nest(deep).parents]).toEqual(deep.map((_, index) => index - 1));
    expect(nest(stairs).parents.every((parent) => parent === -1)).toBe(true);
    expect(new Set(nest(stairs).crossings.flatMap(({ earlier, later }) => [earlier, later])).size).toBe(
      3_000,
    );
  });
});

describe.each([
  { family: 4, crossing: false },
  { family: 4, crossing: true },
  { family: 6, crossing: false },
  { family: 6, crossing: true },
] as const)("on random IPv$family ranges (crossing: $crossing)", ({ family, crossing }) => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8].map((step) => 7919 * step))(
    "nest agrees with a simple table, seed %i",
    (seed) => {
      const ranges = randomRanges({ seed, family, count: 20 + (seed % 400), crossing });

      const nesting = nest(ranges);

      const slow = slowTable(ranges);
      expect([...nesting.parents]).toEqual(slow.parents);
      expect(new Set(nesting.duplicates.map(({ index }) => index))).toEqual(new Set(slow.duplicates));
      expectCrossings(nesting, ranges, slow.crossing);
      expectParentsFirst(nesting);
    },
  );
});

/** Tries every pair. */
function slowTable(ranges: readonly IpRange[]) {
  const isDuplicate = (index: number) =>
    ranges.findIndex((other) => same(other, ranges[index] as IpRange)) < index;
  const duplicates = ranges.flatMap((_, index) => (isDuplicate(index) ? [index] : []));
  const unique = ranges.flatMap((_, index) => (isDuplicate(index) ? [] : [index]));
  const parents = ranges.map((child) => {
    const holders = unique.filter(
      (index) => rangeCovers(ranges[index] as IpRange, child) && !same(ranges[index] as IpRange, child),
    );
    holders.sort(
      (i, j) =>
        Number(sizeOf(ranges[i] as IpRange) - sizeOf(ranges[j] as IpRange)) ||
        ((ranges[i] as IpRange).first < (ranges[j] as IpRange).first ? 1 : -1),
    );
    return holders[0] ?? -1;
  });
  const crossing = unique.filter((i) =>
    unique.some((j) => cross(ranges[i] as IpRange, ranges[j] as IpRange)),
  );
  return { parents, duplicates, crossing };
}

const same = (a: IpRange, b: IpRange) => a.first === b.first && a.last === b.last;
const cross = (a: IpRange, b: IpRange) =>
  a.first <= b.last && b.first <= a.last && !rangeCovers(a, b) && !rangeCovers(b, a);

function expectCrossings(nesting: Nesting, ranges: readonly IpRange[], expected: readonly number[]): void {
  for (const { earlier, later } of nesting.crossings) {
    const [a, b] = [ranges[earlier] as IpRange, ranges[later] as IpRange];
    expect(cross(a, b) && a.first < b.first, `${formatRange(a)} and ${formatRange(b)}`).toBe(true);
  }
  expect(new Set(nesting.crossings.flatMap(({ earlier, later }) => [earlier, later]))).toEqual(
    new Set(expected),
  );
  expect(nesting.crossings.length).toBeLessThanOrEqual(ranges.length);
}

function expectParentsFirst({ parents, order }: Nesting): void {
  const position = new Map([...order].map((index, at) => [index, at]));
  for (const [child, parent] of parents.entries()) {
    if (parent >= 0) expect(position.get(parent)).toBeLessThan(position.get(child) as number);
  }
}

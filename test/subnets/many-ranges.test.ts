/**
 * The tree at sizes where its index shows (blocks with many slots and with one, slots with and without answers), against
 * a slow search by the rule.
 */
import { expect, it } from "vitest";
import {
  columnsOf,
  compareSpecificity,
  emptyColumns,
  type RangeColumns,
  rangeAt,
} from "#coordinator/place/subnets/range-columns";
import { type SubnetTree, treeOfRows } from "#coordinator/place/subnets/subnet-tree";
import { SubnetRows } from "#coordinator/place/subnets/tree-columns";
import { formatAddress, type IpAddress } from "#core/ip/address";
import { type IpRange, rangeHolds } from "#core/ip/range";
import { seededRandom } from "#core/random";

const facts = (id: number) => ({ id, holderId: null, country: null, registry: "arin" as const, name: "" });

/** Ids are the indexes in the columns. */
function treeOf({ words, first, last, count }: RangeColumns): SubnetTree {
  const rows = new SubnetRows();
  for (let index = 0; index < count; index += 1) {
    if (words === 1) rows.addIpv4(first[index] as number, last[index] as number, facts(index));
    else
      rows.addIpv6(
        first.subarray(4 * index, 4 * index + 4),
        last.subarray(4 * index, 4 * index + 4),
        facts(index),
      );
  }
  return treeOfRows(rows);
}

/** The most specific range of those that start at the address or before, by trying them one by one; −1 for none. */
function oracle(columns: RangeColumns): (address: IpAddress) => number {
  const ranges = Array.from({ length: columns.count }, (_, index) => rangeAt(columns, index));
  const bySpecificity = Int32Array.from(ranges, (_, index) => index).sort((a, b) =>
    compareSpecificity(columns, a, b),
  );
  return (address) => bySpecificity.find((index) => rangeHolds(ranges[index] as IpRange, address)) ?? -1;
}

/** Of the addresses, as the search is slow. */
const askedEvery = 853;

interface Drawing {
  readonly family: 4 | 6;
  readonly count: number;
  readonly seed: number;
  /** Of ranges that are moved so that they cross others. */
  readonly crossing: number;
  /** How many of an IPv6 address's bits vary, and where. */
  readonly bits: number;
  readonly shift: number;
}

/** Blocks within earlier blocks, in no order, no two the same. */
function draw({ family, count, seed, crossing, bits, shift }: Drawing): RangeColumns {
  const random = seededRandom(seed);
  const seen = new Set<string>();
  const blocks = [{ first: 0, size: 2 ** bits }];
  while (seen.size < count) {
    const outer = blocks[Math.floor(random() ** 2 * blocks.length)] as { first: number; size: number };
    const size = Math.max(1, Math.floor(outer.size / 2 ** (1 + Math.floor(random() * 7))));
    const aligned = outer.first + Math.floor(random() * Math.floor(outer.size / size)) * size;
    const first = random() < crossing ? Math.max(0, aligned - Math.floor(size / 3)) : aligned;
    const text = `${first} ${first + size - 1}`;
    if (seen.has(text)) continue;
    seen.add(text);
    if (size > 4) blocks.push({ first, size });
  }
  return columnsFrom([...seen], { family, shift });
}

/** IPv4 numbers as they are, IPv6 ones shifted within 2a00::/8. */
function columnsFrom(
  texts: readonly string[],
  { family, shift }: { family: 4 | 6; shift: number },
): RangeColumns {
  const base = 0x2an << 120n;
  const ranges = texts.map((text) => {
    const [first, last] = text.split(" ").map(Number) as [number, number];
    if (family === 4) return { family, first, last };
    const start = base + (BigInt(first) << BigInt(shift));
    return { family, first: start, last: base + (BigInt(last + 1) << BigInt(shift)) - 1n };
  });
  return ranges.length === 0 ? emptyColumns(family, 0) : columnsOf(ranges);
}

/** Ends of ranges, their neighbours, and addresses anywhere. */
function* addressesOf(columns: RangeColumns, seed: number): Generator<IpAddress> {
  const random = seededRandom(seed);
  for (let index = 0; index < columns.count; index += 1) {
    const range = rangeAt(columns, index);
    if (range.family === 4) {
      for (const value of [range.first - 1, range.first, range.last, range.last + 1])
        if (value >= 0 && value < 2 ** 32) yield { family: 4, value };
      yield { family: 4, value: Math.floor(random() * 2 ** 32) };
      continue;
    }
    for (const value of [range.first - 1n, range.first, range.last, range.last + 1n])
      yield { family: 6, value };
    const span = range.last - range.first + 1n;
    yield { family: 6, value: range.first + ((span * BigInt(Math.floor(random() * 2 ** 32))) >> 32n) };
  }
}

const drawings: readonly (readonly [name: string, drawing: Drawing])[] = [
  ["IPv4, nested", { family: 4, count: 40_000, seed: 1, crossing: 0, bits: 32, shift: 0 }],
  ["IPv4, one in ten crossing", { family: 4, count: 40_000, seed: 2, crossing: 0.1, bits: 32, shift: 0 }],
  [
    "IPv6 of 64 bits and wider, nested",
    { family: 6, count: 20_000, seed: 3, crossing: 0, bits: 48, shift: 72 },
  ],
  [
    "IPv6 around 64 bits, crossing",
    { family: 6, count: 20_000, seed: 4, crossing: 0.1, bits: 40, shift: 44 },
  ],
  [
    "IPv6 within one block of 64 bits",
    { family: 6, count: 20_000, seed: 5, crossing: 0.05, bits: 40, shift: 0 },
  ],
];

it.each(drawings)("%s: gives every address to its most specific range", (_, drawing) => {
  const columns = draw(drawing);
  const tree = treeOf(columns);
  const expected = oracle(columns);
  const wrong: string[] = [];
  let asked = 0;
  for (const address of addressesOf(columns, drawing.seed)) {
    if (asked++ % askedEvery !== 0) continue;
    if ((tree.mostSpecific(address)?.id ?? -1) !== expected(address)) wrong.push(formatAddress(address));
  }

  expect(asked).toBeGreaterThan(90_000);
  expect(wrong.slice(0, 5)).toEqual([]);
});

it("four thousand ranges, each within the one before, are each found from both of their sides", () => {
  const depth = 4_000;
  const columns = emptyColumns(4, depth);
  for (let level = 0; level < depth; level += 1) {
    columns.first[level] = level;
    columns.last[level] = 3 * depth - level;
  }
  const tree = treeOf(columns);
  const wrong: number[] = [];
  for (let level = 0; level < depth; level += 1) {
    for (const value of [level, 3 * depth - level])
      if (tree.mostSpecificNonUnaryId({ family: 4, value }) !== level) wrong.push(value);
  }

  expect(wrong).toEqual([]);
});

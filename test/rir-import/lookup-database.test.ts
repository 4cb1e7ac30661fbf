/**
 * Database look-ups equal those of a slow table that only knows the rule: random registries are imported over each
 * other and queried. A failure names the seed.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatAddress } from "#core/ip/address";
import { formatRange } from "#core/ip/range";
import { seededRandom } from "#core/random";
import type { Database } from "#db/server-database";
import { applyImport } from "#rir-import/apply";
import { testDatabase } from "../support/database.ts";
import { type SourceFolder, sourceFolder } from "./source-folder.ts";
import { chainAt } from "./tree-in-force.ts";

let database: Database;
let folder: SourceFolder;
beforeAll(async () => {
  database = await testDatabase();
  folder = sourceFolder();
});
afterAll(async () => {
  folder.remove();
  await database.close();
});

describe("look-ups in the database after imports of random registries", () => {
  // IPv4 for even seeds, IPv6 for odd ones.
  it.each([1001, 1002, 1003, 1004, 1005, 1006])("no difference with seed %i", async (seed) => {
    const random = seededRandom(seed);
    const registry = randomRegistry(random, seed % 2 === 0 ? 4 : 6, 1 + Math.floor(random() * 150));
    const asked = registry.asked.filter((_, index) => index % 3 === 0);
    await applyImport(database, [folder.write(`random-${seed}.db`, registry.text)]);

    const table = withoutDuplicates(registry.ranges);
    for (const one of asked)
      expect({ ...one, answer: (await chainAt(database, one.text)).map(({ name }) => name) }).toEqual({
        ...one,
        answer: referenceAnswer(table, one),
      });
  });
});

interface RandomRegistry {
  readonly family: 4 | 6;
  readonly ranges: readonly ReferenceRange[];
  readonly text: string;
  /** Queries: every edge, its neighbours, and some in between. */
  readonly asked: readonly { readonly first: bigint; readonly last: bigint; readonly text: string }[];
}

/** These contain nothing special-purpose; the space is 2¹² addresses or, for IPv6, as many steps of 2⁷⁰. */
const bases = { 4: 0x2d0a_0000n, 6: 0x2a02_0f00n << 96n } as const;
const spaceSize = 4096;

function randomRegistry(random: () => number, family: 4 | 6, count: number): RandomRegistry {
  const below = (limit: number) => Math.floor(random() * limit);
  const step = family === 4 || random() < 0.3 ? 1n : 1n << 70n;
  const spans: [number, number][] = [];
  while (spans.length < count) spans.push(...randomSpans(below, spans));
  const ranges = spans.slice(0, count).map(([first, last], index) => ({
    first: bases[family] + BigInt(first) * step,
    last: bases[family] + BigInt(last + 1) * step - 1n,
    name: `NET-${index}`,
  }));
  const text = ranges.map((range) => objectText(range, { family, below })).join("\n");
  return { family, ranges, text, asked: askedOf(ranges, family, below) };
}

/** A new span or nested spans, both usual and unusual ones. */
function randomSpans(
  below: (limit: number) => number,
  spans: readonly (readonly [number, number])[],
): [number, number][] {
  const [first, last] = spans[below(spans.length)] ?? [0, spaceSize - 1];
  const inside = (from: number, to: number): [number, number] => {
    const [a, b] = [from + below(to - from + 1), from + below(to - from + 1)];
    return [Math.min(a, b), Math.max(a, b)];
  };
  switch (below(8)) {
    case 0:
      return [inside(0, spaceSize - 1)];
    case 1:
      return [[first, last]];
    case 2:
      return [[first, first]];
    case 3:
      return last + 1 < spaceSize ? [[last + 1, inside(last + 1, spaceSize - 1)[1]]] : [];
    case 4:
      return first > 0 && last > first ? [[below(first), first + below(last - first)]] : [];
    case 5:
      return Array.from({ length: 12 + below(30) }, (_, depth): [number, number] => [
        Math.min(first + depth, last),
        Math.max(last - depth, Math.min(first + depth, last)),
      ]);
    default:
      return [inside(first, last)];
  }
}

/** Sometimes a CIDR block, upper case, tabs, comments or a missing last blank line. */
function objectText(
  { first, last, name }: ReferenceRange,
  with_: { readonly family: 4 | 6; readonly below: (limit: number) => number },
): string {
  const { family, below } = with_;
  const address = (value: bigint) => addressText(value, family);
  const prefix = formatRange(rangeValue(first, last, family));
  const dashed = `${address(first)}${["-", " - ", "\t-  "][below(3)]}${address(last)}`;
  const range = prefix.includes("/") && below(2) === 0 ? prefix : dashed;
  const shown = family === 6 && below(3) === 0 ? range.toUpperCase() : range;
  const comment = below(5) === 0 ? " # of the text" : "";
  const key = family === 4 ? "inetnum" : "inet6num";
  return `${key}:${["  ", "\t"][below(2)]}${shown}${comment}\nnetname: ${name}\ncountry: NL\nsource: RIPE\n`;
}

function askedOf(
  ranges: readonly ReferenceRange[],
  family: 4 | 6,
  below: (limit: number) => number,
): RandomRegistry["asked"] {
  const edges = ranges.flatMap(({ first, last }) => [first - 1n, first, last, last + 1n]);
  const addresses = [...new Set(edges)].map((value) => [value, value] as const);
  const spans = Array.from({ length: ranges.length }, () => {
    const [a, b] = [edges[below(edges.length)]!, edges[below(edges.length)]!];
    return a < b ? ([a, b] as const) : ([b, a] as const);
  });
  return [...addresses, ...spans].map(([first, last]) => ({
    first,
    last,
    text: `${addressText(first, family)} - ${addressText(last, family)}`,
  }));
}

function addressText(value: bigint, family: 4 | 6): string {
  return formatAddress(family === 4 ? { family, value: Number(value) } : { family, value });
}

function rangeValue(first: bigint, last: bigint, family: 4 | 6) {
  return family === 4
    ? ({ family, first: Number(first), last: Number(last) } as const)
    : ({ family, first, last } as const);
}

interface ReferenceRange {
  readonly first: bigint;
  readonly last: bigint;
  readonly name: string;
}

/** The first of equal ranges counts. */
function withoutDuplicates(ranges: readonly ReferenceRange[]): readonly ReferenceRange[] {
  const seen = new Set<string>();
  return ranges.filter(({ first, last }) => seen.size < seen.add(`${first}-${last}`).size);
}

/** Names from the least to the most specific. */
function referenceAnswer(
  table: readonly ReferenceRange[],
  asked: { readonly first: bigint; readonly last: bigint },
): readonly string[] {
  const chain: ReferenceRange[] = [];
  let next = smallestHolder(table, asked);
  while (next !== null) {
    chain.unshift(next);
    next = smallestHolder(table, next);
  }
  return chain.map(({ name }) => name);
}

/** The smallest other range that contains the given one. */
function smallestHolder(
  table: readonly ReferenceRange[],
  within: { readonly first: bigint; readonly last: bigint },
): ReferenceRange | null {
  let best: ReferenceRange | null = null;
  for (const range of table) {
    if (range === within || !holds(range, within)) continue;
    if (best === null || isSmaller(range, best)) best = range;
  }
  return best;
}

const holds = (range: ReferenceRange, { first, last }: { readonly first: bigint; readonly last: bigint }) =>
  range.first <= first && range.last >= last;

function isSmaller(a: ReferenceRange, b: ReferenceRange): boolean {
  const [sizeA, sizeB] = [a.last - a.first, b.last - b.first];
  return sizeA === sizeB ? a.first > b.first : sizeA < sizeB;
}

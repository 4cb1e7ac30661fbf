/**
 * The IP tree: how long it takes to nest and build, what it takes per range, and look-ups against the obvious
 * baseline (binary search over first addresses, then up the parents until a range holds the address) on the
 * same ranges in the same run. Addresses in random order; those that some range holds apart from those that
 * none does. Run: npm run bench -- ip-tree
 */
import { createReadStream, existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { createGunzip } from "node:zlib";
import { asHolderId, asSubnetId } from "#core/ids";
import type { IpAddress } from "#core/ip/address";
import { type IpRange, parseRange } from "#core/ip/range";
import { seededRandom } from "#core/seeded-random";
import { nest } from "#core/subnet/nest";
import {
  columnsOf,
  compareWords,
  emptyColumns,
  type RangeColumns,
  rangeAt,
  sortedOrder,
  writeRange,
} from "#core/subnet/range-columns";
import { SubnetTreeBuilder } from "#core/subnet/subnet-tree";
import { sharedData } from "../support/shared-data.ts";

const rounds = 5;
const lookUps = 500_000;
const seed = 20260301;

for (const source of [
  {
    name: "ipfire-libloc 2022 (registry ranges)",
    path: sharedData("rir/geo/ipfire-libloc-20221029.rpsl.gz"),
  },
  { name: "routing table (bart)", path: sharedData("rir/bgp/bart-prefixes.txt.gz") },
]) {
  if (source.path !== null && existsSync(source.path)) await measureSource(source.name, source.path);
}
measure(`random nested ranges, seed ${seed}`, randomNestedRanges(2_000_000));

async function measureSource(name: string, path: string): Promise<void> {
  const found = { 4: new Map<string, IpRange>(), 6: new Map<string, IpRange>() };
  for await (const line of createInterface({ input: createReadStream(path).pipe(createGunzip()) })) {
    const text = line.startsWith("net:") ? line.slice(4).trim() : line;
    const range = /^[0-9a-f.:]+\/\d+$/i.test(text) ? parseRange(text) : null;
    if (range) found[range.family].set(text, range);
  }
  for (const family of [4, 6] as const) measure(`${name}, IPv${family}`, [...found[family].values()]);
}

function measure(name: string, ranges: readonly IpRange[]): void {
  const nestMs = timed(() => nest(ranges));
  const { parents, crossings } = nest(ranges);
  const builder = new SubnetTreeBuilder();
  ranges.forEach((range, index) => {
    const parent = parents[index] as number;
    const parentId = parent < 0 ? null : asSubnetId(parent + 1);
    builder.add({
      id: asSubnetId(index + 1),
      range,
      parentId,
      holderId: asHolderId(index % 99_991),
      country: "CY",
      registry: "ripencc",
      name: "",
    });
  });
  const start = process.cpuUsage().user;
  const tree = builder.finish();
  const buildMs = (process.cpuUsage().user - start) / 1000;
  const baseline = parentWalk(columnsOf(ranges), parents);

  console.log(`\n## ${name}: ${ranges.length} ranges, ${crossings.length} crossings`);
  console.log(
    `nest ${nestMs.toFixed(0)} ms · build ${buildMs.toFixed(0)} ms · look-up table ${(tree.bytes.lookup / tree.size).toFixed(1)} bytes a range · everything but ids and names ${((tree.bytes.lookup + tree.bytes.places) / tree.size).toFixed(1)}`,
  );
  const addresses = randomAddresses(ranges);
  const held = addresses.filter((address) => tree.mostSpecific(address) !== null);
  const missed = addresses.filter((address) => tree.mostSpecific(address) === null);
  for (const [kind, asked] of [
    ["hit", held],
    ["miss", missed],
  ] as const) {
    if (asked.length < 1000) continue;
    const slow = perLookUp(asked, baseline);
    const fast = perLookUp(asked, (address) => tree.mostSpecificNonUnaryId(address) ?? -1);
    const record = perLookUp(asked, (address) => tree.mostSpecific(address)?.id ?? -1);
    console.log(
      `${kind} (${asked.length}): id ${fast.text} · record ${record.text} · parent walk ${slow.text} · the walk takes ${(slow.median / fast.median).toFixed(1)} times as long`,
    );
  }
}

/** Median of the rounds with smallest and largest, in nanoseconds of CPU time, as other work may share the machine. The sum keeps the work from being optimised away. */
function perLookUp(
  addresses: readonly IpAddress[],
  look: (address: IpAddress) => number,
): { median: number; text: string } {
  let sum = 0;
  const family = addresses[0]?.family;
  // Plain numbers for IPv4, so that a look-up pays for no scattered address objects.
  const values =
    family === 4
      ? Float64Array.from(addresses, ({ value }) => Number(value))
      : addresses.map(({ value }) => value);
  const times = Array.from({ length: rounds }, () => {
    const start = process.cpuUsage().user;
    for (const value of values) sum += look({ family, value } as IpAddress);
    return (1000 * (process.cpuUsage().user - start)) / addresses.length;
  }).sort((a, b) => a - b);
  const median = times[rounds >> 1] as number;
  if (Number.isNaN(sum)) throw new Error("look-ups must give numbers");
  return { median, text: `${median.toFixed(0)} ns [${times[0]?.toFixed(0)}..${times.at(-1)?.toFixed(0)}]` };
}

/** The baseline, on typed arrays as well: correct where nothing crosses. */
function parentWalk(columns: RangeColumns, parents: Int32Array): (address: IpAddress) => number {
  const order = sortedOrder(columns);
  const { first, last, words } = columns;
  const key = emptyColumns(columns.family, 1);
  const sorted = emptyColumns(columns.family, columns.count);
  order.forEach((range, at) => {
    writeRange(sorted, at, rangeAt(columns, range));
  });
  return (address) => {
    if (address.family === 4) key.first[0] = address.value;
    else writeRange(key, 0, { family: 6, first: address.value, last: address.value });
    let low = 0;
    for (let high = order.length; low < high; ) {
      const middle = (low + high) >>> 1;
      if (compareWords(sorted.first, middle, key.first, 0, words) <= 0) low = middle + 1;
      else high = middle;
    }
    let range = low === 0 ? -1 : (order[low - 1] as number);
    while (range >= 0 && compareWords(last, range, key.first, 0, words) < 0) range = parents[range] as number;
    return range < 0 || compareWords(first, range, last, range, words) !== 0
      ? range
      : (parents[range] as number);
  };
}

/** Half within random ranges, half anywhere between the lowest and the highest. */
function randomAddresses(ranges: readonly IpRange[]): IpAddress[] {
  const random = seededRandom(seed);
  return Array.from({ length: lookUps }, (_, index): IpAddress => {
    const range = ranges[Math.floor(random() * ranges.length)] as IpRange;
    if (range.family === 4) {
      const value =
        index % 2 === 0
          ? range.first + Math.floor(random() * (range.last - range.first + 1))
          : Math.floor(random() * 2 ** 32);
      return { family: 4, value };
    }
    const offset = (BigInt(Math.floor(random() * 2 ** 32)) * (range.last - range.first + 1n)) >> 32n;
    return {
      family: 6,
      value:
        index % 2 === 0
          ? range.first + offset
          : (0x2n << 124n) | (BigInt(Math.floor(random() * 2 ** 48)) << 76n),
    };
  });
}

/** Blocks of /8 to /32, each inside an earlier one: about as deep as registries nest. */
function randomNestedRanges(count: number): IpRange[] {
  const random = seededRandom(seed);
  const ranges = new Map<string, IpRange>();
  const blocks: { first: number; length: number }[] = [];
  for (let top = 0; top < 220; top += 1) blocks.push({ first: top * 2 ** 24, length: 8 });
  while (ranges.size < count) {
    const outer = blocks[Math.floor(random() * blocks.length)] as { first: number; length: number };
    const length = Math.min(32, outer.length + 1 + Math.floor(random() * 9));
    const size = 2 ** (32 - length);
    const first = outer.first + Math.floor(random() * 2 ** (length - outer.length)) * size;
    const key = `${first}/${length}`;
    if (ranges.has(key)) continue;
    ranges.set(key, { family: 4, first, last: first + size - 1 });
    if (length < 29) blocks.push({ first, length });
  }
  return [...ranges.values()];
}

function timed(work: () => unknown): number {
  const times = Array.from({ length: 3 }, () => {
    const start = process.cpuUsage().user;
    work();
    return (process.cpuUsage().user - start) / 1000;
  }).sort((a, b) => a - b);
  return times[1] as number;
}

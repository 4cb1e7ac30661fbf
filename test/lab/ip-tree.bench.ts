/**
 * The IP tree at full size, ten million IPv4 ranges and two million IPv6, and on real ranges where they are available and not fewer:
 * time to build, to write a snapshot and to read it back, memory per range, and look-ups of ids and records. Addresses in random
 * order: within a random range, anywhere in some range, and in none. Run: npm run bench -- ip-tree
 */
import { createReadStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createGunzip } from "node:zlib";
import { columnsOf, type RangeColumns, rangeAt } from "#coordinator/place/subnets/range-columns";
import { type SubnetTree, treeOfRows } from "#coordinator/place/subnets/subnet-tree";
import { nestRanges, SubnetRows } from "#coordinator/place/subnets/tree-columns";
import { readTreeSnapshot, writeTreeSnapshot } from "#coordinator/place/subnets/tree-snapshot-store";
import type { IpAddress } from "#core/ip/address";
import { type IpRange, parseRange } from "#core/ip/range";
import { seededRandom } from "#core/random";
import { sharedData } from "../support/shared-data.ts";
import { figure, median, spread } from "./figure.ts";
import { registryLikeIpv4, registryLikeIpv6 } from "./ip-tree/registry-like-ranges.ts";

const seed = Number(process.argv[2] ?? 20260301);
const scale = Number(process.argv[3] ?? 1);
const lookUps = 500_000;
const rounds = 5;
/** Fewer give no useful figures. */
const fewestAsked = 1000;

await measureFamily("registry-like IPv4", registryLikeIpv4(10_000_000 * scale, seed));
await measureFamily("registry-like IPv6", registryLikeIpv6(2_000_000 * scale, seed));
for (const [name, path] of [
  ["ipfire-libloc 2022", sharedData("rir/geo/ipfire-libloc-20221029.rpsl.gz")],
  ["routing table (bart)", sharedData("rir/bgp/bart-prefixes.txt.gz")],
] as const) {
  if (path === null || scale < 1) continue;
  const columns = await realRanges(path);
  await measureFamily(`${name}, IPv4`, columns[4]);
  await measureFamily(`${name}, IPv6`, columns[6]);
}
console.log(`\nmost memory: ${(process.resourceUsage().maxRSS / 1024).toFixed(0)} MB`);

async function measureFamily(name: string, columns: RangeColumns): Promise<void> {
  const { family } = columns;
  const tree = measureBuild(name, columns);
  await measureSnapshot(tree);
  const random = seededRandom(seed + 1);
  const anywhere = addressesAnywhere(family, 3 * lookUps, random);
  const isHeld = (address: IpAddress) => tree.mostSpecific(address) !== null;
  const kinds = {
    "within a range": addressesWithin(columns, lookUps, random),
    "anywhere held": anywhere.filter(isHeld).slice(0, lookUps),
    "not held": anywhere.filter((address) => !isHeld(address)).slice(0, lookUps),
  };
  for (const [kind, addresses] of Object.entries(kinds)) {
    if (addresses.length >= fewestAsked)
      console.log(`${kind}: ${lookUpTimes(`${name}, ${kind}`, addresses, tree)}`);
  }
}

function measureBuild(name: string, columns: RangeColumns): SubnetTree {
  const rows = new SubnetRows();
  const filling = cpuMs();
  fillRows(rows, columns);
  const building = cpuMs();
  const tree = treeOfRows(rows);
  const built = cpuMs();
  const { ipv4, ipv6, ids, labels, holderIds, nameIds } = tree.columns;
  const per = (...parts: object[]) => {
    const arrays = parts.flatMap((part) => (ArrayBuffer.isView(part) ? [part] : Object.values(part)));
    const bytes = arrays.reduce((sum, one) => sum + (ArrayBuffer.isView(one) ? one.byteLength : 0), 0);
    return (bytes / tree.size).toFixed(2);
  };
  console.log(`\n## ${name}: ${tree.size} ranges`);
  console.log(
    `rows ${(building - filling).toFixed(0)} ms, tree ${(built - building).toFixed(0)} ms of CPU time`,
  );
  console.log(
    `bytes a range: ranges and parents ${per(ipv4, ipv6)}, label ${per(labels)}, id ${per(ids)}, ` +
      `holder ${per(holderIds)}, names ${per(nameIds)} and the texts`,
  );
  return tree;
}

/** To a file and back, with checksum and sync; wall time too, because of the disk. */
async function measureSnapshot(tree: SubnetTree): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "nearcrawl-bench-"));
  const file = join(folder, "bench.tree");
  const registry = { generation: 1, appliedAt: "2026-03-01T12:00:00.000000Z" };
  try {
    const written = await timed(() => writeTreeSnapshot(file, tree, registry));
    const { size } = await stat(file);
    const read = await timed(() => readTreeSnapshot(file, registry));
    console.log(`snapshot ${(size / 1e6).toFixed(0)} MB: written in ${written}, read in ${read}`);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function timed(work: () => Promise<unknown>): Promise<string> {
  const [start, startCpu] = [performance.now(), cpuMs()];
  await work();
  return `${((performance.now() - start) / 1000).toFixed(2)} s (${((cpuMs() - startCpu) / 1000).toFixed(2)} s of CPU)`;
}

/** Ids are the positions + 1, in the order of the ranges. */
function fillRows(rows: SubnetRows, columns: RangeColumns): void {
  const { first, last, words, count } = columns;
  for (let place = 0; place < count; place += 1) {
    const facts = {
      id: place + 1,
      holderId: place % 99_991,
      country: "CY",
      registry: "ripencc" as const,
      name: `NET-${place % 1_000_003}`,
    };
    if (words === 1) rows.addIpv4(first[place] as number, last[place] as number, facts);
    else
      rows.addIpv6(first.subarray(4 * place, 4 * place + 4), last.subarray(4 * place, 4 * place + 4), facts);
  }
}

/** CPU time per look-up in ns, each method in turn, `rounds` times after a warm-up. */
function lookUpTimes(what: string, addresses: readonly IpAddress[], tree: SubnetTree): string {
  const ways = { id: sumOfIds, record: sumOfRecords };
  const told = Object.entries(ways).map(([way, sumOf]) => {
    const times = Array.from({ length: rounds + 1 }, () => {
      const start = cpuMs();
      sumOf(tree, addresses);
      return (1e6 * (cpuMs() - start)) / addresses.length;
    }).slice(1);
    figure(`${what}, ${way}`, median(times), "ns CPU");
    return `${way} ${spread(times, 0)} ns`;
  });
  return `${told.join(" · ")} · ${addresses.length} addresses`;
}

function sumOfIds(tree: SubnetTree, addresses: readonly IpAddress[]): number {
  let sum = 0;
  for (const address of addresses) sum += tree.mostSpecificNonUnaryId(address) ?? 0;
  return sum;
}

function sumOfRecords(tree: SubnetTree, addresses: readonly IpAddress[]): number {
  let sum = 0;
  for (const address of addresses) sum += tree.mostSpecific(address)?.id ?? 0;
  return sum;
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** From a gzip file with lines of a block, or `net:` and a block. */
async function realRanges(path: string): Promise<Readonly<Record<4 | 6, RangeColumns>>> {
  const found = { 4: new Map<string, IpRange>(), 6: new Map<string, IpRange>() };
  for await (const line of createInterface({ input: createReadStream(path).pipe(createGunzip()) })) {
    const text = line.startsWith("net:") ? line.slice(4).trim() : line;
    const range = /^[0-9a-f.:]+\/\d+$/i.test(text) ? parseRange(text) : null;
    if (range) found[range.family].set(text, range);
  }
  const sorted = (family: 4 | 6) => nestRanges(columnsOf([...found[family].values()])).columns;
  return { 4: sorted(4), 6: sorted(6) };
}

/** Each within a random range: most ranges are small and at the bottom. */
function addressesWithin(columns: RangeColumns, count: number, random: () => number): IpAddress[] {
  return Array.from({ length: count }, (): IpAddress => {
    const range = rangeAt(columns, Math.floor(random() * columns.count));
    if (range.family === 4)
      return { family: 4, value: range.first + Math.floor(random() * (range.last - range.first + 1)) };
    const offset = ((range.last - range.first + 1n) * BigInt(Math.floor(random() * 2 ** 32))) >> 32n;
    return { family: 6, value: range.first + offset };
  });
}

/** Uniform over the unicast space (IPv6: where the registries have blocks, 2000::/4). */
function addressesAnywhere(family: 4 | 6, count: number, random: () => number): IpAddress[] {
  return Array.from({ length: count }, (): IpAddress => {
    if (family === 4) return { family, value: Math.floor(random() * 224 * 2 ** 24) };
    const high = BigInt(0x20000000 + Math.floor(random() * 0x10000000));
    const low = BigInt(Math.floor(random() * 2 ** 32));
    return { family, value: (high << 96n) | (low << 64n) };
  });
}

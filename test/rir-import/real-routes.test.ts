/**
 * A routing table as large as the Internet's, from public data: ranges with their AS (ip-location-db, both families) and the
 * prefixes of a full table (bart's test data), each in the form of a dump. Held against the ranges themselves.
 */
import { createReadStream } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createGunzip } from "node:zlib";
import { describe, expect, it } from "vitest";
import {
  blockBits,
  firstAddressOf,
  OriginTable,
  prefixBlocks,
  prefixText,
  segmentsOf,
} from "#coordinator/subnets/routing-table";
import { formatAddress } from "#core/ip/address";
import { type IpRange, parseRange } from "#core/ip/range";
import { readInThreads } from "#rir-import/read/read-in-threads";
import { buildState } from "#rir-import/tree/to-subnets";
import { sharedData } from "../support/shared-data.ts";

const linesOf = (path: string) =>
  createInterface({
    input: createReadStream(path).pipe(createGunzip()),
    crlfDelay: Number.POSITIVE_INFINITY,
  });

async function settled(text: string) {
  const folder = await mkdtemp(join(tmpdir(), "nearcrawl-routes-"));
  try {
    const file = join(folder, "routes.txt");
    await writeFile(file, text);
    const { store, reports } = await readInThreads([file], () => {});
    return { routes: buildState(store).routes!, report: reports[0]! };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The prefixes of a range in blocks; what is smaller than a block is left out. */
function prefixesOf({ family, first, last }: IpRange): string[] {
  const unit = family === 4 ? 256n : 1n << 80n;
  const end = (BigInt(last) + 1n) / unit;
  const prefixes: string[] = [];
  for (let block = Number((BigInt(first) + unit - 1n) / unit); BigInt(block) < end; ) {
    let length = blockBits[family];
    while (
      length > 8 &&
      block % prefixBlocks(family, length - 1) === 0 &&
      BigInt(block + prefixBlocks(family, length - 1)) <= end
    )
      length -= 1;
    prefixes.push(prefixText(family, block, length));
    block += prefixBlocks(family, length);
  }
  return prefixes;
}

const asnFiles = ([4, 6] as const).map((family) => ({
  family,
  path: sharedData(`rir/geo/ip-location-db-asn-ipv${family}-20260617.csv.gz`),
}));

describe.each(asnFiles)("the ASes of IPv$family", ({ family, path }) => {
  it.skipIf(path === null)("are those of the ranges, wherever one asks", { timeout: 240_000 }, async () => {
    const lines: string[] = [];
    const ranges: { readonly range: IpRange; readonly asNumber: number }[] = [];
    for await (const line of linesOf(path!)) {
      const [first = "", last = "", asText = ""] = line.split(",");
      const range = parseRange(`${first} - ${last}`);
      if (range === null) continue;
      const prefixes = prefixesOf(range);
      for (const prefix of prefixes) lines.push(`${prefix} ${asText}`);
      if (prefixes.length > 0 && ranges.length < 1_000_000) ranges.push({ range, asNumber: Number(asText) });
    }

    const { routes, report } = await settled(lines.join("\n"));

    expect(report.malformed).toBe(0);
    expect(report.kept).toBeGreaterThan(0.97 * lines.length);
    const segments = { 4: segmentsOf(4, routes.table.ipv4), 6: segmentsOf(6, routes.table.ipv6) };
    const table = new OriginTable(segments);
    const wrong = ranges.filter(({ range, asNumber }, at) => {
      if (at % 7 !== 0) return false;
      const found = table.asNumberOf(parseRange(formatAddress(firstAddressOf(family, middleBlock(range))))!);
      return found !== asNumber && found !== null;
    });
    expect(wrong).toEqual([]);
    const known = ranges.filter(({ range }) => table.asNumberOf(range) !== null).length;
    expect(known / ranges.length).toBeGreaterThan(0.97);
  });
});

/** A block that lies within the range as a whole. */
function middleBlock({ family, first, last }: IpRange): number {
  const unit = family === 4 ? 256n : 1n << 80n;
  const from = Number((BigInt(first) + unit - 1n) / unit);
  const to = Number((BigInt(last) + 1n) / unit) - 1;
  return Math.floor((from + to) / 2);
}

const fullTable = sharedData("rir/bgp/bart-prefixes.txt.gz");

it.skipIf(fullTable === null)(
  "the prefixes of a full table are read as a dump, a million in seconds, with what is no route left out",
  { timeout: 240_000 },
  async () => {
    const lines: string[] = [];
    for await (const prefix of linesOf(fullTable!))
      lines.push(`${1 + (lines.length % 60_000)}\t${prefix}\t${1 + (lines.length % 300)}`);

    const { routes, report } = await settled(lines.join("\n"));

    const kept = routes.table.ipv4.lengths.length + routes.table.ipv6.lengths.length;
    expect(report.read).toBe(lines.length);
    expect(report.malformed).toBe(0);
    // 9 of 300 are seen by too few.
    expect(kept).toBeGreaterThan(0.94 * lines.length);
    expect(report.ignored["seen by fewer than 10 peers"]).toBeGreaterThan(0.029 * lines.length);
  },
);

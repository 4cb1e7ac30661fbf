/** The published places of a subnet: a few ranges, and many compared with a simple implementation. */
import { describe, expect, it } from "vitest";
import {
  nothingPublished,
  type PublishedList,
  type PublishedRanges,
  PublishedRangesBuilder,
} from "#coordinator/place/subnets/published-ranges";
import { type IpRange, parseRange, rangeCovers } from "#core/ip/range";
import { seededRandom } from "#core/random";

const list = (source: string, isNamedByObjects = false): PublishedList => ({
  source,
  kind: isNamedByObjects ? "geofeed" : "aws",
  isNamedByObjects,
  listDate: "2026-03-01",
  version: null,
});

type Row = readonly [source: string, prefix: string, place: string | null];

/** Sources that begin with `geofeed ` are named by registry objects. */
function publishedOf(rows: readonly Row[]): PublishedRanges {
  const builder = new PublishedRangesBuilder();
  const indexes = new Map<string, number>();
  for (const [source, prefix, place] of rows) {
    const index = indexes.get(source) ?? builder.addList(list(source, source.startsWith("geofeed ")));
    indexes.set(source, index);
    builder.add(index, parseRange(prefix) as IpRange, { place, within: null });
  }
  return builder.build();
}

const said = (published: PublishedRanges, range: string) =>
  published
    .of(parseRange(range) as IpRange)
    .map(({ list, place }) => `${list.source}: ${place ?? "nowhere"}`)
    .sort();

describe("a subnet within published ranges", () => {
  const published = publishedOf([
    ["aws", "3.64.0.0/12", "aws eu-central-1"],
    ["aws", "3.64.8.0/24", "aws eu-central-1-ham-1"],
    ["aws", "3.65.0.0/16", null],
    ["geofeed https://a.example/", "3.64.0.0/15", "DE-HE Frankfurt"],
    ["geofeed https://b.example/", "3.64.8.0/22", "DE-HH Hamburg"],
    ["aws", "2600:1f14::/32", "aws us-west-2"],
  ]);

  it("has the place of the most specific range, for each source", () => {
    expect(said(published, "3.64.8.128/25")).toEqual([
      "aws: aws eu-central-1-ham-1",
      "geofeed https://b.example/: DE-HH Hamburg",
    ]);
    expect(said(published, "3.64.9.0/24")).toEqual([
      "aws: aws eu-central-1",
      "geofeed https://b.example/: DE-HH Hamburg",
    ]);
    expect(said(published, "3.70.0.0/24")).toEqual(["aws: aws eu-central-1"]);
    expect(said(published, "2600:1f14:1::/48")).toEqual(["aws: aws us-west-2"]);
  });

  it("has no place for a source that lists its range without one, even if a wider range has one", () => {
    expect(said(published, "3.65.3.0/24")).toEqual([
      "aws: nowhere",
      "geofeed https://a.example/: DE-HE Frankfurt",
    ]);
  });

  it("has no place outside them, or when nothing is published", () => {
    expect(said(published, "4.0.0.0/24")).toEqual([]);
    expect(said(published, "2600:1f15::/48")).toEqual([]);
    expect(said(nothingPublished, "3.64.8.0/24")).toEqual([]);
  });
});

describe("a subnet that holds published ranges", () => {
  const published = publishedOf([
    ["aws", "45.0.0.0/25", "aws a"],
    ["aws", "45.0.0.64/26", "aws b"],
    ["aws", "45.0.0.128/26", "aws b"],
    ["google", "45.0.0.0/26", "google c"],
    ["geofeed https://a.example/", "45.0.0.0/26", "DE"],
    ["geofeed https://b.example/", "45.0.0.64/26", "DE"],
  ]);

  it("has the place that covers at least half of it, whichever lists say so", () => {
    expect(said(published, "45.0.0.0/24")).toEqual(["aws: aws b", "geofeed https://a.example/: DE"]);
  });

  it("has no place where less than half is covered", () => {
    expect(said(published, "45.0.0.0/23")).toEqual([]);
  });

  it("counts only the part of a crossing range that is inside it", () => {
    expect(said(published, "45.0.0.96 - 45.0.0.191")).toEqual(["aws: aws b"]);
    expect(said(published, "45.0.0.32 - 45.0.0.95")).toEqual([
      "aws: aws a",
      "geofeed https://a.example/: DE",
      "google: google c",
    ]);
  });
});

describe("many published ranges", () => {
  /** Address by address: the most specific range of each source that holds it; the place of at least half. */
  function slowly(rows: readonly Row[], asked: { readonly first: number; readonly last: number }): string[] {
    const words: string[] = [];
    const layers = new Map<string, Row[]>();
    for (const row of rows) {
      const layer = row[0].startsWith("geofeed ") ? "geofeed" : row[0];
      layers.set(layer, [...(layers.get(layer) ?? []), row]);
    }
    for (const [layer, own] of layers) {
      const ranges = own.map(([, prefix, place]) => ({ range: parseRange(prefix) as IpRange, place }));
      const bySize = [...ranges].sort((a, b) => sizeOf(a.range) - sizeOf(b.range));
      const whole = bySize.find(({ range }) => rangeCovers(range, { family: 4, ...asked }));
      const counts = new Map<string | null, number>();
      for (let address = asked.first; address <= asked.last; address += 1) {
        const at: IpRange = { family: 4, first: address, last: address };
        const one = bySize.find(({ range }) => rangeCovers(range, at));
        if (one) counts.set(one.place, (counts.get(one.place) ?? 0) + 1);
      }
      const most = [...counts].sort(([, a], [, b]) => b - a);
      const half = (asked.last - asked.first + 1) / 2;
      const isTied = most.length > 1 && most[0]![1] === most[1]![1];
      if (whole) words.push(`${layer}: ${whole.place}`);
      else if (most[0] && most[0][1] >= half) words.push(`${layer}: ${isTied ? "either" : most[0][0]}`);
    }
    return words.sort();
  }
  const sizeOf = ({ first, last }: IpRange) => Number(last) - Number(first);

  it("agree with a table that is read address by address", () => {
    const seed = 84;
    const random = seededRandom(seed);
    const whole = (below: number) => Math.floor(random() * below);
    for (let round = 0; round < 20; round += 1) {
      const seen = new Set<string>();
      const rows: Row[] = [];
      for (let at = 0; at < 25; at += 1) {
        const length = 24 + whole(8);
        const first = whole(2 ** (length - 22)) * 2 ** (32 - length);
        const prefix = `45.0.${Math.floor(first / 256)}.${first % 256}/${length}`;
        const source = ["aws", "google", "geofeed a", "geofeed b"][whole(4)] as string;
        const key = `${source.split(" ")[0]} ${prefix}`;
        if (seen.has(key)) continue;
        seen.add(key);
        rows.push([source, prefix, [null, "x", "y", "z"][whole(4)] as string | null]);
      }
      const published = publishedOf(rows);
      for (let question = 0; question < 20; question += 1) {
        const [a, b] = [whole(1024), whole(1024)];
        const base = 45 * 2 ** 24;
        const asked = { first: base + Math.min(a, b), last: base + Math.max(a, b) };
        const slow = slowly(rows, asked);
        const fast = published
          .of({ family: 4, ...asked })
          .map(({ list: { source }, place }) => `${source.split(" ")[0]}: ${place}`)
          .sort()
          .map((word, at) => (slow[at]?.endsWith(": either") ? word.replace(/:.*/, ": either") : word));
        expect(fast, `seed ${seed}, round ${round}: ${JSON.stringify({ rows, asked })}`).toEqual(slow);
      }
    }
  });
});

/** Which AS a range belongs to, by the prefixes that are announced. */
import { describe, expect, it } from "vitest";
import {
  blockOf,
  type Family,
  joinedRanges,
  OriginTable,
  packPrefixes,
  packSegments,
  parseAsNumber,
  prefixBlocks,
  segmentsOf,
  unpackPrefixes,
  unpackSegments,
} from "#coordinator/subnets/routing-table";
import { parseAddress } from "#core/ip/address";
import { formatRange, parseRange } from "#core/ip/range";
import { seededRandom } from "#core/random";

type Announced = readonly [prefix: string, asNumber: number];

function prefixesOf(announced: readonly Announced[]) {
  const rows = announced
    .map(([prefix, asNumber]) => {
      const [address = "", length = ""] = prefix.split("/");
      return { firstBlock: blockOf(parseAddress(address)!), length: Number(length), asNumber };
    })
    .sort((a, b) => a.firstBlock - b.firstBlock || a.length - b.length);
  return {
    firstBlocks: Float64Array.from(rows, ({ firstBlock }) => firstBlock),
    lengths: Uint8Array.from(rows, ({ length }) => length),
    asNumbers: Uint32Array.from(rows, ({ asNumber }) => asNumber),
  };
}

const isIpv6 = ([prefix]: Announced) => prefix.includes(":");
const tableOf = (announced: readonly Announced[]) =>
  new OriginTable({
    4: segmentsOf(4, prefixesOf(announced.filter((one) => !isIpv6(one)))),
    6: segmentsOf(6, prefixesOf(announced.filter(isIpv6))),
  });
const asNumberOf = (table: OriginTable, range: string) => table.asNumberOf(parseRange(range)!);

describe("the AS of a range", () => {
  const table = tableOf([
    ["10.0.0.0/8", 1],
    ["10.1.0.0/16", 2],
    ["10.1.2.0/24", 1],
    ["20.0.0.0/24", 3],
    ["20.0.1.0/24", 3],
    ["20.0.2.0/23", 4],
    ["20.0.8.0/24", 5],
    ["2001:600::/32", 6],
    ["2001:600:1::/48", 7],
  ]);

  it("is the origin of the most specific prefix over it", () => {
    const asked = ["10.0.0.0/9", "10.1.3.0/24", "10.1.2.77", "2001:600::/48", "2001:600:1:2::/64"];

    expect(asked.map((range) => asNumberOf(table, range))).toEqual([1, 2, 1, 6, 7]);
  });

  it("is, of a range with several announced parts, the one that has at least half of it", () => {
    // 20.0.0.0/22: AS3 and AS4 have two of four blocks each; 20.0.0.0/21: two of eight.
    expect(asNumberOf(table, "20.0.0.0/22")).toBe(3);
    expect(asNumberOf(table, "20.0.0.0/21")).toBeNull();
    expect(asNumberOf(table, "10.1.0.0/16")).toBe(2);
  });

  it("is unknown where nobody announces it, and of what is wider than any network", () => {
    const asked = ["20.0.8.0 - 20.0.11.255", "30.0.0.0/24", "9.255.255.0/24", "10.0.0.0/7", "2600::/32"];

    expect(asked.map((range) => asNumberOf(table, range))).toEqual([null, null, null, null, null]);
    expect(OriginTable.empty.asNumberOf(parseRange("10.0.0.0/24")!)).toBeNull();
  });
});

it.each([4, 6] as const)("agrees with a search through every prefix, IPv%i", (family) => {
  const seed = 20261126;
  const random = seededRandom(seed);
  const announced = Array.from(
    { length: 400 },
    (_, index): Announced => randomPrefix(family, index + 1, random),
  );
  const once = [...new Map(announced)];

  const table = tableOf(once);

  const ranges = once.map(([prefix, asNumber]) => ({
    ...parseRange(prefix)!,
    length: Number(prefix.split("/")[1]),
    asNumber,
  }));
  const wrong = Array.from({ length: 1000 }, () => randomPrefix(family, 0, random)[0].split("/")[0]!).filter(
    (asked) => {
      const { first } = parseRange(asked)!;
      const holding = ranges.filter((one) => one.first <= first && one.last >= first);
      const best = holding.sort((a, b) => b.length - a.length)[0];
      return asNumberOf(table, asked) !== (best?.asNumber ?? null);
    },
  );
  expect(wrong, `seed ${seed}`).toEqual([]);
});

/** Within a /12 or a /24 of IPv6, so that many hold each other. */
function randomPrefix(family: Family, asNumber: number, random: () => number): Announced {
  const length = family === 4 ? 12 + Math.floor(13 * random()) : 24 + Math.floor(25 * random());
  const blocks = prefixBlocks(family, length);
  const first = Math.floor((random() * 2 ** (family === 4 ? 12 : 24)) / blocks) * blocks;
  if (family === 4) {
    const value = 0x4000_0000 + first * 256;
    return [`${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.0/${length}`, asNumber];
  }
  const high = Math.floor(first / 65536).toString(16);
  return [
    `2001:${(0x600 + Number.parseInt(high, 16)).toString(16)}:${(first % 65536).toString(16)}::/${length}`,
    asNumber,
  ];
}

it("comes back from the bytes that the database keeps", () => {
  const announced: readonly Announced[] = [
    ["1.0.0.0/24", 13335],
    ["223.255.254.0/24", 4_199_999_999],
    ["2001:600::/32", 3333],
    ["2a02:f00:ffff::/48", 1],
  ];
  for (const family of [4, 6] as const) {
    const prefixes = prefixesOf(announced.filter((one) => isIpv6(one) === (family === 6)));
    const segments = segmentsOf(family, prefixes);
    const packed = packPrefixes(family, prefixes, [0, 1]);

    expect(packed.length).toBe(family === 4 ? 8 : 14);
    expect([...unpackPrefixes(family, packed)]).toEqual(
      [0, 1].map((row) => ({ firstBlock: prefixes.firstBlocks[row], length: prefixes.lengths[row] })),
    );
    const rows = [
      packSegments(family, segments, 0, 1),
      packSegments(family, segments, 1, segments.starts.length),
    ];
    expect(unpackSegments(family, rows)).toEqual(segments);
  }
});

it("joins prefixes that touch or hold each other into as few ranges as there can be", () => {
  const joined = (announced: readonly Announced[], family: Family) => {
    const { firstBlocks, lengths } = prefixesOf(announced);
    const prefixes = [...firstBlocks].map((firstBlock, row) => ({ firstBlock, length: lengths[row]! }));
    return joinedRanges(family, prefixes).map(formatRange);
  };

  expect(
    joined(
      [
        ["10.0.0.0/16", 1],
        ["10.0.9.0/24", 1],
        ["10.1.0.0/17", 1],
        ["11.0.0.0/24", 1],
      ],
      4,
    ),
  ).toEqual(["10.0.0.0 - 10.1.127.255", "11.0.0.0/24"]);
  expect(
    joined(
      [
        ["2001:600::/33", 1],
        ["2001:600:8000::/33", 1],
      ],
      6,
    ),
  ).toEqual(["2001:600::/32"]);
});

it("reads AS numbers as people write them, and no other text", () => {
  expect(["AS3333", "as 3333", "AS4294967295"].map(parseAsNumber)).toEqual([3333, 3333, 4294967295]);
  expect(["AS0", "AS4294967296", "3333", "ASN3333", "AS-3"].map(parseAsNumber)).toEqual(Array(5).fill(null));
});

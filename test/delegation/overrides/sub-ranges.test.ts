/** Leaves cut into parts, on ranges whose blocks can be followed in the head. */
import { describe, expect, it } from "vitest";
import { leafParts, maxPartsPerLeaf } from "#coordinator/delegation/overrides/sub-ranges";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { formatRange, type IpRange, parseRange, rangeHolds } from "#core/ip/range";
import { seededRandom } from "#core/random";

const athens = asCrawlerId(1);
const berlin = asCrawlerId(2);
const tokyo = asCrawlerId(3);

const rangeOf = (text: string): IpRange => parseRange(text)!;
const at = (crawlerId: CrawlerId, ...addresses: string[]) =>
  addresses.map((text) => ({ address: parseAddress(text)!, crawlerId }));
const shown = (leaf: string, owner: CrawlerId, judged: ReturnType<typeof at>) =>
  leafParts(rangeOf(leaf), owner, judged).map(({ range, crawlerId }) => [formatRange(range), crawlerId]);

describe("a leaf of one kind", () => {
  it("stays whole", () => {
    expect(shown("10.1.2.0/24", athens, at(athens, "10.1.2.7", "10.1.2.200"))).toEqual([]);
  });

  it("stays whole when all of it is elsewhere: then its delegation is wrong, not its range", () => {
    expect(shown("10.1.2.0/24", athens, at(berlin, "10.1.2.7", "10.1.2.200"))).toEqual([]);
  });

  it("stays whole when nothing is known of it", () => {
    expect(shown("10.1.2.0/24", athens, [])).toEqual([]);
  });
});

describe("a leaf of two places", () => {
  it("is cut in the middle when that separates them", () => {
    const judged = [...at(athens, "10.1.2.130", "10.1.2.200"), ...at(berlin, "10.1.2.7", "10.1.2.100")];

    expect(shown("10.1.2.0/23", athens, [...judged, ...at(athens, "10.1.3.9")])).toEqual([
      ["10.1.2.0/25", berlin],
    ]);
  });

  it("is halved further only where both kinds are", () => {
    const judged = [...at(athens, "10.1.2.7", "10.1.2.9", "10.1.2.200"), ...at(berlin, "10.1.2.130")];

    expect(shown("10.1.2.0/24", athens, judged)).toEqual([["10.1.2.128/26", berlin]]);
  });

  it("is cut down to single addresses between neighbours", () => {
    expect(shown("10.1.2.0/24", athens, [...at(athens, "10.1.2.6"), ...at(berlin, "10.1.2.7")])).toEqual([
      ["10.1.2.7/32", berlin],
    ]);
  });

  it("gives each of several other crawlers its own blocks", () => {
    const judged = [
      ...at(athens, "10.1.2.7"),
      ...at(berlin, "10.1.2.70", "10.1.2.190"),
      ...at(tokyo, "10.1.2.250"),
    ];

    expect(shown("10.1.2.0/24", athens, judged)).toEqual([
      ["10.1.2.64/26", berlin],
      ["10.1.2.128/26", berlin],
      ["10.1.2.192/26", tokyo],
    ]);
  });
});

describe("a range that is no block", () => {
  it("is cut at aligned borders and at its own ends", () => {
    const judged = [...at(athens, "10.1.2.200"), ...at(berlin, "10.1.3.8")];

    expect(shown("10.1.2.100 - 10.1.3.9", athens, judged)).toEqual([["10.1.3.0 - 10.1.3.9", berlin]]);
  });

  it("may have its first part begin where it begins", () => {
    const judged = [...at(berlin, "10.1.2.101"), ...at(athens, "10.1.3.8")];

    expect(shown("10.1.2.100 - 10.1.3.9", athens, judged)).toEqual([["10.1.2.100 - 10.1.2.255", berlin]]);
  });
});

describe("IPv6", () => {
  it("is cut the same way, over 64 bits and more", () => {
    const judged = [...at(athens, "2a00:1:0:1::1"), ...at(berlin, "2a00:1:8000::1", "2a00:1:ffff::1")];

    expect(shown("2a00:1::/32", athens, judged)).toEqual([["2a00:1:8000::/33", berlin]]);
  });

  it("is cut down to its last bit", () => {
    const judged = [...at(athens, "2a00:1::2"), ...at(berlin, "2a00:1::3")];

    expect(shown("2a00:1::/32", athens, judged)).toEqual([["2a00:1::3/128", berlin]]);
  });

  it("does not mix with IPv4", () => {
    expect(shown("2a00:1::/32", athens, [...at(athens, "2a00:1::2"), ...at(berlin, "10.1.2.3")])).toEqual([]);
  });
});

describe("limits", () => {
  it("keeps the parts with the most addresses when there would be too many", () => {
    const judged = Array.from({ length: 40 }, (_, index) => [
      ...at(athens, `10.1.2.${index * 4}`),
      ...at(berlin, `10.1.2.${index * 4 + 2}`, ...(index === 39 ? [`10.1.2.${index * 4 + 3}`] : [])),
    ]).flat();

    const parts = leafParts(rangeOf("10.1.2.0/24"), athens, judged);

    expect(parts.length).toBe(maxPartsPerLeaf);
    expect(parts.some(({ addresses }) => addresses.length === 2)).toBe(true);
  });

  it("says nothing of an address that was judged both ways", () => {
    const judged = [...at(athens, "10.1.2.7"), ...at(berlin, "10.1.2.7")];

    expect(shown("10.1.2.0/24", athens, judged)).toEqual([]);
  });
});

it("separates every address from those of another kind, and parts never overlap", () => {
  const random = seededRandom(7);
  for (let world = 0; world < 200; world++) {
    const leaf = rangeOf(world % 2 === 0 ? "10.1.2.0/24" : "10.1.2.33 - 10.1.3.77");
    const size = Number(leaf.last) - Number(leaf.first) + 1;
    const offsets = new Set(Array.from({ length: 9 }, () => Math.floor(random() * size)));
    const judged = [...offsets].map((offset) => ({
      address: { family: 4 as const, value: Number(leaf.first) + offset },
      crawlerId: asCrawlerId(1 + Math.floor(random() * 3)),
    }));

    const parts = leafParts(leaf, athens, judged);

    const ownerIsThere = judged.some(({ crawlerId }) => crawlerId === athens);
    for (const { address, crawlerId } of judged) {
      const holding = parts.filter(({ range }) => rangeHolds(range, address));
      const wanted = crawlerId === athens || !ownerIsThere ? [] : [crawlerId];
      expect(
        holding.map((part) => part.crawlerId),
        `world ${world}, ${address.value}`,
      ).toEqual(wanted);
    }
  }
});

/** Leaves cut into parts, on ranges whose blocks can be followed in the head. */
import { expect, it } from "vitest";
import { leafParts, maxPartsPerLeaf } from "#coordinator/place/delegation/overrides/sub-ranges";
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
const [slash24, noBlock, ipv6] = ["10.1.2.0/24", "10.1.2.100 - 10.1.3.9", "2a00:1::/32"] as const;

it.each<[string, string, ReturnType<typeof at>, [string, CrawlerId][]]>([
  ["stays whole where all is of one kind", slash24, at(athens, "10.1.2.7", "10.1.2.200"), []],
  [
    "stays whole when all of it is elsewhere: then its delegation is wrong, not its range",
    slash24,
    at(berlin, "10.1.2.7", "10.1.2.200"),
    [],
  ],
  ["stays whole when nothing is known of it", slash24, [], []],
  [
    "is cut in the middle when that separates two places",
    "10.1.2.0/23",
    [...at(athens, "10.1.2.130", "10.1.2.200", "10.1.3.9"), ...at(berlin, "10.1.2.7", "10.1.2.100")],
    [["10.1.2.0/25", berlin]],
  ],
  [
    "is halved further only where both kinds are",
    slash24,
    [...at(athens, "10.1.2.7", "10.1.2.9", "10.1.2.200"), ...at(berlin, "10.1.2.130")],
    [["10.1.2.128/26", berlin]],
  ],
  [
    "is cut down to single addresses between neighbours",
    slash24,
    [...at(athens, "10.1.2.6"), ...at(berlin, "10.1.2.7")],
    [["10.1.2.7/32", berlin]],
  ],
  [
    "gives each of several other crawlers its own blocks",
    slash24,
    [...at(athens, "10.1.2.7"), ...at(berlin, "10.1.2.70", "10.1.2.190"), ...at(tokyo, "10.1.2.250")],
    [
      ["10.1.2.64/26", berlin],
      ["10.1.2.128/26", berlin],
      ["10.1.2.192/26", tokyo],
    ],
  ],
  [
    "that is no block is cut at aligned borders and at its own end",
    noBlock,
    [...at(athens, "10.1.2.200"), ...at(berlin, "10.1.3.8")],
    [["10.1.3.0 - 10.1.3.9", berlin]],
  ],
  [
    "that is no block may have its first part begin where it begins",
    noBlock,
    [...at(berlin, "10.1.2.101"), ...at(athens, "10.1.3.8")],
    [["10.1.2.100 - 10.1.2.255", berlin]],
  ],
  [
    "of IPv6 is cut the same way, over 64 bits and more",
    ipv6,
    [...at(athens, "2a00:1:0:1::1"), ...at(berlin, "2a00:1:8000::1", "2a00:1:ffff::1")],
    [["2a00:1:8000::/33", berlin]],
  ],
  [
    "of IPv6 is cut down to its last bit",
    ipv6,
    [...at(athens, "2a00:1::2"), ...at(berlin, "2a00:1::3")],
    [["2a00:1::3/128", berlin]],
  ],
  ["of IPv6 does not mix with IPv4", ipv6, [...at(athens, "2a00:1::2"), ...at(berlin, "10.1.2.3")], []],
  [
    "says nothing of an address that was judged both ways",
    slash24,
    [...at(athens, "10.1.2.7"), ...at(berlin, "10.1.2.7")],
    [],
  ],
])("a leaf %s", (_, leaf, judged, expected) => {
  const parts = leafParts(rangeOf(leaf), athens, judged);

  expect(parts.map(({ range, crawlerId }) => [formatRange(range), crawlerId])).toEqual(expected);
});

it("keeps the parts with the most addresses when there would be too many", () => {
  const judged = Array.from({ length: 40 }, (_, index) => [
    ...at(athens, `10.1.2.${index * 4}`),
    ...at(berlin, `10.1.2.${index * 4 + 2}`, ...(index === 39 ? [`10.1.2.${index * 4 + 3}`] : [])),
  ]).flat();

  const parts = leafParts(rangeOf(slash24), athens, judged);

  expect(parts.length).toBe(maxPartsPerLeaf);
  expect(parts.some(({ addresses }) => addresses.length === 2)).toBe(true);
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

/** Which addresses of a leaf measure apart, and how a leaf is cut into parts. */
import { expect, it } from "vitest";
import {
  apartAddresses,
  isAlike,
  leafParts,
  maxPartsPerLeaf,
} from "#coordinator/place/delegation/overrides/sub-ranges";
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
  [
    "stays whole where all addresses have the same crawler",
    slash24,
    at(athens, "10.1.2.7", "10.1.2.200"),
    [],
  ],
  [
    "stays whole when all of it belongs elsewhere, since its delegation is wrong, not its range",
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
    "is halved further only where blocks are mixed",
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
    "that is no CIDR block is cut at aligned borders and at its own end",
    noBlock,
    [...at(athens, "10.1.2.200"), ...at(berlin, "10.1.3.8")],
    [["10.1.3.0 - 10.1.3.9", berlin]],
  ],
  [
    "that is no CIDR block may have its first part begin where it begins",
    noBlock,
    [...at(berlin, "10.1.2.101"), ...at(athens, "10.1.3.8")],
    [["10.1.2.100 - 10.1.2.255", berlin]],
  ],
  [
    "of IPv6 is cut the same way",
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
    "is not cut by an address that was judged both ways",
    slash24,
    [...at(athens, "10.1.2.7"), ...at(berlin, "10.1.2.7")],
    [],
  ],
])("a leaf %s", (_, leaf, judged, expected) => {
  const parts = leafParts(rangeOf(leaf), athens, judged);

  expect(parts.map(({ range, crawlerId }) => [formatRange(range), crawlerId])).toEqual(expected);
});

it("keeps at most 16 parts, those with the most addresses", () => {
  const judged = Array.from({ length: 40 }, (_, index) => [
    ...at(athens, `10.1.2.${index * 4}`),
    ...at(berlin, `10.1.2.${index * 4 + 2}`, ...(index === 39 ? [`10.1.2.${index * 4 + 3}`] : [])),
  ]).flat();

  const parts = leafParts(rangeOf(slash24), athens, judged);

  expect(parts.length).toBe(maxPartsPerLeaf);
  expect(parts.some(({ addresses }) => addresses.length === 2)).toBe(true);
});

it("separates every address from those of other crawlers, without overlapping parts", () => {
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

const times = (levels: Readonly<Record<string, readonly number[]>>) =>
  Object.entries(levels).map(([address, timesMs]) => ({ address, timesMs }));

it.each<[string, Record<string, number[]>, number | null, string[]]>([
  ["that take far longer than expected", { a: [21, 20, 24, 20], b: [101, 99, 100, 104] }, 20, ["b"]],
  ["that are far nearer than expected", { a: [101, 99, 100, 104], b: [21, 20, 24, 20] }, 100, ["b"]],
  [
    "that differ from the median when nothing is expected",
    { a: [20, 20, 20], b: [22, 22, 22], c: [90, 90, 90] },
    null,
    ["c"],
  ],
  ["with at least three times", { a: [20, 20, 20], b: [90, 90] }, 20, []],
  ["unless a busy crawler made single times long", { a: [20, 20, 20, 20], b: [20, 250, 400, 390] }, 20, []],
  ["unless the whole leaf has changed", { a: [80, 80, 80, 80], b: [150, 150, 150, 150] }, 20, []],
  ["by valid times only", { a: [20, 20, 20, 20], b: [-1, Number.NaN, 90, 90] }, 20, []],
])("suspects addresses %s", (_, levels, expectedMs, apart) => {
  const verdict = apartAddresses(times(levels), expectedMs);

  expect(verdict.apart.map(({ address }) => address)).toEqual(apart);
});

it("requires a difference of 15 ms and of a fifth of the level", () => {
  expect(
    [
      [20, 34],
      [20, 36],
      [200, 240],
      [200, 260],
    ].map(([a, b]) => isAlike(a!, b!)),
  ).toEqual([...[true, false, true, false]]);
});

it("suspects fewer than one in a thousand leaves in one place under exponential noise of 4 ms", () => {
  const random = seededRandom(3);
  const noisy = () => [0, 0, 0].map(() => 30 - 4 * Math.log(1 - random()));
  const alarms = Array.from(
    { length: 10_000 },
    () => apartAddresses(times({ a: noisy(), b: noisy(), c: noisy() }), 30).apart.length,
  );

  expect(alarms.filter((apart) => apart > 0).length / alarms.length).toBeLessThan(0.001);
});

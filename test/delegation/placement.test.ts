import { isDeepStrictEqual } from "node:util";
import { expect, it } from "vitest";
import { placementOf } from "#coordinator/place/delegation/placement";
import type { Subnet } from "#coordinator/place/subnets/subnet";
import { buildSubnetTree } from "#coordinator/place/subnets/subnet-tree";
import { asHolderId, asSubnetId } from "#core/ids";
import { formatRange, type IpRange, parseRange } from "#core/ip/range";
import { seededRandom } from "#core/random";

const subnet = (
  id: number,
  text: string,
  holder: number | null = null,
  country: string | null = "CY",
): Subnet => ({
  ...{ id: asSubnetId(id), range: parseRange(text)!, parentId: null, country, registry: "ripencc", name: "" },
  holderId: holder === null ? null : asHolderId(holder),
});

/*
 * 1 64.0.0.0/6 ─ 2 66.0.0.0/8 ─ 3 66.1.0.0/16 ─ 4 66.1.2.0 - 66.1.2.99     5 2001::/16 ─ 6 2001:db8::/32 ─ 7 …::8/125
 * 8 80.0.0.0 - 80.255.255.254 ─ 9 80.1.0.0/24                              10 2400:: - 2401:1:: ─ 11 2400::/32
 */
const tree = buildSubnetTree([
  ...["64.0.0.0/6", "66.0.0.0/8", "66.1.0.0/16"].map((text, at) => subnet(at + 1, text)),
  subnet(4, "66.1.2.0 - 66.1.2.99", 40),
  ...["2001::/16", "2001:db8::/32", "2001:db8::8/125", "80.0.0.0 - 80.255.255.254", "80.1.0.0/24"].map(
    (text, at) => subnet(at + 5, text),
  ),
  ...["2400:: - 2401:1::", "2400::/32", "255.0.0.0/24", "::/64"].map((text, at) => subnet(at + 10, text)),
]);

it.each<[string, number, object | null]>([
  [
    "lists ancestors below the /8 and wider ones, nearest first",
    4,
    {
      ...{ subnetKey: 4, holderKey: 40, ancestorKeys: [3], widerKeys: [2, 1] },
      country: "CY",
      slash8Key: 66,
    },
  ],
  [
    "takes the first 16 bits of an IPv6 range for its /8",
    6,
    { ancestorKeys: [], widerKeys: [5], slash8Key: 256 + 0x2001, holderKey: null },
  ],
  ["has the same /8 for a more specific IPv6 range", 7, { ancestorKeys: [6], slash8Key: 256 + 0x2001 }],
  ["counts addresses where a range is no CIDR block", 9, { ancestorKeys: [8], widerKeys: [] }],
  ["counts addresses where an IPv6 range is no CIDR block", 11, { ancestorKeys: [], widerKeys: [10] }],
  ["keeps the last IPv4 /8", 12, { slash8Key: 255 }],
  ["apart from the first IPv6 one", 13, { slash8Key: 256 }],
  ["is null for a subnet that the tree does not contain", 99, null],
])("a placement %s", (_, id, expected) => {
  const placement = placementOf(tree, asSubnetId(id));

  if (expected === null) expect(placement).toBeNull();
  else expect(placement).toMatchObject(expected);
});

it("agrees with the tree's own records on random nested ranges of both families", () => {
  const seed = 20260308;
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const blocks = new Map<string, Subnet>();
  for (const family of [4, 6])
    for (let drawn = 0; drawn < 2000; drawn += 1) {
      const ipv4 = `${10 + below(3)}.${below(4)}.${below(8)}.${below(256)}/${4 + below(28)}`;
      const ipv6 = `24${below(3)}0:${below(3)}:${below(4)}:${below(9)}::/${8 + below(90)}`;
      const holder = below(2) === 0 ? null : below(50);
      const text = family === 4 ? ipv4 : ipv6;
      const one = subnet(blocks.size + 1, text, holder, below(3) === 0 ? null : "GR");
      if (!blocks.has(formatRange(one.range))) blocks.set(formatRange(one.range), one);
    }
  const wide = buildSubnetTree(blocks.values());
  const isWide = ({ family, first, last }: IpRange) =>
    BigInt(last) - BigInt(first) + 1n >= 1n << (family === 4 ? 24n : 112n);

  const wrong = [...blocks.values()].filter(({ id, range, holderId, country }) => {
    const above: Subnet[] = [];
    for (let at = wide.get(id); at?.parentId != null; at = above.at(-1)!) above.push(wide.get(at.parentId)!);
    const keys = (wanted: boolean) =>
      above.filter((one) => isWide(one.range) === wanted).map((one) => one.id);
    const slash8Key = range.family === 4 ? range.first >>> 24 : 256 + Number(range.first >> 112n);
    const lists = { ancestorKeys: keys(false), widerKeys: keys(true) };
    return !isDeepStrictEqual(placementOf(wide, id), {
      ...{ subnetKey: id, holderKey: holderId, ...lists, country, slash8Key },
    });
  });

  expect(blocks.size).toBeGreaterThan(1000);
  expect(wrong, `seed ${seed}`).toEqual([]);
});

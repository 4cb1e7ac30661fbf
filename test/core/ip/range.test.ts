import { Netmask } from "netmask";
import { describe, expect, it } from "vitest";
import { formatAddress, type IpAddress, parseAddress } from "#core/ip/address";
import {
  blocksOf,
  firstAddress,
  formatRange,
  type IpRange,
  isUnary,
  lastAddress,
  parseRange,
  prefixLengthOf,
  rangeBetween,
  rangeCovers,
  rangeHolds,
  rangeOfPrefix,
} from "#core/ip/range";
import { seededRandom } from "#core/random";

const ip = (text: string): IpAddress => parseAddress(text) as IpAddress;
const range = (text: string): IpRange => parseRange(text) as IpRange;

describe("parseRange", () => {
  it.each([
    ["192.0.2.0 - 192.0.2.255", "192.0.2.0/24"],
    ["192.0.2.0-192.0.2.9", "192.0.2.0 - 192.0.2.9"],
    ["192.0.2.77/24", "192.0.2.0/24"],
    ["192.0.2.7", "192.0.2.7/32"],
    ["0.0.0.0/0", "0.0.0.0/0"],
    ["2001:db8::/32", "2001:db8::/32"],
    ["2001:db8::1 - 2001:db8::3", "2001:db8::1 - 2001:db8::3"],
    ["::/0", "::/0"],
    ["::1/128", "::1/128"],
    ["::ffff:127.0.0.1/128", "127.0.0.1/32"],
    ["::ffff:127.0.0.1", "127.0.0.1/32"],
    ["::FFFF:7f00:1/104", "127.0.0.0/8"],
    ["0:0:0:0:0:ffff::/96", "0.0.0.0/0"],
    ["::ffff:10.0.0.3 - ::ffff:10.0.0.9", "10.0.0.3 - 10.0.0.9"],
    ["::ffff:10.0.0.3 - 10.0.0.9", "10.0.0.3 - 10.0.0.9"],
    ["::ffff:0:0/95", "::fffe:0:0/95"],
    ["::ffff:0:10.0.0.1/128", "::ffff:0:a00:1/128"],
    ["64:ff9b::10.0.0.0/104", "64:ff9b::a00:0/104"],
    ["2002:a00:1::/48", "2002:a00:1::/48"],
  ])("reads %s, which is written %s", (text, written) => {
    expect(formatRange(range(text))).toBe(written);
  });

  it.each([
    "",
    "-",
    "192.0.2.9 - 192.0.2.0",
    "192.0.2.0 - ::1",
    "192.0.2.0/33",
    "::/129",
    "192.0.2.0/-1",
    "192.0.2.0/",
    "192.0.2.0/2x",
    "10/8",
    "a - b",
  ])("refuses %j", (text) => {
    expect(parseRange(text)).toBeNull();
  });
});

it("a block has the prefix length of its size; a range that is not one aligned block has none", () => {
  expect(prefixLengthOf(range("10.0.0.0/8"))).toBe(8);
  expect(prefixLengthOf(range("10.0.0.0 - 10.0.2.255"))).toBeNull();
  expect(prefixLengthOf(range("10.0.1.0 - 10.0.2.255"))).toBeNull();
  expect(prefixLengthOf(range("2001:db8::/33"))).toBe(33);
});

it("a prefix length outside the family has no range", () => {
  expect(rangeOfPrefix(ip("10.0.0.0"), 33)).toBeNull();
  expect(rangeOfPrefix(ip("10.0.0.0"), -1)).toBeNull();
  expect(rangeOfPrefix(ip("10.0.0.0"), 7.5)).toBeNull();
  expect(rangeOfPrefix(ip("::"), 129)).toBeNull();
});

it("the ends of a range belong to it, their neighbours do not", () => {
  const office = range("192.0.2.4 - 192.0.2.9");

  expect(rangeHolds(office, firstAddress(office))).toBe(true);
  expect(rangeHolds(office, lastAddress(office))).toBe(true);
  expect(rangeHolds(office, ip("192.0.2.3"))).toBe(false);
  expect(rangeHolds(office, ip("192.0.2.10"))).toBe(false);
  expect(rangeHolds(office, ip("::c000:204"))).toBe(false);
});

it("a range covers itself and what is within it, not what crosses it", () => {
  expect(rangeCovers(range("10.0.0.0/8"), range("10.0.0.0/8"))).toBe(true);
  expect(rangeCovers(range("10.0.0.0/8"), range("10.2.0.0/16"))).toBe(true);
  expect(rangeCovers(range("10.0.0.0/8"), range("10.255.0.0 - 11.0.0.0"))).toBe(false);
  expect(rangeCovers(range("0.0.0.0/0"), range("::/128"))).toBe(false);
});

it("only a range of one address is unary", () => {
  expect(isUnary(range("192.0.2.7"))).toBe(true);
  expect(isUnary(range("::1/128"))).toBe(true);
  expect(isUnary(range("192.0.2.6/31"))).toBe(false);
});

it("two addresses of different families, or in reverse, make no range", () => {
  expect(rangeBetween(ip("1.2.3.4"), ip("::1"))).toBeNull();
  expect(rangeBetween(ip("1.2.3.4"), ip("1.2.3.3"))).toBeNull();
});

it("first, last and membership of 1,000 random IPv4 blocks are what netmask says", () => {
  const draw = seededRandom(4632);
  const octet = () => Math.floor(draw() * 256);

  for (let count = 0; count < 1000; count += 1) {
    const text = `${octet()}.${octet()}.${octet()}.${octet()}/${1 + Math.floor(draw() * 32)}`;
    const block = new Netmask(text);
    const [address = "", length] = text.split("/");
    const range = rangeOfPrefix(parseAddress(address)!, Number(length))!;
    expect(parseRange(text)).toEqual(range);
    const other = `${octet()}.${octet()}.${octet()}.${octet()}`;

    expect(formatRange(range), text).toBe(`${block.base}/${block.bitmask}`);
    expect(formatAddress(firstAddress(range)), text).toBe(block.base);
    expect(formatAddress(lastAddress(range)), text).toBe(block.broadcast ?? block.last);
    expect(rangeHolds(range, parseAddress(other)!), `${other} in ${text}`).toBe(block.contains(other));
  }
});

it.each([
  ["192.0.2.0 - 192.0.2.9", ["192.0.2.0/29", "192.0.2.8/31"]],
  [
    "10.0.0.1 - 10.0.1.0",
    [
      "10.0.0.1/32",
      "10.0.0.2/31",
      "10.0.0.4/30",
      "10.0.0.8/29",
      "10.0.0.16/28",
      "10.0.0.32/27",
      "10.0.0.64/26",
      "10.0.0.128/25",
      "10.0.1.0/32",
    ],
  ],
  ["0.0.0.0/0", ["0.0.0.0/0"]],
  ["255.255.255.254 - 255.255.255.255", ["255.255.255.254/31"]],
])("%s consists of %j", (text, blocks) => {
  expect(blocksOf(parseRange(text) as Parameters<typeof blocksOf>[0])).toEqual(blocks);
});

/** CIDR arithmetic compared with netmask on seeded random blocks, and the blocks of other ranges. */
import { Netmask } from "netmask";
import { expect, it } from "vitest";
import { formatAddress, parseAddress } from "#core/ip/address";
import {
  blocksOf,
  firstAddress,
  formatRange,
  lastAddress,
  parseRange,
  rangeHolds,
  rangeOfPrefix,
} from "#core/ip/range";
import { seededRandom } from "#core/random";

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

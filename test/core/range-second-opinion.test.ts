/** CIDR arithmetic, held against netmask on seeded random blocks. */
import { Netmask } from "netmask";
import { expect, it } from "vitest";
import { formatAddress, parseAddress } from "#core/ip/address";
import { firstAddress, formatRange, lastAddress, parseRange, rangeHolds } from "#core/ip/range";
import { seededRandom } from "#core/random";

it("first, last and membership of 1,000 random IPv4 blocks are what netmask says", () => {
  const draw = seededRandom(4632);
  const octet = () => Math.floor(draw() * 256);

  for (let count = 0; count < 1000; count += 1) {
    const text = `${octet()}.${octet()}.${octet()}.${octet()}/${1 + Math.floor(draw() * 32)}`;
    const block = new Netmask(text);
    const range = parseRange(text)!;
    const other = `${octet()}.${octet()}.${octet()}.${octet()}`;

    expect(formatRange(range), text).toBe(`${block.base}/${block.bitmask}`);
    expect(formatAddress(firstAddress(range)), text).toBe(block.base);
    expect(formatAddress(lastAddress(range)), text).toBe(block.broadcast ?? block.last);
    expect(rangeHolds(range, parseAddress(other)!), `${other} in ${text}`).toBe(block.contains(other));
  }
});

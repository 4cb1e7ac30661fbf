/** Which tile an address or a block lies on, and what a tile covers. */
import { expect, it } from "vitest";
import { ipv4Space, ipv6Space, positionOf, tileAt, tileHolding, tileText } from "#coordinator/explore/space";
import { parseAddress } from "#core/ip/address";
import { parseRange } from "#core/ip/range";

it.each([
  ["0.0.0.0/0", "0.0.0.0/0"],
  ["64.0.0.0/4", "64.0.0.0/4"],
  ["64.0.0.0/5", "64.0.0.0/4"],
  ["10.0.0.0 - 10.0.0.9", "10.0.0.0/16"],
  ["192.0.2.1", "192.0.0.0/16"],
  ["2a00::/12", "2a00::/11"],
  ["2001:db8::1", "2001:db8::/39"],
  ["::/0", "2000::/3"],
])("%s is looked at on the tile of %s", (asked, tile) => {
  const found = tileHolding(parseRange(asked)!);

  expect(found && tileText(found)).toBe(tile);
});

it.each(["fe80::/10", "::1", "4000::/3"])("%s is on no tile", (asked) => {
  expect(tileHolding(parseRange(asked)!)).toBeNull();
});

it("has tiles down to single addresses and /55 blocks, and none beyond", () => {
  expect(tileAt(ipv4Space, 8, 4 ** 8 - 1)).not.toBeNull();
  expect(tileAt(ipv4Space, 9, 0)).toBeNull();
  expect(tileAt(ipv4Space, 1, 4)).toBeNull();
  expect(tileAt(ipv6Space, 18, 0)).not.toBeNull();
  expect(tileAt(ipv6Space, 0.5, 0)).toBeNull();
});

it("counts IPv6 positions in /55 blocks from 2000::", () => {
  const at = (text: string) => positionOf(ipv6Space, parseAddress(text)!);

  expect([at("2000::"), at("2000:0:0:200::"), at("1fff:ffff:ffff:ffff::") < 0, at("4000::")]).toEqual([
    0,
    1,
    true,
    2 ** 52,
  ]);
});

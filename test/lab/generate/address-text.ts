/** Addresses as registries write them, from numbers, for millions of objects. */
import { ipv4Text } from "#ops/world/registry-text";
import type { AddressBlock } from "./address-blocks.ts";
import type { Span } from "./slot.ts";

/** `8-0-144-3`, as in ARIN's handles. */
export function dashedIpv4Text(address: number): string {
  return ipv4Text(address).replaceAll(".", "-");
}

/** The first address of a /64, counted from the block's start: `2a00:0:12::`. */
export function ipv6Text(block: AddressBlock, unit: number): string {
  const high = block.top + Math.floor(unit / 2 ** 32);
  const low = unit % 2 ** 32;
  const groups = [high >>> 16, high & 0xffff, low >>> 16, low & 0xffff];
  while (groups.length > 1 && groups.at(-1) === 0) groups.pop();
  return `${groups.map((group) => group.toString(16)).join(":")}::`;
}

/** The last address of a /64. */
export function lastIpv6Text(block: AddressBlock, unit: number): string {
  const high = block.top + Math.floor(unit / 2 ** 32);
  const low = unit % 2 ** 32;
  const groups = [high >>> 16, high & 0xffff, low >>> 16, low & 0xffff].map((group) => group.toString(16));
  return `${groups.join(":")}:ffff:ffff:ffff:ffff`;
}

/** Of an aligned block; units are /64s. */
export function prefixLengthOfSpan(family: 4 | 6, { bits }: Span): number {
  return (family === 4 ? 32 : 64) - bits;
}

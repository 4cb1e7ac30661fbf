/**
 * Addresses as registries write them, from numbers, for millions of objects: plain, in capitals, zero-padded
 * (ARIN), shortened blocks (LACNIC).
 */
import type { AddressBlock } from "./address-blocks.ts";
import type { Span } from "./slot.ts";

const octets = Array.from({ length: 256 }, (_, octet) => String(octet));
const paddedOctets = octets.map((octet) => octet.padStart(3, "0"));

export function ipv4Text(address: number): string {
  return `${octets[address >>> 24]}.${octets[(address >>> 16) & 255]}.${octets[(address >>> 8) & 255]}.${octets[address & 255]}`;
}

/** `008.000.144.003`. */
export function paddedIpv4Text(address: number): string {
  return `${paddedOctets[address >>> 24]}.${paddedOctets[(address >>> 16) & 255]}.${paddedOctets[(address >>> 8) & 255]}.${paddedOctets[address & 255]}`;
}

/** `200.3.12/22`: octets behind the prefix are left out, at least one stays. */
export function shortBlockText(address: number, prefixLength: number): string {
  if (prefixLength > 24) return `${ipv4Text(address)}/${prefixLength}`;
  let shown = octets[address >>> 24] as string;
  if (prefixLength > 8) shown += `.${octets[(address >>> 16) & 255]}`;
  if (prefixLength > 16) shown += `.${octets[(address >>> 8) & 255]}`;
  return `${shown}/${prefixLength}`;
}

/** `8-0-144-3`, as in ARIN's handles. */
export function dashedIpv4Text(address: number): string {
  return `${octets[address >>> 24]}-${octets[(address >>> 16) & 255]}-${octets[(address >>> 8) & 255]}-${octets[address & 255]}`;
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

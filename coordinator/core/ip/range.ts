/**
 * Ranges of addresses, including the first and the last. A registered range need not be a CIDR block: RIPE and APNIC register
 * `a - b`, and delegated statistics give a count that need not be a power of two.
 */
import { long2ip, Netmask } from "netmask";
import { formatAddress, type IpAddress, parseAddress, unmapAddress } from "./address.ts";

interface Ipv4Range {
  readonly family: 4;
  readonly first: number;
  readonly last: number;
}
interface Ipv6Range {
  readonly family: 6;
  readonly first: bigint;
  readonly last: bigint;
}
export type IpRange = Ipv4Range | Ipv6Range;

/**
 * Reads `a - b`, `a/prefix` (host bits are cleared) or one address; returns null when the text is none of these. An
 * IPv4-mapped range becomes IPv4, as an address does, because it names the same hosts.
 */
export function parseRange(text: string): IpRange | null {
  const range = rangeAsWritten(text);
  return range && unmapRange(range);
}

/** As parseRange, but for blocks of the address space itself: `::ffff:0:0/96` stays IPv6. */
export function rangeAsWritten(text: string): IpRange | null {
  const dash = text.indexOf("-");
  if (dash >= 0) {
    const first = parseAddress(text.slice(0, dash).trim());
    const last = parseAddress(text.slice(dash + 1).trim());
    return (
      first && last && (rangeBetween(first, last) ?? rangeBetween(unmapAddress(first), unmapAddress(last)))
    );
  }
  const slash = text.indexOf("/");
  if (slash < 0) {
    const address = parseAddress(text.trim());
    return address ? rangeBetween(address, address) : null;
  }
  const address = parseAddress(text.slice(0, slash).trim());
  const prefixText = text.slice(slash + 1).trim();
  if (!address || !/^\d{1,3}$/.test(prefixText)) return null;
  const length = Number(prefixText);
  if (address.family === 6) return rangeOfPrefix(address, length);
  return length > 32 ? null : rangeOfBlock(new Netmask(`${formatAddress(address)}/${length}`));
}

/** The input was already checked, because netmask also accepts octal octets. */
function rangeOfBlock({ netLong, size }: Netmask): Ipv4Range {
  return { family: 4, first: netLong, last: netLong + size - 1 };
}

/** Splits an IPv4 range into the fewest CIDR blocks, for firewalls and routes. */
export function blocksOf({ first, last }: Ipv4Range): readonly string[] {
  const blocks: string[] = [];
  for (let at = first; at <= last; ) {
    let length = 0;
    let block = new Netmask(`${long2ip(at)}/0`);
    while (block.netLong !== at || at + block.size - 1 > last)
      block = new Netmask(`${long2ip(at)}/${++length}`);
    blocks.push(block.toString());
    at += block.size;
  }
  return blocks;
}

/** Returns the IPv4 range inside an IPv4-mapped one, or any other range unchanged. */
export function unmapRange(range: IpRange): IpRange {
  if (range.family === 4) return range;
  return rangeBetween(unmapAddress(firstAddress(range)), unmapAddress(lastAddress(range))) ?? range;
}

/** Returns the range from one address to another, or null when the families differ or the order is reversed. */
export function rangeBetween(first: IpAddress, last: IpAddress): IpRange | null {
  if (first.family === 4 && last.family === 4) {
    return first.value <= last.value ? { family: 4, first: first.value, last: last.value } : null;
  }
  if (first.family === 6 && last.family === 6) {
    return first.value <= last.value ? { family: 6, first: first.value, last: last.value } : null;
  }
  return null;
}

/** Returns the block of `prefixLength` bits that holds the address, or null when the length is out of range. */
export function rangeOfPrefix(address: IpAddress, prefixLength: number): IpRange | null {
  if (!Number.isInteger(prefixLength) || prefixLength < 0) return null;
  if (address.family === 4) {
    if (prefixLength > 32) return null;
    const size = 2 ** (32 - prefixLength);
    const first = Math.floor(address.value / size) * size;
    return { family: 4, first, last: first + size - 1 };
  }
  if (prefixLength > 128) return null;
  const shift = BigInt(128 - prefixLength);
  const first = (address.value >> shift) << shift;
  return { family: 6, first, last: first + (1n << shift) - 1n };
}

export function firstAddress(range: IpRange): IpAddress {
  return range.family === 4 ? { family: 4, value: range.first } : { family: 6, value: range.first };
}

export function lastAddress(range: IpRange): IpAddress {
  return range.family === 4 ? { family: 4, value: range.last } : { family: 6, value: range.last };
}

export function rangeHolds(range: IpRange, address: IpAddress): boolean {
  return range.family === address.family && range.first <= address.value && address.value <= range.last;
}

export function rangeCovers(outer: IpRange, inner: IpRange): boolean {
  return outer.family === inner.family && outer.first <= inner.first && inner.last <= outer.last;
}

/** Whether the range is a single address, for which the paper (section 4.3) uses its parent. */
export function isUnary(range: IpRange): boolean {
  return range.first === range.last;
}

/** Returns the prefix length if the range is one aligned CIDR block, otherwise null. */
export function prefixLengthOf(range: IpRange): number | null {
  const bits = range.family === 4 ? 32 : 128;
  const first = BigInt(range.first);
  const size = BigInt(range.last) - first + 1n;
  if ((size & (size - 1n)) !== 0n || first % size !== 0n) return null;
  return bits - (size.toString(2).length - 1);
}

/** Formats a CIDR block as `192.0.2.0/24`, any other range as `192.0.2.0 - 192.0.2.9`. */
export function formatRange(range: IpRange): string {
  const prefixLength = prefixLengthOf(range);
  if (prefixLength !== null) return `${formatAddress(firstAddress(range))}/${prefixLength}`;
  return `${formatAddress(firstAddress(range))} - ${formatAddress(lastAddress(range))}`;
}

/**
 * IP addresses as values: an IPv4 address is an unsigned 32-bit number, an IPv6 address a bigint.
 * Parsing is strict (RFC 6943 section 3.1.1 explains why loose IPv4 spellings are a hazard): four decimal
 * octets without leading zeros, or an RFC 4291 section 2.2 IPv6 text without a zone. Registry files have
 * looser spellings of their own; rir-import normalises those before they come here. Written by hand because
 * a tree of millions of ranges is read through it: about four times faster than `ip-address`, which the tests
 * keep as the cross-check.
 */

export interface Ipv4Address {
  readonly family: 4;
  readonly value: number;
}
export interface Ipv6Address {
  readonly family: 6;
  readonly value: bigint;
}
export type IpAddress = Ipv4Address | Ipv6Address;

/** `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255` */
const maxAddressLength = 45;
const ipv4Text = /^(?:0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])(?:\.(?:0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])){3}$/;
const groupText = /^[0-9a-f]{1,4}$/i;

/** The address, or null when the text is not exactly one. Never throws. */
export function parseAddress(text: string): IpAddress | null {
  if (text.length > maxAddressLength) return null;
  if (ipv4Text.test(text)) return { family: 4, value: parseOctets(text) };
  const groups = text.includes(":") ? parseGroups(text) : null;
  return groups && { family: 6, value: joinGroups(groups) };
}

/** Canonical text: dotted decimal, or RFC 5952 section 4 for IPv6 (embedded IPv4 addresses in hexadecimal too). */
export function formatAddress(address: IpAddress): string {
  return address.family === 4 ? formatOctets(address.value) : formatGroups(address.value);
}

/** Order by family (IPv4 first), then by value: the order of Postgres' inet for single addresses. */
export function compareAddresses(a: IpAddress, b: IpAddress): number {
  if (a.family !== b.family) return a.family - b.family;
  return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
}

/**
 * The IPv4 address inside an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2); any other address
 * unchanged.
 */
export function unmapAddress(address: IpAddress): IpAddress {
  if (address.family === 6 && address.value >> 32n === 0xffffn) {
    return { family: 4, value: Number(address.value & 0xffffffffn) };
  }
  return address;
}

function parseOctets(text: string): number {
  const [a, b, c, d] = text.split(".").map(Number) as [number, number, number, number];
  return ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
}

function formatOctets(value: number): string {
  return `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;
}

/** The eight 16-bit groups; `::` stands for one group or more (RFC 4291), and once at most. */
function parseGroups(text: string): number[] | null {
  const gap = text.indexOf("::");
  if (gap < 0) {
    const groups = parseGroupList(text, true);
    return groups?.length === 8 ? groups : null;
  }
  const head = parseGroupList(text.slice(0, gap), false);
  const tail = parseGroupList(text.slice(gap + 2), true);
  if (!head || !tail || head.length + tail.length > 7) return null;
  return [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

/** Groups between colons; the last may be a dotted IPv4 address where `dotted` allows it. */
function parseGroupList(text: string, dotted: boolean): number[] | null {
  if (text === "") return [];
  const groups: number[] = [];
  const parts = text.split(":");
  for (const [at, part] of parts.entries()) {
    if (groupText.test(part)) groups.push(Number.parseInt(part, 16));
    else if (dotted && at === parts.length - 1 && ipv4Text.test(part)) {
      const value = parseOctets(part);
      groups.push(value >>> 16, value & 0xffff);
    } else return null;
  }
  return groups;
}

function joinGroups(groups: readonly number[]): bigint {
  const [a, b, c, d, e, f, g, h] = groups as [number, number, number, number, number, number, number, number];
  const high = (BigInt(((a << 16) | b) >>> 0) << 32n) | BigInt(((c << 16) | d) >>> 0);
  const low = (BigInt(((e << 16) | f) >>> 0) << 32n) | BigInt(((g << 16) | h) >>> 0);
  return (high << 64n) | low;
}

function formatGroups(value: bigint): string {
  const digits = value.toString(16).padStart(32, "0");
  const groups: string[] = [];
  for (let at = 0; at < 32; at += 4) groups.push(digits.slice(at, at + 4).replace(/^0{1,3}/, ""));
  const gap = longestZeroRun(groups);
  if (gap.length < 2) return groups.join(":");
  return `${groups.slice(0, gap.start).join(":")}::${groups.slice(gap.start + gap.length).join(":")}`;
}

/** The first of the longest runs of zero groups: what RFC 5952 section 4.2 shortens to `::`. */
function longestZeroRun(groups: readonly string[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  for (let start = 0; start < groups.length; ) {
    let end = start;
    while (groups[end] === "0") end += 1;
    if (end - start > best.length) best = { start, length: end - start };
    start = end + 1;
  }
  return best;
}

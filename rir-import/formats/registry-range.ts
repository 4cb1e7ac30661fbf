/**
 * The spellings of ranges that registry files use and the rest of the project refuses: leading zeros
 * (`010.0.00.000`, ARIN's `003.255.255.255`), LACNIC's short blocks (`200.3.12/22`), IANA's `041/8`,
 * trailing `#` comments, host bits after a prefix. Octets are always decimal here, never octal.
 */

import { parseAddress } from "#core/ip/address";
import { type IpRange, rangeOfPrefix, unmapRange } from "#core/ip/range";

export type RangeReading = { readonly range: IpRange } | { readonly reason: string };

/** Reads `a - b`, `a/prefix` or one address, IPv4 or IPv6, in the spellings above. */
export function readRegistryRange(text: string): RangeReading {
  const hash = text.indexOf("#");
  const value = (hash < 0 ? text : text.slice(0, hash)).trim();
  if (value === "") return { reason: "no range" };
  if (value.length > 100) return { reason: "not an address range" };
  return value.includes(":") ? readIpv6Range(value) : readIpv4Range(value);
}

/** The range between two addresses that are spelled apart (ARIN's startAddress and endAddress). */
export function readRangeBetween(first: string, last: string): RangeReading {
  const [from, to] = [readIpv4(first), readIpv4(last)];
  if (from >= 0 && to >= from) return { range: { family: 4, first: from, last: to } };
  return readRegistryRange(`${first} - ${last}`);
}

/** A dotted-decimal address, leading zeros allowed; −1 when it is none. */
export function readIpv4(text: string): number {
  return readOctets(text, 0, text.length, 4);
}

function readIpv4Range(value: string): RangeReading {
  const dash = value.indexOf("-");
  if (dash >= 0) {
    const first = readOctets(value, 0, dash, 4);
    const last = readOctets(value, dash + 1, value.length, 4);
    if (first < 0 || last < 0) return { reason: "not an address range" };
    return first <= last ? { range: { family: 4, first, last } } : { reason: "the range is reversed" };
  }
  const slash = value.indexOf("/");
  if (slash < 0) {
    const address = readOctets(value, 0, value.length, 4);
    return address < 0
      ? { reason: "not an address range" }
      : { range: { family: 4, first: address, last: address } };
  }
  const address = readOctets(value, 0, slash, 1);
  if (address < 0) return { reason: "not an address range" };
  const prefixLength = readPrefixLength(value.slice(slash + 1));
  const range = rangeOfPrefix({ family: 4, value: address }, prefixLength);
  return range ? { range } : { reason: "the prefix length is not between 0 and 32" };
}

function readIpv6Range(value: string): RangeReading {
  const dash = value.indexOf("-");
  if (dash >= 0) return readIpv6Ends(value.slice(0, dash).trim(), value.slice(dash + 1).trim());
  const slash = value.indexOf("/");
  const address = readIpv6((slash < 0 ? value : value.slice(0, slash)).trim());
  if (address === null) return { reason: "not an address range" };
  const prefixLength = slash < 0 ? 128 : readPrefixLength(value.slice(slash + 1));
  const range = rangeOfPrefix({ family: 6, value: address }, prefixLength);
  return range ? { range: unmapRange(range) } : { reason: "the prefix length is not between 0 and 128" };
}

function readIpv6Ends(firstText: string, lastText: string): RangeReading {
  const first = readIpv6(firstText);
  const last = readIpv6(lastText);
  if (first === null || last === null) return { reason: "not an address range" };
  return first <= last
    ? { range: unmapRange({ family: 6, first, last }) }
    : { reason: "the range is reversed" };
}

function readPrefixLength(text: string): number {
  return /^\s*\d{1,3}\s*$/.test(text) ? Number(text) : -1;
}

/**
 * At least `fewest` and at most four decimal octets between two positions of a text, spaces around them
 * allowed; missing octets are zero. −1 when it is anything else. By character codes: this runs once or
 * twice per object of a ten-million-object file.
 */
function readOctets(text: string, start: number, end: number, fewest: number): number {
  let from = start;
  let to = end;
  while (from < to && isBlank(text.charCodeAt(from))) from++;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
  let value = 0;
  let octets = 0;
  let octet = -1;
  let digits = 0;
  for (let index = from; index <= to; index++) {
    const code = index < to ? text.charCodeAt(index) : dot;
    if (code >= zero && code <= nine && digits < 3) {
      octet = (octet < 0 ? 0 : octet * 10) + code - zero;
      digits++;
    } else if (code === dot && octet >= 0 && octet <= 255 && octets < 4) {
      value = value * 256 + octet;
      octets++;
      octet = -1;
      digits = 0;
    } else {
      return -1;
    }
  }
  return octets < fewest ? -1 : value * 256 ** (4 - octets);
}

const dot = 0x2e;
const zero = 0x30;
const nine = 0x39;
const isBlank = (code: number) => code === 0x20 || code === 0x09;

// Reads IPv6 addresses in hexadecimal groups, the only form that registries write, some ten times as fast
// as the general parser: a database has a million of them. RFC 4291 section 2.2, forms 1 and 2; leading zeros
// and capitals allowed. The form with dotted decimal at its end goes to the general parser.

const groups = new Uint16Array(8);
const colon = 0x3a;

/** The address as a number, or null when the text is not exactly one. */
export function readIpv6(text: string): bigint | null {
  if (text.includes(".")) return general(text);
  if (text.length < 2 || text.length > 39) return null;
  const written = readGroups(text);
  return written ? toBigInt() : null;
}

function general(text: string): bigint | null {
  const address = parseAddress(text);
  return address?.family === 6 ? address.value : null;
}

/** Fills `groups`; false when the text is no address. */
function readGroups(text: string): boolean {
  let count = 0;
  /** Where `::` stood: the number of groups before it. */
  let gap = -1;
  let position = 0;
  if (text.charCodeAt(0) === colon) {
    if (text.charCodeAt(1) !== colon) return false;
    gap = 0;
    position = 2;
  }
  while (position < text.length) {
    const end = readGroup(text, position, count);
    if (end < 0) return false;
    count++;
    if (end === text.length) return closeGap(count, gap);
    if (text.charCodeAt(end) !== colon || count === 8) return false;
    position = end + 1;
    if (text.charCodeAt(position) !== colon) {
      if (position === text.length) return false;
      continue;
    }
    if (gap >= 0) return false;
    gap = count;
    position++;
  }
  return closeGap(count, gap);
}

/** One to four hexadecimal digits into `groups[index]`; the position behind them, or −1. */
function readGroup(text: string, start: number, index: number): number {
  let value = 0;
  let position = start;
  for (; position < text.length && position < start + 4; position++) {
    const digit = hexDigit(text.charCodeAt(position));
    if (digit < 0) break;
    value = value * 16 + digit;
  }
  if (position === start || index > 7) return -1;
  groups[index] = value;
  return position;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Moves the groups behind `::` to the end and fills the gap, which stands for one group or more, with zeros. */
function closeGap(count: number, gap: number): boolean {
  if (gap < 0) return count === 8;
  if (count > 7) return false;
  groups.copyWithin(8 - (count - gap), gap, count);
  groups.fill(0, gap, 8 - (count - gap));
  return true;
}

function toBigInt(): bigint {
  const half = (at: number) =>
    (BigInt((groups[at] as number) * 0x10000 + (groups[at + 1] as number)) << 32n) |
    BigInt((groups[at + 2] as number) * 0x10000 + (groups[at + 3] as number));
  return (half(0) << 64n) | half(4);
}

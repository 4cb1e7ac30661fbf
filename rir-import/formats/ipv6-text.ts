/**
 * Reads IPv6 addresses in hexadecimal groups, the only form that registries write, some ten times as fast
 * as the general parser: a database has a million of them. RFC 4291 section 2.2, forms 1 and 2; leading zeros
 * and capitals allowed. The form with dotted decimal at its end goes to the general parser.
 */
import { parseAddress } from "#core/ip/address";

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

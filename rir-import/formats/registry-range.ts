/**
 * The spellings of ranges that registry files use and the rest of the project refuses: leading zeros
 * (`010.0.00.000`, ARIN's `003.255.255.255`), LACNIC's short blocks (`200.3.12/22`), IANA's `041/8`,
 * trailing `#` comments, host bits after a prefix. Octets are always decimal here, never octal.
 */
import { type IpRange, rangeOfPrefix } from "#core/ip/range";
import { readIpv6 } from "./ipv6-text.ts";

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
  return range ? { range } : { reason: "the prefix length is not between 0 and 128" };
}

function readIpv6Ends(firstText: string, lastText: string): RangeReading {
  const first = readIpv6(firstText);
  const last = readIpv6(lastText);
  if (first === null || last === null) return { reason: "not an address range" };
  return first <= last ? { range: { family: 6, first, last } } : { reason: "the range is reversed" };
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

/**
 * Reads spellings of ranges that only registry files use: leading zeros (`010.0.00.000`, ARIN's `003.255.255.255`),
 * LACNIC's short blocks (`200.3.12/22`), IANA's `041/8`, trailing `#` comments, and host bits after a prefix. Octets
 * are always decimal, never octal.
 */

import { parseAddress } from "#core/ip/address";
import { type IpRange, rangeOfPrefix, unmapRange } from "#core/ip/range";

type RangeReading = { readonly range: IpRange } | { readonly reason: string };

const noRange = { reason: "not an address range" };

export function readRegistryRange(text: string): RangeReading {
  const value = text.split("#", 1)[0]!.trim();
  if (value === "") return { reason: "no range" };
  if (value.length > 100) return noRange;
  const dash = value.indexOf("-");
  if (dash >= 0) return readRangeBetween(value.slice(0, dash), value.slice(dash + 1));
  const slash = value.indexOf("/");
  const [address, length] = slash < 0 ? [value, null] : [value.slice(0, slash), value.slice(slash + 1)];
  return value.includes(":") ? readIpv6Range(address, length) : readIpv4Range(address, length);
}

export function readRangeBetween(from: string, to: string): RangeReading {
  if (from.includes(":")) {
    const [first, last] = [readIpv6(from.trim()), readIpv6(to.trim())];
    if (first === null || last === null) return noRange;
    return first <= last
      ? { range: unmapRange({ family: 6, first, last }) }
      : { reason: "the range is reversed" };
  }
  const [first, last] = [readIpv4(from), readIpv4(to)];
  if (first < 0 || last < 0) return noRange;
  return first <= last ? { range: { family: 4, first, last } } : { reason: "the range is reversed" };
}

function readIpv4Range(address: string, length: string | null): RangeReading {
  const value = readOctets(address, length === null ? 4 : 1);
  if (value < 0) return noRange;
  const range = rangeOfPrefix({ family: 4, value }, length === null ? 32 : readPrefixLength(length));
  return range ? { range } : { reason: "the prefix length is not between 0 and 32" };
}

function readIpv6Range(address: string, length: string | null): RangeReading {
  const value = readIpv6(address.trim());
  if (value === null) return noRange;
  const range = rangeOfPrefix({ family: 6, value }, length === null ? 128 : readPrefixLength(length));
  return range ? { range: unmapRange(range) } : { reason: "the prefix length is not between 0 and 128" };
}

const readPrefixLength = (text: string) => (/^\s*\d{1,3}\s*$/.test(text) ? Number(text) : -1);

/** Allows leading zeros. Returns −1 for an invalid address. */
export const readIpv4 = (text: string) => readOctets(text, 4);

const octetsForm = /^[ \t]*(\d{1,3})(?:\.(\d{1,3})(?:\.(\d{1,3})(?:\.(\d{1,3}))?)?)?[ \t]*$/;

/** Reads `fewest` to four decimal octets and takes missing ones as zero. Returns −1 for anything else. */
function readOctets(text: string, fewest: number): number {
  const octets = octetsForm.exec(text);
  if (octets === null || octets[fewest] === undefined) return -1;
  let value = 0;
  for (let at = 1; at <= 4; at++) {
    const octet = Number(octets[at] ?? 0);
    if (octet > 255) return -1;
    value = value * 256 + octet;
  }
  return value;
}

export function readIpv6(text: string): bigint | null {
  const address = parseAddress(text);
  return address?.family === 6 ? address.value : null;
}

/**
 * Addresses that are never probed and never crawled: the IANA special-purpose registries (RFC 6890, as of 2025), multicast,
 * what cloud platforms serve to their own machines, and for IPv6 everything outside the global unicast space 2000::/3. The
 * coordinator's admission and the crawler's address guard use the same list. Blocks that the registries mark "globally
 * reachable" (AS112, AMT, ORCHIDv2 …) stay allowed, also inside a refused block. Departure: every form that carries an IPv4
 * address (mapped, compatible, translated, NAT64, 6to4, Teredo) is refused whole, even with a public address inside: The host
 * that it names has an address of its own, and a second name would split its politeness limits and hide its subnet.
 */

import type { IpAddress } from "./address.ts";
import {
  type IpRange,
  parseRange,
  prefixLengthOf,
  rangeAsWritten,
  rangeCovers,
  rangeHolds,
} from "./range.ts";

/** Prefix, name in the registry and document of each block. A null name marks a globally reachable block inside a refused one. */
const blocks: readonly (readonly [prefix: string, name: string | null, reference: string])[] = [
  ["0.0.0.0/8", "this network", "RFC 791"],
  ["10.0.0.0/8", "private use", "RFC 1918"],
  ["100.64.0.0/10", "shared address space (carrier-grade NAT)", "RFC 6598"],
  ["127.0.0.0/8", "loopback", "RFC 1122"],
  ["169.254.0.0/16", "link-local (and cloud metadata)", "RFC 3927"],
  ["172.16.0.0/12", "private use", "RFC 1918"],
  ["192.0.0.0/24", "IETF protocol assignments", "RFC 6890"],
  ["192.0.0.9/32", null, "RFC 7723"],
  ["192.0.0.10/32", null, "RFC 8155"],
  ["192.0.2.0/24", "documentation (TEST-NET-1)", "RFC 5737"],
  ["192.88.99.0/24", "deprecated 6to4 relay anycast", "RFC 7526"],
  ["192.168.0.0/16", "private use", "RFC 1918"],
  ["198.18.0.0/15", "benchmarking", "RFC 2544"],
  ["198.51.100.0/24", "documentation (TEST-NET-2)", "RFC 5737"],
  ["203.0.113.0/24", "documentation (TEST-NET-3)", "RFC 5737"],
  // Services that cloud platforms offer only to their own machines and that no other block covers. Metadata at 169.254.169.254
  // and fd00:ec2::254 (AWS), 100.100.100.200 (Alibaba) and 192.0.0.192 (Oracle) is covered. Source: PayloadsAllTheThings,
  // Server Side Request Forgery/SSRF-Cloud-Instances.md (November 2026).
  ["168.63.129.16/32", "Azure platform", "Microsoft, What is IP address 168.63.129.16"],
  ["199.36.153.4/30", "Google Cloud, restricted.googleapis.com", "Private Google Access"],
  ["199.36.153.8/30", "Google Cloud, private.googleapis.com", "Private Google Access"],
  ["224.0.0.0/4", "multicast", "RFC 5771"],
  ["240.0.0.0/4", "reserved for future use", "RFC 1112"],
  ["255.255.255.255/32", "limited broadcast", "RFC 8190"],

  ["::/3", "outside the global unicast space", "RFC 4291"],
  ["4000::/2", "outside the global unicast space", "RFC 4291"],
  ["8000::/1", "outside the global unicast space", "RFC 4291"],
  ["::/96", "IPv4-compatible (deprecated)", "RFC 4291"],
  ["::/128", "unspecified", "RFC 4291"],
  ["::1/128", "loopback", "RFC 4291"],
  ["::ffff:0:0/96", "IPv4-mapped", "RFC 4291"],
  ["::ffff:0:0:0/96", "IPv4-translated (deprecated)", "RFC 2765"],
  ["64:ff9b::/96", "NAT64 (IPv4-IPv6 translation)", "RFC 6052"],
  ["64:ff9b:1::/48", "NAT64 (local use)", "RFC 8215"],
  ["100::/64", "discard only", "RFC 6666"],
  ["100:0:0:1::/64", "dummy prefix", "RFC 9780"],
  ["2001::/23", "IETF protocol assignments", "RFC 2928"],
  ["2001::/32", "Teredo", "RFC 4380"],
  ["2001:1::1/128", null, "RFC 7723"],
  ["2001:1::2/128", null, "RFC 8155"],
  ["2001:1::3/128", null, "RFC 9665"],
  ["2001:2::/48", "benchmarking", "RFC 5180"],
  ["2001:3::/32", null, "RFC 7450"],
  ["2001:4:112::/48", null, "RFC 7535"],
  ["2001:10::/28", "deprecated ORCHID", "RFC 4843"],
  ["2001:20::/28", null, "RFC 7343"],
  ["2001:30::/28", null, "RFC 9374"],
  ["2001:db8::/32", "documentation", "RFC 3849"],
  ["2002::/16", "6to4", "RFC 3056"],
  ["2600:2d00:2:1000::/64", "Google Cloud, restricted.googleapis.com", "Private Google Access"],
  ["2600:2d00:2:2000::/64", "Google Cloud, private.googleapis.com", "Private Google Access"],
  ["3fff::/20", "documentation", "RFC 9637"],
  ["5f00::/16", "segment routing SIDs", "RFC 9602"],
  ["fc00::/7", "unique local", "RFC 4193"],
  ["fe80::/10", "link-local", "RFC 4291"],
  ["fec0::/10", "site-local (deprecated)", "RFC 3879"],
  ["ff00::/8", "multicast", "RFC 4291"],
];

interface Block {
  readonly range: IpRange;
  /** Prefix, name and document as text; null for a globally reachable block. */
  readonly words: string | null;
}

const ipv4Blocks = readBlocks(4);
const ipv6Blocks = readBlocks(6);
const ipv4Touched = touchedBy(ipv4Blocks, 32);
const ipv6Touched = touchedBy(ipv6Blocks, 128);

/** Returns the special-purpose block of the address, such as `10.0.0.0/8 private use (RFC 1918)`, or null. */
export function specialPurposeOf(address: IpAddress): string | null {
  const candidates = address.family === 4 ? ipv4Blocks : ipv6Blocks;
  return candidates.find((block) => rangeHolds(block.range, address))?.words ?? null;
}

/** `true` allows every special-purpose address, a list only those in its ranges (such as `10.0.0.0/8`). */
export type AllowedSpecialPurpose = boolean | readonly string[];

const readRanges = new WeakMap<readonly string[], readonly IpRange[]>();

/** Returns the special-purpose block because of which the address is refused, in words, or null when it is allowed. */
export function refusedBlockOf(address: IpAddress, allowed: AllowedSpecialPurpose): string | null {
  const block = specialPurposeOf(address);
  if (block === null || allowed === true) return null;
  if (allowed === false) return block;
  let ranges = readRanges.get(allowed);
  if (ranges === undefined) {
    ranges = allowed.flatMap((text) => parseRange(text) ?? []);
    readRanges.set(allowed, ranges);
  }
  return ranges.some((range) => rangeHolds(range, address)) ? null : block;
}

/** Returns the refused special-purpose block that holds the whole range, in words, or null. */
export function specialPurposeOfRange(range: IpRange): string | null {
  const candidates = range.family === 4 ? ipv4Blocks : ipv6Blocks;
  return candidates.find((block) => rangeCovers(block.range, range))?.words ?? null;
}

/**
 * Whether a special-purpose block may overlap the /16 with these first 16 bits. This spares readers of millions of ranges the
 * search.
 */
export function mayBeSpecialPurpose(family: 4 | 6, first16Bits: number): boolean {
  return (family === 4 ? ipv4Touched : ipv6Touched)[first16Bits] !== 0;
}

/** Marks with 1 the first 16 bits of every /16 that a refused block overlaps. */
function touchedBy(candidates: readonly Block[], addressBits: number): Uint8Array {
  const touched = new Uint8Array(0x10000);
  for (const { range, words } of candidates) {
    if (words === null) continue;
    const first16 = (address: number | bigint) => Number(BigInt(address) >> BigInt(addressBits - 16));
    touched.fill(1, first16(range.first), first16(range.last) + 1);
  }
  return touched;
}

/** Returns the blocks of one family, longest prefix first, so that the first match decides. */
function readBlocks(family: 4 | 6): Block[] {
  return blocks
    .map(([prefix, name, reference]) => ({
      range: rangeAsWritten(prefix) as IpRange,
      words: name && `${prefix} ${name} (${reference})`,
    }))
    .filter((block) => block.range.family === family)
    .sort((a, b) => (prefixLengthOf(b.range) ?? 0) - (prefixLengthOf(a.range) ?? 0));
}

const blocked: readonly (number | readonly [first: number, last: number])[] = [
  ...[0, 1, 7, 9, 11, 13, 15, 17, 19, [20, 23], 25, 37, 42, 43, 53, 69, 77, 79, 87, 95],
  ...[[101, 104], [109, 111], 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465],
  ...[[512, 515], 526, [530, 532], 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995],
  ...[1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, [6665, 6669], 6679, 6697, 10080],
  ...[1433, 1521, 3306, 3389, 5432, [5900, 5903], 6379, 11211, 27017],
] as (number | readonly [number, number])[];

const ports = new Set(
  blocked.flatMap((one) => {
    const [first, last] = typeof one === "number" ? [one, one] : one;
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  }),
);

/** Returns why a request to this port is refused, or null. */
export function servicePortWords(port: number): string | null {
  return ports.has(port) ? `port ${port}, where another service than the web's is` : null;
}

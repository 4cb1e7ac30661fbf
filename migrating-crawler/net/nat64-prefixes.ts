/**
 * Finds the prefixes under which this network translates IPv6 to IPv4 (NAT64, RFC 7050). The name ipv4only.arpa has two
 * well-known IPv4 addresses and no others, so the network's DNS64 made any IPv6 address of it, which shows the prefix
 * and the position of the IPv4 address (RFC 6052 section 2.2).
 */
import { type IpAddress, parseAddress } from "#core/ip/address";

export const ipv4OnlyName = "ipv4only.arpa";

/** 192.0.0.170 and 192.0.0.171. */
const wellKnown: ReadonlySet<number> = new Set([0xc00000aa, 0xc00000ab]);

/** The prefix lengths of RFC 6052, in bits. */
const lengths = [96, 64, 56, 48, 40, 32] as const;

export interface Nat64Prefix {
  readonly bits: bigint;
  readonly length: (typeof lengths)[number];
}

/** Pass the IPv6 addresses of `ipv4OnlyName`; those without a well-known address are ignored. */
export function nat64PrefixesOf(addresses: readonly string[]): Nat64Prefix[] {
  const found = new Map<string, Nat64Prefix>();
  for (const address of addresses.map(parseAddress)) {
    if (address?.family !== 6) continue;
    for (const length of lengths) {
      if (!wellKnown.has(ipv4At(address.value, length))) continue;
      const prefix = { bits: address.value >> BigInt(128 - length), length };
      found.set(`${prefix.bits}/${length}`, prefix);
    }
  }
  return [...found.values()];
}

/** Returns the IPv4 address behind this prefix, or null when the address does not have it. */
export function translatedBy({ bits, length }: Nat64Prefix, address: IpAddress): IpAddress | null {
  if (address.family !== 6 || address.value >> BigInt(128 - length) !== bits) return null;
  return { family: 4, value: ipv4At(address.value, length) };
}

/** The IPv4 address follows the prefix and skips bits 64 to 71, which are zero. */
function ipv4At(value: bigint, length: Nat64Prefix["length"]): number {
  if (length === 96) return Number(value & 0xffffffffn);
  const before = BigInt(64 - length);
  const high = (value >> 64n) & ((1n << before) - 1n);
  const lowBits = 32n - before;
  const low = (value >> (56n - lowBits)) & ((1n << lowBits) - 1n);
  return Number((high << lowBits) | low);
}

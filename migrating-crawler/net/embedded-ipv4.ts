/**
 * The IPv4 address that an IPv6 address carries for some translator or tunnel on the way: what is really
 * contacted in the end, and so checked like any other. NAT64 under a network's own prefix (RFC 6052) cannot
 * be told from an ordinary address.
 */
import type { Ipv4Address, Ipv6Address } from "#core/ip/address";

/** Every form whose bits fit; several where the address is tunnelled to a server and a client. */
export function embeddedIpv4({ value }: Ipv6Address): Ipv4Address[] {
  const found = carriers.flatMap((carrier) => (carrier.holds(value) ? carrier.read(value) : []));
  return found.map((inner) => ({ family: 4, value: Number(inner & 0xffffffffn) }));
}

interface Carrier {
  holds(value: bigint): boolean;
  read(value: bigint): bigint[];
}

const lowest = (value: bigint) => [value];
const prefix = (bits: bigint, length: bigint) => (value: bigint) => value >> (128n - length) === bits;

const carriers: readonly Carrier[] = [
  // IPv4-compatible ::/96, IPv4-mapped ::ffff:0:0/96 (RFC 4291), IPv4-translated ::ffff:0:0:0/96 (RFC 2765).
  { holds: (value) => value > 0xffffn && prefix(0n, 96n)(value), read: lowest },
  { holds: prefix(0xffffn, 96n), read: lowest },
  { holds: prefix(0xffff_0000n, 96n), read: lowest },
  // NAT64: 64:ff9b::/96 (RFC 6052), 64:ff9b:1::/48 (RFC 8215) with the address last, or around bits 64 to 71.
  { holds: prefix(0x0064_ff9b_0000_0000_0000_0000n, 96n), read: lowest },
  {
    holds: prefix(0x0064_ff9b_0001n, 48n),
    read: (value) => [value, (((value >> 64n) & 0xffffn) << 16n) | ((value >> 40n) & 0xffffn)],
  },
  // 6to4: 2002:a.b.c.d::/48 (RFC 3056).
  { holds: prefix(0x2002n, 16n), read: (value) => [value >> 80n] },
  // Teredo: the server in bits 32 to 63, the client inverted at the end (RFC 4380 section 4).
  { holds: prefix(0x2001_0000n, 32n), read: (value) => [value >> 64n, ~value & 0xffffffffn] },
  // ISATAP: interface identifier 0000:5efe or 0200:5efe (RFC 5214 section 6.1).
  { holds: (value) => ((value >> 32n) & 0xfdff_ffffn) === 0x0000_5efen, read: lowest },
];

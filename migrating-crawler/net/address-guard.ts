/**
 * Decides which addresses this crawler may contact. Special-purpose blocks (private, loopback, link-local, metadata services,
 * from the IANA registries), and IPv6 addresses that embed one for a translator or tunnel, are refused whatever a name
 * resolves to, unless the partner allows them. The partner's deny-list of ranges and domains always applies, and the machine's
 * own networks are refused unless allowed. Every connection is checked, on the address to which it is then pinned.
 */
import {
  formatAddress,
  type IpAddress,
  type Ipv4Address,
  type Ipv6Address,
  parseAddress,
  unmapAddress,
} from "#core/ip/address";
import { type IpRange, parseRange, rangeHolds } from "#core/ip/range";
import { servicePortWords, specialPurposeOf } from "#core/ip/special-purpose";
import { type Allowance, parseAllowance } from "../settings/config.ts";

export interface AddressGuard {
  /** Returns null if the address may be contacted (at this port, or at any), or else a description of its block. */
  refusal(address: string, port?: number): string | null;
  isAllowed(address: string, port: number): boolean;
  /** Returns the deny-list entry that matches the host or address, or null. */
  denial(target: { readonly host?: string; readonly address?: string }): string | null;
}

export function addressGuard(lists: {
  readonly allowRanges: readonly string[];
  readonly denyRanges: readonly string[];
  readonly denyDomains: readonly string[];
  readonly ownNetworks?: readonly string[];
  /** Prefixes under which this network reaches IPv4 from IPv6. The IPv4 address behind such a prefix is checked. */
  readonly nat64Prefixes?: readonly Nat64Prefix[];
}): AddressGuard {
  const allowed = lists.allowRanges.map(parseAllowance).filter((allowance) => allowance !== null);
  const denied = rangesOf(lists.denyRanges);
  const domains = new Set(lists.denyDomains);
  const own = rangesOf(lists.ownNetworks ?? []);
  const carriedBy = (address: IpAddress): IpAddress[] => {
    if (address.family === 4) return [];
    const translated = (lists.nat64Prefixes ?? []).map((prefix) => translatedBy(prefix, address));
    return [...embeddedIpv4(address), ...translated.filter((one) => one !== null)];
  };
  const holds = (text: string): boolean => {
    const address = parseAddress(text);
    return address !== null && [address, ...carriedBy(address)].some((each) => isIn(denied, each));
  };
  const isOwn = (text: string): boolean => {
    const address = own.length === 0 ? null : parseAddress(text);
    if (address === null || isAllowed(allowed, unmapAddress(address), undefined)) return false;
    return [unmapAddress(address), ...carriedBy(address)].some((each) => isIn(own, each));
  };
  return {
    refusal(text, port) {
      const address = parseAddress(text);
      if (address === null) return "not an IP address";
      if (holds(text)) return "the partner's deny-list";
      if (isOwn(text)) return "the crawler's own network";
      const service = port === undefined || isNamed(allowed, address, port) ? null : servicePortWords(port);
      return service ?? refusalOf([address, ...carriedBy(address)], allowed, port);
    },
    isAllowed(text, port) {
      const address = parseAddress(text);
      return address !== null && isAllowed(allowed, unmapAddress(address), port);
    },
    denial({ host, address }) {
      const domain = host === undefined ? null : deniedDomain(host, domains);
      if (domain !== null) return `the partner's deny-list holds ${domain}`;
      if (address === undefined) return null;
      if (holds(address)) return `the partner's deny-list holds ${address}`;
      return isOwn(address) ? `${address} is in the crawler's own network` : null;
    },
  };
}

/** Both the address and any embedded address must be public or allowed. A mapped address is the IPv4 address itself. */
function refusalOf(
  [address, ...carried]: readonly [IpAddress, ...IpAddress[]],
  allowed: readonly Allowance[],
  port: number | undefined,
): string | null {
  const plain = unmapAddress(address);
  if (plain !== address && isAllowed(allowed, plain, port)) return null;
  for (const each of [address, ...carried]) {
    const block = specialPurposeOf(each);
    if (block !== null && !isAllowed(allowed, each, port)) return block;
  }
  return null;
}

const isIn = (ranges: readonly IpRange[], address: IpAddress) =>
  ranges.some((range) => rangeHolds(range, address));

function deniedDomain(host: string, domains: ReadonlySet<string>): string | null {
  if (domains.size === 0) return null;
  let name = host.toLowerCase().replace(/\.$/, "");
  for (;;) {
    if (domains.has(name)) return name;
    const dot = name.indexOf(".");
    if (dot < 0) return null;
    name = name.slice(dot + 1);
  }
}

function rangesOf(texts: readonly string[]): IpRange[] {
  return texts.map((text) => parseRange(text)).filter((range) => range !== null);
}

/** Parses the host part of a URL as a literal address. Returns null for names. */
export function literalAddress(host: string): string | null {
  const address = parseAddress(host);
  return address === null ? null : formatAddress(address);
}

// Extracts the IPv4 address that an IPv6 address embeds for a translator or tunnel, because that is what is contacted in the
// end. NAT64 under a network's own prefix can be recognised if DNS reveals the prefix.

/** Returns every form that fits, because a tunnel embeds both a server and a client. */
function embeddedIpv4({ value }: Ipv6Address): Ipv4Address[] {
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

/** Checks whether an exception names this port and not only the address. */
function isNamed(allowances: readonly Allowance[], address: IpAddress, port: number): boolean {
  const plain = unmapAddress(address);
  return allowances.some(
    ({ range, firstPort, lastPort, namesPorts }) =>
      namesPorts && rangeHolds(range, plain) && port >= firstPort && port <= lastPort,
  );
}

/** If no port is given, checks whether any port of the address is allowed. */
function isAllowed(allowances: readonly Allowance[], address: IpAddress, port: number | undefined): boolean {
  return allowances.some(
    ({ range, firstPort, lastPort }) =>
      rangeHolds(range, address) && (port === undefined || (port >= firstPort && port <= lastPort)),
  );
}

// Finds the prefixes under which this network translates IPv6 to IPv4 (NAT64, RFC 7050). The name ipv4only.arpa has two
// well-known IPv4 addresses and no others. Any IPv6 address for it was therefore made by the network's DNS64, and shows the
// prefix and the position of the IPv4 address (RFC 6052 section 2.2).

export const ipv4OnlyName = "ipv4only.arpa";

/** 192.0.0.170 and 192.0.0.171. */
const wellKnown: ReadonlySet<number> = new Set([0xc00000aa, 0xc00000ab]);

const lengths = [96, 64, 56, 48, 40, 32] as const;

export interface Nat64Prefix {
  readonly bits: bigint;
  readonly length: (typeof lengths)[number];
}

/** `addresses` are the IPv6 addresses of `ipv4OnlyName`. Those without a well-known address are ignored. */
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

/** Returns the IPv4 address behind this prefix, or null if the address does not have the prefix. */
function translatedBy({ bits, length }: Nat64Prefix, address: IpAddress): IpAddress | null {
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

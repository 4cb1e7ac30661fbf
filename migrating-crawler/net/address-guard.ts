/**
 * Decides which addresses this crawler may contact. Special-purpose blocks (private, loopback, link-local, metadata
 * services; IANA registries) and IPv6 addresses that embed one for a translator or tunnel are refused whatever a name
 * resolves to, unless the partner allows them. The partner's deny-list of ranges and domains always applies, and the
 * machine's own networks are refused unless allowed. Every connection is checked, on the address to which it is then
 * pinned.
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
import { servicePortWords } from "#core/ip/service-ports";
import { specialPurposeOf } from "#core/ip/special-purpose";
import { type Allowance, parseAllowance } from "../settings/config.ts";
import { type Nat64Prefix, translatedBy } from "./nat64-prefixes.ts";

export interface AddressGuard {
  /** Returns null when the address may be contacted (at this port, or at any), else a description of its block. */
  refusal(address: string, port?: number): string | null;
  /** Returns whether the partner's exceptions name the address at this port. */
  isAllowed(address: string, port: number): boolean;
  /** Returns the deny-list entry that matches the host or address, or null. */
  denial(target: { readonly host?: string; readonly address?: string }): string | null;
}

export function addressGuard(lists: {
  readonly allowRanges: readonly string[];
  readonly denyRanges: readonly string[];
  readonly denyDomains: readonly string[];
  readonly ownNetworks?: readonly string[];
  /** Prefixes under which this network reaches IPv4 from IPv6; the IPv4 address behind them is checked. */
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

/** Parses the host part of a URL as a literal address; null for names. */
export function literalAddress(host: string): string | null {
  const address = parseAddress(host);
  return address === null ? null : formatAddress(address);
}

// Extracts the IPv4 address that an IPv6 address embeds for a translator or tunnel, because it is what is finally
// contacted. NAT64 under a network's own prefix is known where DNS reveals it (nat64-prefixes.ts).

/** Returns every form that fits; a tunnel embeds both a server and a client. */
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

/** Checks whether an exception names this port, not only the address. */
function isNamed(allowances: readonly Allowance[], address: IpAddress, port: number): boolean {
  const plain = unmapAddress(address);
  return allowances.some(
    ({ range, firstPort, lastPort, namesPorts }) =>
      namesPorts && rangeHolds(range, plain) && port >= firstPort && port <= lastPort,
  );
}

/** Without a port, checks whether any port of the address is allowed. */
function isAllowed(allowances: readonly Allowance[], address: IpAddress, port: number | undefined): boolean {
  return allowances.some(
    ({ range, firstPort, lastPort }) =>
      rangeHolds(range, address) && (port === undefined || (port >= firstPort && port <= lastPort)),
  );
}

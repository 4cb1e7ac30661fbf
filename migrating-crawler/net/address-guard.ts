/**
 * Which addresses this crawler may contact. Special-purpose blocks (private, loopback, link-local, metadata
 * services; IANA registries), and IPv6 addresses that carry one for a translator or tunnel, are refused whatever
 * a name resolves to, unless the partner allows a range of his own; the partner's deny-list, of ranges and
 * domains, is refused always, and the machine's own networks unless they are allowed. Asked before every connection, on the very address that the connection is then
 * pinned to.
 */
import { formatAddress, type IpAddress, parseAddress, unmapAddress } from "#core/ip/address";
import { type IpRange, parseRange, rangeHolds } from "#core/ip/range";
import { specialPurposeOf } from "#core/ip/special-purpose";
import { type Allowance, isAllowed, parseAllowance } from "./allow-list.ts";
import { embeddedIpv4 } from "./embedded-ipv4.ts";

export interface AddressGuard {
  /** Null when the address may be contacted (at this port, or at any), else the block that it lies in, in words. */
  refusal(address: string, port?: number): string | null;
  /** Whether the partner names the address, at this port, among those that may be contacted all the same. */
  isAllowed(address: string, port: number): boolean;
  /** Null, or what of the partner's deny-list holds the host's name or the address, in words. */
  denial(target: { readonly host?: string; readonly address?: string }): string | null;
}

export function addressGuard(lists: {
  readonly allowRanges: readonly string[];
  readonly denyRanges: readonly string[];
  readonly denyDomains: readonly string[];
  /** Of the machine's own interfaces, where these are not to be contacted. */
  readonly ownNetworks?: readonly string[];
}): AddressGuard {
  const allowed = lists.allowRanges.map(parseAllowance).filter((allowance) => allowance !== null);
  const denied = rangesOf(lists.denyRanges);
  const domains = new Set(lists.denyDomains);
  const own = rangesOf(lists.ownNetworks ?? []);
  const holds = (text: string): boolean => {
    const address = parseAddress(text);
    return address !== null && [address, ...carriedBy(address)].some((each) => isIn(denied, each));
  };
  const isOwn = (text: string): boolean => {
    const address = own.length === 0 ? null : parseAddress(text);
    return address !== null && isIn(own, unmapAddress(address)) && !isAllowed(allowed, address, undefined);
  };
  return {
    refusal(text, port) {
      const address = parseAddress(text);
      if (address === null) return "not an IP address";
      if (holds(text)) return "the partner's deny-list";
      return isOwn(text) ? "the crawler's own network" : refusalOf(address, allowed, port);
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

/** Both the address and what it carries must be public, or allowed. A mapped address is the IPv4 address itself. */
function refusalOf(
  address: IpAddress,
  allowed: readonly Allowance[],
  port: number | undefined,
): string | null {
  const plain = unmapAddress(address);
  if (plain !== address && isAllowed(allowed, plain, port)) return null;
  for (const each of [address, ...carriedBy(address)]) {
    const block = specialPurposeOf(each);
    if (block !== null && !isAllowed(allowed, each, port)) return block;
  }
  return null;
}

const carriedBy = (address: IpAddress): IpAddress[] => (address.family === 6 ? embeddedIpv4(address) : []);

const isIn = (ranges: readonly IpRange[], address: IpAddress) =>
  ranges.some((range) => rangeHolds(range, address));

/** The host itself, or a domain that it lies below. */
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

/** The host part of a URL as an address, when it is a literal one; null for names. */
export function literalAddress(host: string): string | null {
  const address = parseAddress(host);
  return address === null ? null : formatAddress(address);
}

/**
 * Which addresses this crawler may contact. Special-purpose blocks (private, loopback, link-local, metadata
 * services; IANA registries) are refused whatever a name resolves to, unless the partner allows a range of
 * his own; the partner's deny-list, of ranges and domains, is refused always. Asked before every connection, on the very address
 * that the connection is then pinned to.
 */
import { formatAddress, type IpAddress, parseAddress, unmapAddress } from "#core/ip/address";
import { type IpRange, parseRange, rangeHolds } from "#core/ip/range";
import { specialPurposeOf } from "#core/ip/special-purpose";

export interface AddressGuard {
  /** Null when the address may be contacted, else the block that it lies in, in words. */
  refusal(address: string): string | null;
  /** Null, or what of the partner's deny-list holds the host's name or the address, in words. */
  denial(target: { readonly host?: string; readonly address?: string }): string | null;
}

export function addressGuard(lists: {
  readonly allowRanges: readonly string[];
  readonly denyRanges: readonly string[];
  readonly denyDomains: readonly string[];
}): AddressGuard {
  const allowed = rangesOf(lists.allowRanges);
  const denied = rangesOf(lists.denyRanges);
  const domains = new Set(lists.denyDomains);
  const holds = (text: string): boolean => {
    const address = parseAddress(text);
    return address !== null && isIn(denied, unmapAddress(address));
  };
  return {
    refusal(text) {
      const address = parseAddress(text);
      if (address === null) return "not an IP address";
      return holds(text) ? "the partner's deny-list" : refusalOf(address, allowed);
    },
    denial({ host, address }) {
      const domain = host === undefined ? null : deniedDomain(host, domains);
      if (domain !== null) return `the partner's deny-list holds ${domain}`;
      if (address === undefined || !holds(address)) return null;
      return `the partner's deny-list holds ${address}`;
    },
  };
}

function refusalOf(address: IpAddress, allowed: readonly IpRange[]): string | null {
  const plain = unmapAddress(address);
  const block = specialPurposeOf(address) ?? specialPurposeOf(plain);
  if (block === null) return null;
  return isIn(allowed, plain) ? null : block;
}

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

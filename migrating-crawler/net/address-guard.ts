/**
 * Which addresses this crawler may contact. Special-purpose blocks (private, loopback, link-local, metadata
 * services; IANA registries) are refused whatever a name resolves to, unless the partner allows a range of
 * his own; the partner's deny-list is refused always. Asked before every connection, on the very address
 * that the connection is then pinned to.
 */
import { formatAddress, type IpAddress, parseAddress, unmapAddress } from "#core/ip/address";
import { type IpRange, parseRange, rangeHolds } from "#core/ip/range";
import { specialPurposeOf } from "#core/ip/special-purpose";

export interface AddressGuard {
  /** Null when the address may be contacted, else the block that it lies in, in words. */
  refusal(address: string): string | null;
}

export function addressGuard(lists: {
  readonly allowRanges: readonly string[];
  readonly denyRanges: readonly string[];
}): AddressGuard {
  const allowed = rangesOf(lists.allowRanges);
  const denied = rangesOf(lists.denyRanges);
  return {
    refusal(text) {
      const address = parseAddress(text);
      if (address === null) return "not an IP address";
      return refusalOf(address, allowed, denied);
    },
  };
}

function refusalOf(
  address: IpAddress,
  allowed: readonly IpRange[],
  denied: readonly IpRange[],
): string | null {
  const plain = unmapAddress(address);
  if (denied.some((range) => rangeHolds(range, plain))) return "the partner's deny-list";
  const block = specialPurposeOf(address) ?? specialPurposeOf(plain);
  if (block === null) return null;
  return allowed.some((range) => rangeHolds(range, plain)) ? null : block;
}

function rangesOf(texts: readonly string[]): IpRange[] {
  return texts.map((text) => parseRange(text)).filter((range) => range !== null);
}

/** The host part of a URL as an address, when it is a literal one; null for names. */
export function literalAddress(host: string): string | null {
  const address = parseAddress(host);
  return address === null ? null : formatAddress(address);
}

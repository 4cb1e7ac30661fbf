/**
 * A subnet is a node of the registry hierarchy: a range of addresses, its holder and its country (paper section 4.1).
 * Across imports its range identifies it.
 */
import type { HolderId, SubnetId } from "#core/ids";
import type { IpRange } from "#core/ip/range";

/** The five Regional Internet Registries, and IANA for the top level. */
export const registries = ["iana", "afrinic", "apnic", "arin", "lacnic", "ripencc"] as const;

export type Registry = (typeof registries)[number];

export interface Subnet {
  readonly id: SubnetId;
  readonly range: IpRange;
  /** The next less specific subnet; null directly under the root. */
  readonly parentId: SubnetId | null;
  readonly holderId: HolderId | null;
  /** ISO 3166-1 alpha-2 in upper case, as the registry states it, or null. */
  readonly country: string | null;
  readonly registry: Registry;
  /** The registry's own name for the range (netname, NetHandle …); may be empty. */
  readonly name: string;
}

// Packs country and registry into one number below 2^12: 677 countries or none, six registries.

const letters = 26;
const firstLetter = 65;

/** Throws a RangeError for an unknown registry or a country that is not two capital letters. */
export function packLabel(country: string | null, registry: Registry): number {
  const index = registries.indexOf(registry);
  if (index < 0) throw new RangeError(`not a registry: ${registry}`);
  return countryNumber(country) * registries.length + index;
}

export function countryOf(label: number): string | null {
  const number = Math.trunc(label / registries.length) - 1;
  if (number < 0) return null;
  return String.fromCharCode(firstLetter + Math.trunc(number / letters), firstLetter + (number % letters));
}

export function registryOf(label: number): Registry {
  return registries[label % registries.length] as Registry;
}

function countryNumber(country: string | null): number {
  if (country === null) return 0;
  const first = country.charCodeAt(0) - firstLetter;
  const second = country.charCodeAt(1) - firstLetter;
  if (country.length === 2 && first >= 0 && first < letters && second >= 0 && second < letters)
    return 1 + first * letters + second;
  throw new RangeError(`not a country code of two capital letters: ${country}`);
}

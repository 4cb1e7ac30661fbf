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
  /** The next less specific subnet. Null directly under the root. */
  readonly parentId: SubnetId | null;
  readonly holderId: HolderId | null;
  /** ISO 3166-1 alpha-2 in upper case, as the registry states it, or null. */
  readonly country: string | null;
  readonly registry: Registry;
  /** The registry's own name for the range (netname, NetHandle …). May be empty. */
  readonly name: string;
}

// Packs country and registry into one number below 2^12: 677 countries or none, six registries.

const letters = 26;
const firstLetter = 65;

/** Throws a RangeError for an unknown registry or a country that is not two capital letters. */
export function packLabel(country: string | null, registry: Registry): number {
  const index = registries.indexOf(registry);
  if (index < 0) throw new RangeError(`not a registry: ${registry}`);
  return packCountry(country) * registries.length + index;
}

export const countryOf = (label: number): string | null =>
  unpackCountry(Math.trunc(label / registries.length));

export const registryOf = (label: number): Registry => registries[label % registries.length] as Registry;

/** From 1 to 676. 0 for none. */
export function packCountry(country: string | null): number {
  if (country === null) return 0;
  if (!/^[A-Z]{2}$/.test(country))
    throw new RangeError(`not a country code of two capital letters: ${country}`);
  const [first, second] = [country.charCodeAt(0) - firstLetter, country.charCodeAt(1) - firstLetter];
  return 1 + first * letters + second;
}

export function unpackCountry(packed: number): string | null {
  if (packed === 0) return null;
  const [first, second] = [Math.trunc((packed - 1) / letters), (packed - 1) % letters];
  return String.fromCharCode(firstLetter + first, firstLetter + second);
}

/** Where a subnet is registered, country and registry in one number below 2^12: 677 countries or none, six registries. */
import { type Registry, registries } from "./subnet.ts";

const letters = 26;
const firstLetter = 65;

/** Throws a RangeError for a country that is not two capital letters, and for a registry that is none. */
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

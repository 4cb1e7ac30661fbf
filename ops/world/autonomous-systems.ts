/**
 * Which autonomous system announces each range of a generated world: a model beside the world, so that the worlds of
 * earlier measurements stay as they were.
 *
 * - An organisation with r ranges has an AS of its own with probability 1 − 0.7^r: one in three of those with one range,
 *   nearly all from ten on.
 * - With 30 ranges or more, half of them have an AS for each country in which they use ranges; the others one for all.
 * - Whoever has none is announced by a network of the country where the range is used, which need not be the one where it
 *   is registered: one of six to a country, the k-th as often as 1/k says, the same for all ranges of an organisation there.
 *
 * No public figure is at hand for these shares: they are our judgement, on the side of an AS that says little more than
 * the registry does.
 */
import type { World } from "./model.ts";
import { hashUnit } from "./seeded-random.ts";

const withoutOwnAs = 0.7;
const manyRanges = 30;
const byCountryShare = 0.5;
const networksPerCountry = 6;

/** By the site's position: a name that is the same for all that one AS announces; empty: in no place. */
export function autonomousSystemsOf(world: World): string[] {
  const ranges = rangesOfHolders(world);
  return world.sites.map(({ subnet, place }) => {
    if (place === null) return "";
    const country = world.places[place]?.country ?? "";
    const holder = world.subnets[subnet]?.holder ?? null;
    if (holder === null) return `network ${country} 1`;
    const count = ranges.get(holder)?.size ?? 1;
    if (hashUnit(world.seed, holder, 1) >= withoutOwnAs ** count)
      return `own ${holder}${isByCountry(world, holder, count) ? ` ${country}` : ""}`;
    return `network ${country} ${networkOf(hashUnit(world.seed, holder, 3))}`;
  });
}

function rangesOfHolders(world: World): ReadonlyMap<number, ReadonlySet<number>> {
  const ranges = new Map<number, Set<number>>();
  for (const { subnet } of world.sites) {
    const holder = world.subnets[subnet]?.holder ?? null;
    if (holder === null) continue;
    const known = ranges.get(holder);
    if (known === undefined) ranges.set(holder, new Set([subnet]));
    else known.add(subnet);
  }
  return ranges;
}

function isByCountry(world: World, holder: number, count: number): boolean {
  return count >= manyRanges && hashUnit(world.seed, holder, 2) < byCountryShare;
}

/** 1 to `networksPerCountry`, by Zipf's law. */
function networkOf(unit: number): number {
  const weights = Array.from({ length: networksPerCountry }, (_, index) => 1 / (index + 1));
  let left = unit * weights.reduce((sum, weight) => sum + weight, 0);
  const found = weights.findIndex((weight) => {
    left -= weight;
    return left < 0;
  });
  return found < 0 ? networksPerCountry : found + 1;
}

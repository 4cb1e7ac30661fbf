/** A list's filter, compiled for one tree. */
import type { CrawlerId, HolderId, SubnetId } from "#core/ids";
import { countryOf, registryOf } from "../../place/subnets/subnet.ts";
import { nobody } from "./crawler-counts.ts";
import type { SubnetFilter } from "./explore-api.ts";
import type { ExploredWorld } from "./explored-world.ts";

/** Null: every place matches. */
export interface PlaceFilter {
  matches(place: number): boolean;
  /** False when no place of this block of a thousand matches. */
  mayHold(block: number): boolean;
  /** In tree order, a superset of the matches; null when they may be anywhere. */
  readonly candidates: Int32Array | null;
}

/** Names of the filter that were looked up, since they are not in the tree. */
interface KnownNames {
  /** Null when no crawler has this name. */
  readonly crawlerId: CrawlerId | null;
  readonly holderIds: readonly HolderId[];
}

type Test = (place: number) => boolean;

export function filterPlaces(world: ExploredWorld, filter: SubnetFilter, names: KnownNames): PlaceFilter {
  const tests = testsOf(world, filter, names);
  const crawler = filter.state === "none" ? nobody : filter.crawler === undefined ? null : names.crawlerId;
  return {
    matches: (place) => tests.every((test) => test(place)),
    mayHold: (block) => crawler === null || world.crawlers.has(block, crawler),
    candidates: candidatesFor(world, filter, names),
  };
}

function testsOf(world: ExploredWorld, filter: SubnetFilter, names: KnownNames): Test[] {
  const { labels, holderIds, ids } = world.columns;
  const { crawler, state, registry, country, holder, minRttMs, minLoad } = filter;
  const idAt = (place: number) => ids[place] as SubnetId;
  const states: Readonly<Record<NonNullable<SubnetFilter["state"]>, Test>> = {
    delegated: (place) => world.isOwn(place),
    inherited: (place) => !world.isOwn(place) && world.crawlers.at(place) !== nobody,
    waiting: (place) => !world.isOwn(place) && world.loads.dueHostsAt(place) > 0,
    none: (place) => world.crawlers.at(place) === nobody,
    anycast: (place) => world.anycast.has(idAt(place)),
    finer: (place) => world.finer.has(idAt(place)),
  };
  const tests: Test[] = [];
  if (registry !== undefined) tests.push((place) => registryOf(labels[place] as number) === registry);
  if (country !== undefined) tests.push((place) => countryOf(labels[place] as number) === country);
  if (holder !== undefined) {
    const wanted = new Set<number>(names.holderIds);
    tests.push((place) => wanted.has(holderIds[place] as number));
  }
  if (minLoad !== undefined) tests.push((place) => world.loads.pagesPerDayAt(place) >= minLoad);
  if (state !== undefined) tests.push(states[state]);
  if (crawler !== undefined) tests.push((place) => world.crawlers.at(place) === names.crawlerId);
  if (minRttMs !== undefined) tests.push((place) => world.rttMsAt(place) >= minRttMs);
  return tests;
}

function candidatesFor(world: ExploredWorld, filter: SubnetFilter, names: KnownNames): Int32Array | null {
  const placesOf = (subnetIds: Iterable<SubnetId>) =>
    Int32Array.from([...subnetIds].map((id) => world.placeOf(id)).filter((place) => place >= 0)).sort();
  if (filter.state === "anycast") return placesOf(world.anycast);
  if (filter.state === "finer") return placesOf(world.finer);
  if (filter.state === "waiting" || (filter.minLoad ?? 0) > 0) return world.loads.places;
  if (filter.holder !== undefined) return placesOfHolders(world, names.holderIds);
  return null;
}

/** Scans all places: 10 ms for ten million and each holder. */
function placesOfHolders({ columns }: ExploredWorld, wanted: readonly HolderId[]): Int32Array {
  const found: number[] = [];
  for (const holderId of wanted) {
    const { holderIds } = columns;
    for (let place = holderIds.indexOf(holderId); place >= 0; place = holderIds.indexOf(holderId, place + 1))
      found.push(place);
  }
  return Int32Array.from(found).sort();
}

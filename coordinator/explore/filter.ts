/** Which subnets are meant: what a page's address, a form or a command's options say, checked. */

import type { CrawlerId, HolderId, SubnetId } from "#core/ids";
import { parseRange } from "#core/ip/range";
import { countryOf, packLabel, type Registry, registries, registryOf } from "../subnets/subnet.ts";
import { bitOf, type ExploredWorld } from "./explored-tree.ts";
import { sizeBits } from "./places.ts";

/**
 * delegated: by a decision of its own. inherited: by that of a less specific subnet. waiting: it has no delegation of
 * its own, and hosts with pages that are due. none: nobody crawls it. anycast: it answers from many places. finer:
 * hosts or parts of it are delegated apart.
 */
export const subnetStates = ["delegated", "inherited", "waiting", "none", "anycast", "finer"] as const;

export type SubnetState = (typeof subnetStates)[number];

export interface SubnetFilter {
  readonly crawler: string | null;
  readonly registry: Registry | null;
  readonly country: string | null;
  /** A handle, or a name in full. */
  readonly holder: string | null;
  readonly state: SubnetState | null;
  readonly minRttMs: number | null;
  readonly maxRttMs: number | null;
  readonly minPagesPerDay: number | null;
  readonly olderThanDays: number | null;
  /** Sizes as prefix lengths; a range that is no CIDR block counts with the next smaller one. */
  readonly minPrefix: number | null;
  readonly maxPrefix: number | null;
}

/** By the names that addresses, forms and options use; every one but `family` and `at`. */
const filterNames = [
  "crawler",
  "registry",
  "country",
  "holder",
  "state",
  "minRttMs",
  "maxRttMs",
  "minLoad",
  "olderThanDays",
  "minPrefix",
  "maxPrefix",
] as const;

export type FilterName = (typeof filterNames)[number];

const longestText = 200;

/** A string: why this is no filter, in words. */
export function readFilter(given: (name: FilterName) => string): SubnetFilter | string {
  const faults: string[] = [];
  const text = (name: FilterName) => {
    const value = given(name).trim();
    if (value.length > longestText) faults.push(`${name} is longer than ${longestText} characters`);
    return value === "" ? null : value;
  };
  const number = (name: FilterName, most: number, whole = false) => {
    const value = text(name);
    if (value === null) return null;
    const parsed = /^\d{1,9}(\.\d{1,6})?$/.test(value) ? Number(value) : Number.NaN;
    if (parsed <= most && (!whole || Number.isInteger(parsed))) return parsed;
    faults.push(`${name}: ${value} is not a ${whole ? "whole " : ""}number from 0 to ${most}`);
    return null;
  };
  const oneOf = <Value extends string>(name: FilterName, values: readonly Value[]): Value | null => {
    const value = text(name);
    if (value === null) return null;
    if (!values.includes(value as Value)) faults.push(`${name}: ${value} is not one of ${values.join(", ")}`);
    return value as Value;
  };
  const filter: SubnetFilter = {
    crawler: text("crawler"),
    registry: oneOf("registry", registries),
    country: text("country")?.toUpperCase() ?? null,
    holder: text("holder"),
    state: oneOf("state", subnetStates),
    minRttMs: number("minRttMs", 100_000),
    maxRttMs: number("maxRttMs", 100_000),
    minPagesPerDay: number("minLoad", 999_999_999),
    olderThanDays: number("olderThanDays", 36_500),
    minPrefix: number("minPrefix", 128, true),
    maxPrefix: number("maxPrefix", 128, true),
  };
  if (filter.country !== null && !/^[A-Z]{2}$/.test(filter.country))
    faults.push(`country: ${filter.country} is not a country code of two letters`);
  return faults.length === 0 ? filter : `${faults.join("; ")}.`;
}

export const isEmptyFilter = (filter: SubnetFilter): boolean =>
  Object.values(filter).every((value) => value === null);

/** As it stands in an address; null where nothing is asked. */
export function filterQuery(filter: SubnetFilter): Readonly<Record<FilterName, string | number | null>> {
  const { minPagesPerDay, ...rest } = filter;
  return { ...rest, minLoad: minPagesPerDay };
}

/** The same filter always has the same text. */
export const filterKey = (filter: SubnetFilter): string => JSON.stringify(Object.values(filter));

/** A range as people give it: `IPv4` and `IPv6` whole by their names. */
export function readPlace(text: string): ReturnType<typeof parseRange> {
  const asked = text.trim().toLowerCase();
  if (asked.length > 100) return null;
  if (asked === "" || asked === "ipv4") return parseRange("0.0.0.0/0");
  return asked === "ipv6" ? parseRange("::/0") : parseRange(asked);
}

// A filter made ready for one tree: what tells whether a place is meant, which thousands of places cannot hold any,
// and, where those that are meant are among few known ones, these.

export interface PlaceFilter {
  matches(place: number): boolean;
  /** False: no place of these thousand matches. */
  mayHold(block: number): boolean;
  /** In the order of the tree; all that match are among them. Null: they may be anywhere. */
  readonly candidates: Int32Array | null;
  /** Nothing is asked: every place matches. */
  readonly isEmpty: boolean;
}

/** What of the filter was looked up: names are not in memory. */
export interface KnownNames {
  /** Null: there is no crawler of this name. */
  readonly crawlerId: CrawlerId | null;
  readonly subnetsOfCrawler: (crawlerId: CrawlerId) => readonly SubnetId[];
  readonly holderIds: readonly HolderId[];
  readonly nowSeconds: number;
}

type Test = (place: number) => boolean;

/** With fewer candidates than this share of the tree, they are looked at one by one. */
const fewShare = 0.05;

export function filterPlaces(world: ExploredWorld, filter: SubnetFilter, names: KnownNames): PlaceFilter {
  const tests: Test[] = [];
  const blocks: Test[] = [];
  addDelegation(world, filter, { names, tests, blocks });
  addRegistration(world, filter, { names, tests, blocks });
  addMeasures(world, filter, { names, tests, blocks });
  return {
    matches: all(tests),
    mayHold: all(blocks),
    candidates: candidatesFor(world, filter, names),
    isEmpty: tests.length === 0,
  };
}

interface Adding {
  readonly names: KnownNames;
  readonly tests: Test[];
  readonly blocks: Test[];
}

function all(tests: readonly Test[]): Test {
  const [first, second] = tests;
  if (first === undefined) return () => true;
  if (second === undefined) return first;
  return (place) => {
    for (const test of tests) if (!test(place)) return false;
    return true;
  };
}

function addDelegation(world: ExploredWorld, filter: SubnetFilter, { names, tests, blocks }: Adding): void {
  const { rows, summaries } = world;
  if (filter.state !== null) {
    tests.push(stateTest(world, filter.state));
    if (filter.state === "delegated") blocks.push((block) => summaries.hasOwn(block));
    if (filter.state === "inherited") blocks.push((block) => summaries.hasDelegated(block));
    if (filter.state === "none") blocks.push((block) => summaries.hasOpen(block));
  }
  if (filter.crawler === null) return;
  const { crawlerId } = names;
  if (crawlerId === null) {
    tests.push(() => false);
    blocks.push(() => false);
    return;
  }
  const number = world.numberOf(crawlerId);
  tests.push(
    (place) => (rows[place] as number) >= 0 && world.crawlerIdAt(rows[place] as number) === crawlerId,
  );
  blocks.push((block) => summaries.mayHaveCrawler(block, number));
}

function stateTest(world: ExploredWorld, state: NonNullable<SubnetFilter["state"]>): Test {
  const { rows, columns } = world;
  const idAt = (place: number) => columns.ids[place] as SubnetId;
  const tests: Record<typeof state, Test> = {
    delegated: (place) => world.isOwn(place),
    inherited: (place) => (rows[place] as number) >= 0 && !world.isOwn(place),
    waiting: (place) => !world.isOwn(place) && world.loads.dueHostsAt(place) > 0,
    none: (place) => (rows[place] as number) < 0,
    anycast: (place) => world.anycast.has(idAt(place)),
    finer: (place) => world.finer.has(idAt(place)),
  };
  return tests[state];
}

function addRegistration(world: ExploredWorld, filter: SubnetFilter, { names, tests, blocks }: Adding): void {
  const { labels, holderIds } = world.columns;
  const { registry, country } = filter;
  if (registry !== null) tests.push((place) => registryOf(labels[place] as number) === registry);
  if (country !== null) tests.push((place) => countryOf(labels[place] as number) === country);
  if (country !== null) {
    const wanted = registry === null ? registries : [registry];
    let bits = 0;
    for (const one of wanted) bits |= bitOf(packLabel(country, one));
    blocks.push((block) => world.summaries.mayHaveLabel(block, bits));
  }
  if (filter.holder !== null) {
    const wanted = new Set<number>(names.holderIds);
    tests.push((place) => wanted.has(holderIds[place] as number));
  }
}

function addMeasures(world: ExploredWorld, filter: SubnetFilter, { names, tests, blocks }: Adding): void {
  const { rows, summaries, columns } = world;
  const { minRttMs, maxRttMs, minPagesPerDay, olderThanDays } = filter;
  if (minRttMs !== null || maxRttMs !== null) {
    const [low, high] = [minRttMs ?? 0, maxRttMs ?? Number.POSITIVE_INFINITY];
    tests.push((place) => {
      const row = rows[place] as number;
      const rttMs = row < 0 ? Number.NaN : world.rttMsAt(row);
      return rttMs >= low && rttMs <= high;
    });
    blocks.push((block) => summaries.mayHaveRtt(block, low, high));
  }
  if (minPagesPerDay !== null) tests.push((place) => world.loads.pagesPerDayAt(place) >= minPagesPerDay);
  if (olderThanDays !== null) {
    const before = names.nowSeconds - 86_400 * olderThanDays;
    tests.push((place) => {
      const row = rows[place] as number;
      const since = row < 0 ? 0 : world.sinceAt(row);
      return since > 0 && since <= before;
    });
    blocks.push((block) => summaries.mayBeOlderThan(block, before));
  }
  if (filter.minPrefix === null && filter.maxPrefix === null) return;
  const [shortest, longest] = [filter.minPrefix ?? 0, filter.maxPrefix ?? 128];
  tests.push((place) => {
    const bits = place < columns.ipv6Base ? 32 : 128;
    const length = bits - Math.floor(sizeBits(columns, place));
    return length >= shortest && length <= longest;
  });
}

function candidatesFor(world: ExploredWorld, filter: SubnetFilter, names: KnownNames): Int32Array | null {
  const { byId } = world.columns;
  const placesOf = (subnetIds: Iterable<SubnetId>) =>
    Int32Array.from([...subnetIds].map((id) => byId.firstRow(id)).filter((place) => place >= 0)).sort();
  if (filter.state === "anycast") return placesOf(world.anycast);
  if (filter.state === "finer") return placesOf(world.finer);
  if (filter.state === "waiting" || (filter.minPagesPerDay ?? 0) > 0) return world.loads.places;
  if (filter.holder !== null) return placesOfHolders(world, names.holderIds);
  if (filter.crawler !== null && filter.state === "delegated" && names.crawlerId !== null) {
    const subnets = names.subnetsOfCrawler(names.crawlerId);
    if (subnets.length < fewShare * world.rows.length) return placesOf(subnets);
  }
  return null;
}

/** Goes over all places, 10 ms for ten million and each holder. */
function placesOfHolders({ columns }: ExploredWorld, wanted: readonly HolderId[]): Int32Array {
  const found: number[] = [];
  for (const holderId of wanted) {
    const { holderIds } = columns;
    for (let place = holderIds.indexOf(holderId); place >= 0; place = holderIds.indexOf(holderId, place + 1))
      found.push(place);
  }
  return Int32Array.from(found).sort();
}

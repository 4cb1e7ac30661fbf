/**
 * Counts past delegations: for every key of a placement (subnet, less specific subnets, holder, country, /8, root) how
 * many subnets each crawler owns there. It starts with each crawler's own subnet, which the paper (section 4.1)
 * delegates without a probe, and learns from every decision.
 *
 * The policy `ipmicra` asks who owns anything at a key, `nearest` asks how much.
 *
 * Slots number the crawlers in order of appearance. Half a million delegated subnets, three in ten with another
 * crawler than their neighbours, take some 80 MB (`owner-counts.ts`).
 */
import type { CrawlerId } from "#core/ids";
import type { CandidateFleet } from "./fleet.ts";
import { OwnerCounts, OwnerLists } from "./owner-counts.ts";
import type { PlaceKey, Placement } from "./placement.ts";

/**
 * A key of one kind: `subnet` counts a subnet and all within it, `own` the subnet itself, `children` those directly
 * under it. The single root has key 0.
 */
export interface Level {
  readonly kind: "published" | "holder" | "subnet" | "own" | "children" | "country" | "slash8" | "root";
  readonly key: PlaceKey;
}

export interface CrawlerCount {
  readonly crawlerId: CrawlerId;
  readonly count: number;
}

/** Levels from the most to the least specific, in which `nearest` backs off (design section 5). */
export function backOffLevels(placement: Placement): Level[] {
  const levels: Level[] = [];
  if (placement.holderKey !== null) levels.push({ kind: "holder", key: placement.holderKey });
  levels.push({ kind: "subnet", key: placement.subnetKey });
  for (const key of placement.ancestorKeys) levels.push({ kind: "subnet", key });
  if (placement.country !== null) levels.push({ kind: "country", key: placement.country });
  levels.push({ kind: "slash8", key: placement.slash8Key }, rootLevel);
  return levels;
}

/**
 * The order in which `ipmicra` climbs (paper section 4.3), one list per step: the subnet, its parent, and so on up to
 * the root. Each step names a subnet's own crawler, then its children's, then its descendants'; later lists repeat
 * earlier crawlers.
 */
export function climbLevels({ subnetKey, ancestorKeys, widerKeys = [] }: Placement): Level[][] {
  const steps = [subnetKey, ...ancestorKeys, ...widerKeys].map((key): Level[] => [
    { kind: "own", key },
    { kind: "children", key },
    { kind: "subnet", key },
  ]);
  return [...steps, [rootLevel]];
}

export class DelegationKnowledge {
  readonly #lists = new OwnerLists();
  readonly #counts: Readonly<Record<Level["kind"], OwnerCounts>> = {
    published: new OwnerCounts(this.#lists),
    holder: new OwnerCounts(this.#lists),
    subnet: new OwnerCounts(this.#lists),
    own: new OwnerCounts(this.#lists),
    children: new OwnerCounts(this.#lists),
    country: new OwnerCounts(this.#lists),
    slash8: new OwnerCounts(this.#lists),
    root: new OwnerCounts(this.#lists),
  };
  readonly #crawlers: CrawlerId[] = [];
  readonly #slots = new Map<CrawlerId, number>();
  readonly #fleetIndices = new WeakMap<CandidateFleet, FleetIndices>();
  #root: RootCounts | null = null;

  /** Records a delegation by a round or a move, or of the subnet in which the crawler is located. */
  record(placement: Placement, crawlerId: CrawlerId): void {
    const slot = this.#slotOf(crawlerId);
    this.#eachKey(placement, (counts, key) => counts.raise(key, slot));
    this.#countAtRoot(slot, 1);
  }

  /** Undoes one `record`, before the subnet gets another crawler or leaves the tree. Ignores keys at which the crawler owns nothing. */
  forget(placement: Placement, crawlerId: CrawlerId): void {
    const slot = this.#slots.get(crawlerId);
    if (slot === undefined) return;
    this.#eachKey(placement, (counts, key) => counts.lower(key, slot));
    this.#countAtRoot(slot, -1);
  }

  /** Owners with their counts at this level, first come first. */
  owners(level: Level): CrawlerCount[] {
    const owners: CrawlerCount[] = [];
    this.eachOwner(level, (crawlerId, count) => owners.push({ crawlerId, count }));
    return owners;
  }

  /** Like `owners`, without building a list. */
  eachOwner({ kind, key }: Level, visit: (crawlerId: CrawlerId, count: number) => void): void {
    this.#counts[kind].each(key, (slot, count) => visit(this.#crawlers[slot]!, count));
  }

  /** Total number of the candidates' subnets at this level. */
  totalAmong(fleet: CandidateFleet, { kind, key }: Level): number {
    return kind === "root"
      ? this.#rootOf(fleet).total
      : this.#counts[kind].total(key, this.#indicesIn(fleet));
  }

  /** Adds each candidate's weighted count at this level to `shares`. */
  addAmong(fleet: CandidateFleet, { kind, key }: Level, weight: number, shares: Float64Array): void {
    if (kind !== "root") {
      this.#counts[kind].addTo(shares, key, this.#indicesIn(fleet), weight);
      return;
    }
    const { counts } = this.#rootOf(fleet);
    for (let index = 0; index < counts.length; index++) shares[index]! += counts[index]! * weight;
  }

  #eachKey(placement: Placement, change: ChangeCount): void {
    const { holderKey, subnetKey, ancestorKeys, widerKeys = [], country, slash8Key } = placement;
    const { published, holder, subnet, own, children, country: countries, slash8, root } = this.#counts;
    const parentKey = ancestorKeys[0] ?? widerKeys[0];
    eachPlace(placement, (place) => change(published, place));
    if (holderKey !== null) change(holder, holderKey);
    change(own, subnetKey);
    if (parentKey !== undefined) change(children, parentKey);
    change(subnet, subnetKey);
    for (const key of ancestorKeys) change(subnet, key);
    for (const key of widerKeys) change(subnet, key);
    if (country !== null) change(countries, country);
    change(slash8, slash8Key);
    change(root, rootLevel.key);
  }

  /** Maps slots to candidates' positions, −1 for others. Cached per fleet; new slots are appended. */
  #indicesIn(fleet: CandidateFleet): Int32Array {
    const slots = this.#crawlers.length;
    let known = this.#fleetIndices.get(fleet);
    if (known?.slots === slots) return known.indices;
    if (known === undefined || known.indices.length < slots) {
      const indices = new Int32Array(Math.ceil(1.25 * slots)).fill(-1);
      if (known !== undefined) indices.set(known.indices);
      known = { indices, slots: known?.slots ?? 0 };
      this.#fleetIndices.set(fleet, known);
    }
    for (let slot = known.slots; slot < slots; slot++)
      known.indices[slot] = fleet.indexOf.get(this.#crawlers[slot]!) ?? -1;
    known.slots = slots;
    return known.indices;
  }

  /** Caches the root's counts, because its list is as long as the fleet and every round reads it. */
  #rootOf(fleet: CandidateFleet): RootCounts {
    if (this.#root?.fleet === fleet) return this.#root;
    const { length } = fleet.candidates;
    const counts =
      this.#root?.counts.length === length ? this.#root.counts.fill(0) : new Float64Array(length);
    const indices = this.#indicesIn(fleet);
    const total = this.#counts.root.total(rootLevel.key, indices);
    this.#counts.root.addTo(counts, rootLevel.key, indices, 1);
    this.#root = { fleet, counts, total };
    return this.#root;
  }

  #countAtRoot(slot: number, change: 1 | -1): void {
    if (this.#root === null) return;
    const index = this.#indicesIn(this.#root.fleet)[slot]!;
    if (index < 0) return;
    const after = this.#root.counts[index]! + change;
    // The crawler owned nothing that could be undone.
    if (after < 0) return;
    this.#root.counts[index] = after;
    this.#root.total += change;
  }

  #slotOf(crawlerId: CrawlerId): number {
    const known = this.#slots.get(crawlerId);
    if (known !== undefined) return known;
    const slot = this.#crawlers.push(crawlerId) - 1;
    this.#slots.set(crawlerId, slot);
    return slot;
  }
}

interface FleetIndices {
  readonly indices: Int32Array;
  slots: number;
}

/** Total counts of the latest fleet's candidates, updated with every record. */
interface RootCounts {
  readonly fleet: CandidateFleet;
  /** By candidate position. */
  readonly counts: Float64Array;
  total: number;
}

/** Sources that name the same place count once. */
function eachPlace({ published = [] }: Placement, visit: (place: string) => void): void {
  published.forEach(({ place }, at) => {
    if (published.findIndex((other) => other.place === place) === at) visit(place);
  });
}

type ChangeCount = (counts: OwnerCounts, key: PlaceKey) => void;

const rootLevel: Level = { kind: "root", key: 0 };

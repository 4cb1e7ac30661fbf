/**
 * Counts past delegations: for every key of a placement (subnet, less specific subnets, holder, country, /8, root) how
 * many subnets each crawler owns there. It starts with each crawler's own subnet, which the paper (section 4.1)
 * delegates without a probe, and learns from every decision.
 *
 * The policy `ipmicra` asks who owns anything at a key, `nearest` asks how much.
 *
 * Slots number the crawlers in order of appearance. Half a million delegated subnets, three in ten with another
 * crawler than their neighbours, take some 80 MB.
 */
import type { CrawlerId } from "#core/ids";
import type { CandidateFleet } from "./fleet.ts";
import type { PlaceKey, Placement, PublishedPlace } from "./placement.ts";

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

/** Levels from the most to the least specific, over which `nearest` backs off (design section 5). */
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
 * The order in which `ipmicra` climbs (paper section 4.3), one list per step: the subnet, its parent, and so on up to the
 * root. Each step names a subnet's own crawler, then its children's, then its descendants'. Later lists repeat earlier
 * crawlers.
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

  /** Records a delegation by a round or a move, or that of the subnet in which the crawler is located. */
  record(placement: Placement, crawlerId: CrawlerId): void {
    const slot = this.#slotOf(crawlerId);
    this.#eachKey(placement, (counts, key) => counts.raise(key, slot));
    this.#countAtRoot(slot, 1);
  }

  /** Undoes one `record` before the subnet changes its crawler or leaves the tree. Ignores keys where it owns nothing. */
  forget(placement: Placement, crawlerId: CrawlerId): void {
    const slot = this.#slots.get(crawlerId);
    if (slot === undefined) return;
    this.#eachKey(placement, (counts, key) => counts.lower(key, slot));
    this.#countAtRoot(slot, -1);
  }

  /** Owners with their counts at this level, in order of first delegation. */
  owners(level: Level): CrawlerCount[] {
    const owners: CrawlerCount[] = [];
    this.eachOwner(level, (crawlerId, count) => owners.push({ crawlerId, count }));
    return owners;
  }

  /** Visits what `owners` returns, without building a list. */
  eachOwner({ kind, key }: Level, visit: (crawlerId: CrawlerId, count: number) => void): void {
    this.#counts[kind].each(key, (slot, count) => visit(this.#crawlers[slot]!, count));
  }

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

  /** Maps slots to candidates' positions, −1 for others. Cached per fleet. New slots are appended. */
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
  /** Counts by candidate position. */
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

// Counts how many subnets each crawler owns under each key of one kind. A key with one owner, as nearly all have, is one
// number in a table. Only keys with several owners have a list:
//
//     0                       nobody
//     slot · 2^19 + count     one owner
//     below 0                 minus the number of a list

/** 12 bits of slot above 19 bits of count stay below 2^31. Larger values use a list. */
const countBits = 19;

const mostPacked = 2 ** countBits - 1;
const lastPackedSlot = 2 ** 12 - 1;

export class OwnerCounts {
  readonly #cells = new Map<PlaceKey, number>();
  readonly #lists: OwnerLists;

  /** Several kinds of keys may share the lists. */
  constructor(lists: OwnerLists) {
    this.#lists = lists;
  }

  raise(key: PlaceKey, slot: number): void {
    this.#change(key, slot, this.#raised);
  }

  /** Subtracts one. Ignores a slot without a count. */
  lower(key: PlaceKey, slot: number): void {
    this.#change(key, slot, this.#lowered);
  }

  /** Visits the owners in order of first delegation. */
  each(key: PlaceKey, visit: (slot: number, count: number) => void): void {
    const cell = this.#get(key);
    if (cell > 0) visit(cell >>> countBits, cell & mostPacked);
    if (cell >= 0) return;
    const pairs = this.#lists.pairsOf(-cell);
    for (let at = 0; at < pairs.length; at += 2) visit(pairs[at]!, pairs[at + 1]!);
  }

  /** Sum over the slots with a non-negative index. */
  total(key: PlaceKey, indices: Int32Array): number {
    const cell = this.#get(key);
    if (cell >= 0) return cell > 0 && indices[cell >>> countBits]! >= 0 ? cell & mostPacked : 0;
    const pairs = this.#lists.pairsOf(-cell);
    let total = 0;
    for (let at = 0; at < pairs.length; at += 2) if (indices[pairs[at]!]! >= 0) total += pairs[at + 1]!;
    return total;
  }

  /** Adds those counts, times the weight, at the slots' indices. */
  addTo(sums: Float64Array, key: PlaceKey, indices: Int32Array, weight: number): void {
    const cell = this.#get(key);
    if (cell > 0) {
      const index = indices[cell >>> countBits]!;
      if (index >= 0) sums[index]! += (cell & mostPacked) * weight;
    }
    if (cell >= 0) return;
    const pairs = this.#lists.pairsOf(-cell);
    for (let at = 0; at < pairs.length; at += 2) {
      const index = indices[pairs[at]!]!;
      if (index >= 0) sums[index]! += pairs[at + 1]! * weight;
    }
  }

  #get(key: PlaceKey): number {
    return this.#cells.get(key) ?? 0;
  }

  #change(key: PlaceKey, slot: number, change: (cell: number, slot: number) => number): void {
    const cell = change(this.#get(key), slot);
    if (cell === 0) this.#cells.delete(key);
    else this.#cells.set(key, cell);
  }

  readonly #raised = (cell: number, slot: number): number => {
    if (cell === 0) return slot <= lastPackedSlot ? packed(slot, 1) : -this.#lists.make(slot, 1);
    const count = cell & mostPacked;
    if (cell > 0 && cell >>> countBits === slot && count < mostPacked) return cell + 1;
    const list = cell < 0 ? -cell : this.#lists.make(cell >>> countBits, count);
    this.#lists.raise(list, slot);
    return -list;
  };

  readonly #lowered = (cell: number, slot: number): number => {
    if (cell < 0) return this.#loweredList(-cell, slot);
    if (cell === 0 || cell >>> countBits !== slot) return cell;
    return (cell & mostPacked) > 1 ? cell - 1 : 0;
  };

  /** A list with one owner becomes a number again. */
  #loweredList(list: number, slot: number): number {
    this.#lists.lower(list, slot);
    const [first = 0, count = 0, second] = this.#lists.pairsOf(list);
    if (count > 0 && (second !== undefined || first > lastPackedSlot || count > mostPacked)) return -list;
    this.#lists.free(list);
    return count > 0 ? packed(first, count) : 0;
  }
}

const packed = (slot: number, count: number): number => slot * 2 ** countBits + count;

/** Lists of slots with counts, in order of first delegation, for keys with several owners. */
export class OwnerLists {
  /** Slot, count, slot, count … of each list. List number 0 is unused. */
  readonly #lists: number[][] = [[]];
  readonly #left: number[] = [];

  /** Creates a list with one owner. Returns its number. */
  make(slot: number, count: number): number {
    const list = this.#left.pop() ?? this.#lists.length;
    this.#lists[list] = [slot, count];
    return list;
  }

  raise(list: number, slot: number): void {
    const pairs = this.#lists[list]!;
    const at = indexOf(pairs, slot);
    if (at < 0) pairs.push(slot, 1);
    else pairs[at + 1]! += 1;
  }

  /** Ignores missing slots. Removes a slot whose count reaches 0. */
  lower(list: number, slot: number): void {
    const pairs = this.#lists[list]!;
    const at = indexOf(pairs, slot);
    if (at < 0) return;
    pairs[at + 1]! -= 1;
    if (pairs[at + 1] === 0) pairs.splice(at, 2);
  }

  pairsOf(list: number): readonly number[] {
    return this.#lists[list]!;
  }

  /** Frees the list. Its number becomes invalid. */
  free(list: number): void {
    this.#lists[list] = [];
    this.#left.push(list);
  }
}

function indexOf(pairs: readonly number[], slot: number): number {
  for (let at = 0; at < pairs.length; at += 2) if (pairs[at] === slot) return at;
  return -1;
}

// The prior probability that each candidate is the nearest, by backing off over the tree (design section 5). Each key
// has the weight of its evidence, s/(s+1) for s past delegations, and leaves the rest to the next, less specific key.
//
// Only candidates count: an absent crawler's subnets do not show which of the others is near.

export interface Prior {
  /** Probability per candidate. The sum is at most 1, and the remainder is belief that no key claimed. */
  readonly shares: Float64Array;
  /**
   * 1/(s+1) for s past delegations of the same holder (without a holder, of the next less specific subnet): 1 when
   * new, near 0 when well known. Published places do not affect it: they suggest whom to ask, not how good earlier
   * choices were (test/bench/results/place-labels.md).
   */
  readonly unfamiliarity: number;
  readonly published?: readonly KnownPlace[];
}

/** A published place where candidates own other subnets. */
interface KnownPlace extends PublishedPlace {
  /** From 0 to 1. */
  readonly trust: number;
  readonly subnets: number;
}

export function priorOf(
  placement: Placement,
  fleet: CandidateFleet,
  knowledge: DelegationKnowledge,
  /** Trust in a source of published places, 0 to 1. */
  trustIn: (source: string) => number = () => 1,
): Prior {
  const shares = new Float64Array(fleet.candidates.length);
  let rest = 1;
  let unfamiliarity = 1;
  const published: KnownPlace[] = [];
  for (const { source, place } of placement.published ?? []) {
    const level = { kind: "published", key: place } as const;
    const total = knowledge.totalAmong(fleet, level);
    if (total === 0) continue;
    const trust = trustIn(source);
    published.push({ source, place, trust, subnets: total });
    const spoken = (trust * total) / (total + 1);
    knowledge.addAmong(fleet, level, (rest * spoken) / total, shares);
    rest *= 1 - spoken;
  }
  const closest = placement.holderKey ?? placement.ancestorKeys[0];
  for (const level of backOffLevels(placement)) {
    const total = knowledge.totalAmong(fleet, level);
    if (total > 0) {
      knowledge.addAmong(fleet, level, rest / (total + 1), shares);
      rest /= total + 1;
    }
    if (level.key === closest && level.kind === (placement.holderKey === null ? "subnet" : "holder")) {
      unfamiliarity = 1 / (total + 1);
    }
  }
  return { shares, unfamiliarity, ...(published.length > 0 && { published }) };
}

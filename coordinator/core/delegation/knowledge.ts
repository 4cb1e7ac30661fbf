/**
 * What past delegations teach: for every key of a placement (subnet, less specific subnets, holder,
 * country, /8, root) how many subnets under that key each crawler owns. Seeded with each crawler's own
 * subnet, where the paper (section 4.1) delegates without a probe; fed with every decision after.
 *
 * Both policies that learn read it: `ipmicra` asks who owns anything at a key, `nearest` how much.
 *
 * Memory: a key that one crawler owns alone (nearly all of them) is one map entry whose value is a small
 * integer, `slot · 2^19 + count`; only keys shared by several crawlers hold a list of pairs. Slots number the
 * crawlers in the order in which they appeared. V8 allows about 16 million keys in a map.
 */
import type { CrawlerId } from "../ids.ts";
import type { PlaceKey, Placement } from "./placement.ts";

/** One place where counts are kept. There is one root, with the key 0. */
export interface Level {
  readonly kind: "holder" | "subnet" | "country" | "slash8" | "root";
  readonly key: PlaceKey;
}

export interface CrawlerCount {
  readonly crawlerId: CrawlerId;
  readonly count: number;
}

/** Levels in the order in which `nearest` backs off (design section 5): from what says most to what says least. */
export function backOffLevels(placement: Placement): Level[] {
  const levels: Level[] = [];
  if (placement.holderKey !== null) levels.push({ kind: "holder", key: placement.holderKey });
  levels.push({ kind: "subnet", key: placement.subnetKey });
  for (const key of placement.ancestorKeys) levels.push({ kind: "subnet", key });
  if (placement.country !== null) levels.push({ kind: "country", key: placement.country });
  levels.push({ kind: "slash8", key: placement.slash8Key }, rootLevel);
  return levels;
}

/** The subnet itself, then upward: the way `ipmicra` climbs (paper section 4.3). */
export function climbLevels(placement: Placement): Level[] {
  return [
    { kind: "subnet", key: placement.subnetKey },
    ...placement.ancestorKeys.map((key): Level => ({ kind: "subnet", key })),
    { kind: "slash8", key: placement.slash8Key },
    rootLevel,
  ];
}

export class DelegationKnowledge {
  readonly #cells: Readonly<Record<Level["kind"], Map<PlaceKey, Cell>>> = {
    holder: new Map(),
    subnet: new Map(),
    country: new Map(),
    slash8: new Map(),
    root: new Map(),
  };
  readonly #crawlers: CrawlerId[] = [];
  readonly #slots = new Map<CrawlerId, number>();

  /** The subnet is delegated to the crawler: by a round, a move, or because the crawler stands in it. */
  record(placement: Placement, crawlerId: CrawlerId): void {
    const slot = this.#slotOf(crawlerId);
    for (const level of backOffLevels(placement)) {
      const cells = this.#cells[level.kind];
      cells.set(level.key, raised(cells.get(level.key), slot));
    }
  }

  /**
   * Takes back one `record` of the same placement and crawler, before the subnet goes to another crawler
   * or leaves the tree. What was never recorded is left alone.
   */
  forget(placement: Placement, crawlerId: CrawlerId): void {
    const slot = this.#slots.get(crawlerId);
    if (slot === undefined) return;
    for (const level of backOffLevels(placement)) {
      const cells = this.#cells[level.kind];
      const left = lowered(cells.get(level.key), slot);
      if (left === undefined) cells.delete(level.key);
      else cells.set(level.key, left);
    }
  }

  /** Who owns how many subnets at and under this level, first come first. */
  owners(level: Level): CrawlerCount[] {
    const owners: CrawlerCount[] = [];
    this.eachOwner(level, (crawlerId, count) => owners.push({ crawlerId, count }));
    return owners;
  }

  /** The same without making a list: the prior walks thousands of these a second. */
  eachOwner(level: Level, visit: (crawlerId: CrawlerId, count: number) => void): void {
    const cell = this.#cells[level.kind].get(level.key);
    if (cell === undefined) return;
    if (typeof cell === "number") {
      visit(this.#crawlers[cell >>> countBits]!, cell & maxPackedCount);
      return;
    }
    for (let at = 0; at < cell.length; at += 2) visit(this.#crawlers[cell[at]!]!, cell[at + 1]!);
  }

  #slotOf(crawlerId: CrawlerId): number {
    const known = this.#slots.get(crawlerId);
    if (known !== undefined) return known;
    const slot = this.#crawlers.push(crawlerId) - 1;
    this.#slots.set(crawlerId, slot);
    return slot;
  }
}

const rootLevel: Level = { kind: "root", key: 0 };

/** 12 bits of slot above 19 bits of count stay a small integer in V8; beyond either, a list. */
const countBits = 19;
const maxPackedCount = 2 ** countBits - 1;
const maxPackedSlot = 2 ** 12 - 1;

/** One owner packed, or `[slot, count, slot, count …]` for several. */
type Cell = number | number[];

function raised(cell: Cell | undefined, slot: number): Cell {
  if (cell === undefined) {
    return slot <= maxPackedSlot ? slot * (maxPackedCount + 1) + 1 : [slot, 1];
  }
  if (typeof cell !== "number") return raisedInList(cell, slot);
  const count = cell & maxPackedCount;
  if (cell >>> countBits === slot && count < maxPackedCount) return cell + 1;
  return raisedInList([cell >>> countBits, count], slot);
}

/** Grows by copying: `push` would reserve room for 16 more in each of a million lists. */
function raisedInList(list: number[], slot: number): number[] {
  const at = positionOf(list, slot);
  if (at < 0) return list.concat(slot, 1);
  list[at + 1]! += 1;
  return list;
}

/** The cell with one less for the slot; undefined when nothing is left. */
function lowered(cell: Cell | undefined, slot: number): Cell | undefined {
  if (cell === undefined) return undefined;
  if (typeof cell === "number") {
    if (cell >>> countBits !== slot) return cell;
    return (cell & maxPackedCount) > 1 ? cell - 1 : undefined;
  }
  const at = positionOf(cell, slot);
  if (at < 0) return cell;
  cell[at + 1]! -= 1;
  if (cell[at + 1] === 0) cell.splice(at, 2);
  return cell.length > 0 ? cell : undefined;
}

function positionOf(list: readonly number[], slot: number): number {
  for (let at = 0; at < list.length; at += 2) if (list[at] === slot) return at;
  return -1;
}

/**
 * What past delegations teach: for every key of a placement (subnet, less specific subnets, holder,
 * country, /8, root) how many subnets under that key each crawler owns. Seeded with each crawler's own
 * subnet, where the paper (section 4.1) delegates without a probe; fed with every decision after.
 *
 * Both policies that learn read it: `ipmicra` asks who owns anything at a key, `nearest` how much.
 *
 * Memory: a key that one crawler owns alone (nearly all of them) is one number, `slot · 2^19 + count`, in a
 * table of numbers; only keys shared by several crawlers have a list of pairs (`owner-lists.ts`). Slots number
 * the crawlers in the order in which they appeared. A million delegated subnets of a registry take some 50 MB.
 */
import type { CrawlerId } from "../ids.ts";
import { NumberMap } from "./number-map.ts";
import { OwnerLists } from "./owner-lists.ts";
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
  readonly #cells: Readonly<Record<Level["kind"], Cells>> = {
    holder: new Cells(),
    subnet: new Cells(),
    country: new Cells(),
    slash8: new Cells(),
    root: new Cells(),
  };
  readonly #lists = new OwnerLists();
  readonly #crawlers: CrawlerId[] = [];
  readonly #slots = new Map<CrawlerId, number>();

  /** The subnet is delegated to the crawler: by a round, a move, or because the crawler stands in it. */
  record(placement: Placement, crawlerId: CrawlerId): void {
    const slot = this.#slotOf(crawlerId);
    this.#eachCell(placement, (cells, key) => cells.set(key, this.#raised(cells.get(key), slot)));
  }

  /**
   * Takes back one `record` of the same placement and crawler, before the subnet goes to another crawler
   * or leaves the tree. What was never recorded is left alone.
   */
  forget(placement: Placement, crawlerId: CrawlerId): void {
    const slot = this.#slots.get(crawlerId);
    if (slot === undefined) return;
    this.#eachCell(placement, (cells, key) => cells.set(key, this.#lowered(cells.get(key), slot)));
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
    if (cell === 0) return;
    if (cell > 0) {
      visit(this.#crawlers[cell >>> countBits]!, cell & maxPackedCount);
      return;
    }
    let count = this.#lists.countAt(-cell, 0);
    for (let index = 0; count > 0; count = this.#lists.countAt(-cell, ++index)) {
      visit(this.#crawlers[this.#lists.slotAt(-cell, index)]!, count);
    }
  }

  /** What the counts take in memory, in bytes, but for the keys that are texts. */
  get bytes(): number {
    return Object.values(this.#cells).reduce((sum, cells) => sum + cells.bytes, this.#lists.bytes);
  }

  #eachCell({ holderKey, subnetKey, ancestorKeys, country, slash8Key }: Placement, change: ChangeCell): void {
    if (holderKey !== null) change(this.#cells.holder, holderKey);
    change(this.#cells.subnet, subnetKey);
    for (const key of ancestorKeys) change(this.#cells.subnet, key);
    if (country !== null) change(this.#cells.country, country);
    change(this.#cells.slash8, slash8Key);
    change(this.#cells.root, rootLevel.key);
  }

  #slotOf(crawlerId: CrawlerId): number {
    const known = this.#slots.get(crawlerId);
    if (known !== undefined) return known;
    const slot = this.#crawlers.push(crawlerId) - 1;
    this.#slots.set(crawlerId, slot);
    return slot;
  }

  #raised(cell: number, slot: number): number {
    if (cell < 0) return -this.#lists.raise(-cell, slot, 1);
    if (cell === 0) return slot <= maxPackedSlot ? packed(slot, 1) : -this.#lists.make(slot, 1);
    const count = cell & maxPackedCount;
    if (cell >>> countBits === slot && count < maxPackedCount) return cell + 1;
    return -this.#lists.raise(this.#lists.make(cell >>> countBits, count), slot, 1);
  }

  #lowered(cell: number, slot: number): number {
    if (cell < 0) return this.#loweredList(-cell, slot);
    if (cell === 0 || cell >>> countBits !== slot) return cell;
    return (cell & maxPackedCount) > 1 ? cell - 1 : 0;
  }

  /** A list of one becomes a number again. */
  #loweredList(list: number, slot: number): number {
    this.#lists.lower(list, slot);
    const count = this.#lists.countAt(list, 0);
    const first = this.#lists.slotAt(list, 0);
    const isLong = this.#lists.countAt(list, 1) > 0;
    if (count > 0 && (isLong || first > maxPackedSlot || count > maxPackedCount)) return -list;
    this.#lists.free(list);
    return count > 0 ? packed(first, count) : 0;
  }
}

const rootLevel: Level = { kind: "root", key: 0 };

/** 12 bits of slot above 19 bits of count stay below 2^31; beyond either, a list. */
const countBits = 19;
const maxPackedCount = 2 ** countBits - 1;
const maxPackedSlot = 2 ** 12 - 1;

const packed = (slot: number, count: number): number => slot * (maxPackedCount + 1) + count;

type ChangeCell = (cells: Cells, key: PlaceKey) => void;

/** Per key one number: 0 for nobody, one owner packed, or a list's number below 0. */
class Cells {
  /** Keys of 32 bits, as subnets and holders have. */
  readonly #byNumber = new NumberMap();
  readonly #byText = new Map<PlaceKey, number>();

  get bytes(): number {
    return this.#byNumber.bytes;
  }

  get(key: PlaceKey): number {
    return isSmall(key) ? this.#byNumber.get(key) : (this.#byText.get(key) ?? 0);
  }

  set(key: PlaceKey, cell: number): void {
    if (isSmall(key)) this.#byNumber.set(key, cell);
    else if (cell === 0) this.#byText.delete(key);
    else this.#byText.set(key, cell);
  }
}

const isSmall = (key: PlaceKey): key is number => typeof key === "number" && (key | 0) === key;

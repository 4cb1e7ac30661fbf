import type { CrawlerId, SubnetId } from "#core/ids";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import type { TreeColumns } from "../../place/subnets/tree-columns.ts";
import { parentPlace, type Span, spanOfPlace } from "./places.ts";
import type { ExploreClock } from "./reads.ts";

/** One tree with its delegations, which are read by place. */
export class ExploredWorld {
  readonly columns: TreeColumns;
  readonly table: CoordinatorState["delegationTable"];
  readonly crawlers: CrawlerCounts;
  loads = new PlaceLoads({ places: [], pagesPerDay: [], dueHosts: [] });
  anycast: ReadonlySet<SubnetId> = new Set();
  /** Subnets with hosts or parts that are delegated separately. */
  finer: ReadonlySet<SubnetId> = new Set();

  constructor({ tree, delegationTable }: Pick<CoordinatorState, "tree" | "delegationTable">) {
    this.columns = tree.columns;
    this.table = delegationTable;
    this.crawlers = new CrawlerCounts(tree.size, (place) => {
      const row = this.rowAt(place);
      return row < 0 ? nobody : this.table.crawlerAt(row);
    });
  }

  /** Returns the row of the delegation that applies to the place (its own or the nearest less specific subnet's), or −1. */
  rowAt(place: number): number {
    for (let at = place; at >= 0; at = parentPlace(this.columns, at)) {
      const row = this.#ownRow(at);
      if (row >= 0) return row;
    }
    return -1;
  }

  /** Returns NaN if it was not measured. */
  rttMsAt(place: number): number {
    const row = this.rowAt(place);
    return row < 0 ? Number.NaN : this.table.rttMsAt(row);
  }

  isOwn(place: number): boolean {
    return this.#ownRow(place) >= 0;
  }

  /** The subnet must be in the tree. */
  placeOf(subnetId: SubnetId): number {
    return this.columns.byId.firstRow(subnetId);
  }

  /** Call it when the subnet's delegation has changed, which also affects subnets within it that have none of their own. */
  follow(subnetId: SubnetId): void {
    const place = this.placeOf(subnetId);
    if (place >= 0) this.crawlers.forget(spanOfPlace(this.columns, place));
  }

  #ownRow(place: number): number {
    return this.table.rowOf(this.columns.ids[place] as SubnetId);
  }
}

// How many subnets of any stretch of the tree each crawler has. Blocks of a thousand places are counted once and cached until
// one changes. An answer over millions of subnets therefore adds up a few thousand small counts, and a view's legend, totals
// and bars agree. Each subnet counts once, whatever its size.

/** The key 0 counts subnets that nobody crawls. */
export const nobody = 0;

/** How many subnets each crawler has. */
export type Counts = Map<CrawlerId | typeof nobody, number>;

export const placesPerBlock = 1024;

export const blockOf = (place: number): number => Math.floor(place / placesPerBlock);

interface Block {
  readonly crawlers: Int32Array;
  readonly counts: Counts;
}

export class CrawlerCounts {
  readonly #places: number;
  readonly #crawlerOf: (place: number) => CrawlerId | typeof nobody;
  readonly #blocks: (Block | undefined)[] = [];

  constructor(places: number, crawlerOf: (place: number) => CrawlerId | typeof nobody) {
    this.#places = places;
    this.#crawlerOf = crawlerOf;
  }

  /** Drops the cached counts for a range of places. Call it when their delegation has changed. */
  forget({ from, to }: Span): void {
    for (let block = blockOf(from); block * placesPerBlock < to; block += 1) delete this.#blocks[block];
  }

  at(place: number): CrawlerId | typeof nobody {
    return this.#block(blockOf(place)).crawlers[place % placesPerBlock] as CrawlerId;
  }

  /** Whether the crawler has any of the thousand places of this block. */
  has(block: number, crawler: CrawlerId | typeof nobody): boolean {
    return this.#block(block).counts.has(crawler);
  }

  async of(span: Span, turns: WorkTurns): Promise<Counts> {
    for (let block = blockOf(span.from); block * placesPerBlock < span.to; block += 1) {
      if (this.#blocks[block] !== undefined) continue;
      this.#block(block);
      await turns.breathe();
    }
    return this.known(span);
  }

  /** Counts synchronously, for spans that are cached or small. */
  known({ from, to }: Span): Counts {
    const sums: Counts = new Map();
    for (let at = from; at < to; ) {
      const first = blockOf(at) * placesPerBlock;
      const end = Math.min(to, first + placesPerBlock);
      const { crawlers, counts } = this.#block(blockOf(at));
      if (end - at === placesPerBlock) for (const [crawler, count] of counts) addTo(sums, crawler, count);
      else for (; at < end; at += 1) addTo(sums, crawlers[at - first] as CrawlerId, 1);
      at = end;
    }
    return sums;
  }

  #block(index: number): Block {
    const known = this.#blocks[index];
    if (known !== undefined) return known;
    const first = index * placesPerBlock;
    const crawlers = new Int32Array(Math.min(placesPerBlock, this.#places - first));
    const counts: Counts = new Map();
    for (let at = 0; at < crawlers.length; at += 1) {
      const crawler = this.#crawlerOf(first + at);
      crawlers[at] = crawler;
      addTo(counts, crawler, 1);
    }
    const block = { crawlers, counts };
    this.#blocks[index] = block;
    return block;
  }
}

export function addTo(counts: Counts, crawler: CrawlerId | typeof nobody, count: number): void {
  counts.set(crawler, (counts.get(crawler) ?? 0) + count);
}

// The fetch load of subnets with hosts, by place. They are few, so a sorted list with running sums answers for a single
// subnet and for stretches of places.

/** Parallel columns in any order, with each place once. */
interface LoadColumns {
  readonly places: readonly number[];
  readonly pagesPerDay: readonly number[];
  /** How many hosts have due pages. */
  readonly dueHosts: readonly number[];
}

/** Place and index share one number, which sorts fastest. 2^26 loads of 2^27 places remain exact. */
const mostLoads = 2 ** 26;

export class PlaceLoads {
  /** The places in tree order. */
  readonly places: Int32Array;
  /** Running sums, with one element more than `places`. */
  readonly #pagesPerDay: Float64Array;
  readonly #dueHosts: Float64Array;

  constructor({ places, pagesPerDay, dueHosts }: LoadColumns) {
    const keys = Float64Array.from(places, (place, at) => place * mostLoads + at).sort();
    this.places = new Int32Array(keys.length);
    this.#pagesPerDay = new Float64Array(keys.length + 1);
    this.#dueHosts = new Float64Array(keys.length + 1);
    for (const [index, key] of keys.entries()) {
      const at = key % mostLoads;
      this.places[index] = places[at] as number;
      this.#pagesPerDay[index + 1] = (this.#pagesPerDay[index] as number) + (pagesPerDay[at] as number);
      this.#dueHosts[index + 1] = (this.#dueHosts[index] as number) + (dueHosts[at] as number);
    }
  }

  pagesPerDay(span: Span): number {
    return this.#sum(this.#pagesPerDay, span);
  }

  dueHosts(span: Span): number {
    return this.#sum(this.#dueHosts, span);
  }

  pagesPerDayAt(place: number): number {
    return this.pagesPerDay({ from: place, to: place + 1 });
  }

  dueHostsAt(place: number): number {
    return this.dueHosts({ from: place, to: place + 1 });
  }

  #sum(sums: Float64Array, { from, to }: Span): number {
    return (sums[this.#indexFrom(to)] as number) - (sums[this.#indexFrom(from)] as number);
  }

  /** Returns how many loads precede the place. */
  #indexFrom(place: number): number {
    let [low, high] = [0, this.places.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.places[middle] as number) < place) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

// Splits long work into short turns. After a few ms it yields to all other pending work.

/** The length of a turn, by which other work may be delayed. */
const turnMs = 5;

export class WorkTurns {
  readonly #clock: Pick<ExploreClock, "steadyMs" | "yieldTurn">;
  #startedMs: number;

  constructor(clock: Pick<ExploreClock, "steadyMs" | "yieldTurn">) {
    this.#clock = clock;
    this.#startedMs = clock.steadyMs();
  }

  /** Await it after each small piece of work. */
  async breathe(): Promise<void> {
    if (this.#clock.steadyMs() - this.#startedMs < turnMs) return;
    await this.#clock.yieldTurn();
    this.#startedMs = this.#clock.steadyMs();
  }
}

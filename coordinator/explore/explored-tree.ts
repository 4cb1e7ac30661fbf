/**
 * One tree with who crawls what in it, by place: what maps, trees and lists are made from. Four bytes a subnet
 * besides what the coordinator has anyway, and four a delegation.
 */
import { asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";
import type { CoordinatorState } from "../delegation/state.ts";
import type { SubnetTree } from "../subnets/subnet-tree.ts";
import type { TreeColumns } from "../subnets/tree-columns.ts";
import { PlaceLoads } from "./place-loads.ts";
import { endPlace, parentPlace, sizeBits } from "./places.ts";
import type { ExploredLoad } from "./reads.ts";
import { blockOf, placesPerBlock, RollUps } from "./roll-ups.ts";
import type { PlaceFacts } from "./tile.ts";
import type { WorkTurns } from "./time-slices.ts";

const placesPerPiece = 8192;

export class ExploredWorld implements PlaceFacts {
  readonly tree: SubnetTree;
  readonly columns: TreeColumns;
  readonly rows: Int32Array;
  readonly #table: CoordinatorState["delegationTable"];
  readonly #crawlerNumbers = new Map<CrawlerId, number>();
  /** The same for small ids, which nearly all are. */
  readonly #smallNumbers = new Uint16Array(4096);
  readonly #crawlerIds: CrawlerId[] = [];
  #since = new Uint32Array(64);
  #anycast: ReadonlySet<SubnetId> = new Set();
  #finer: ReadonlySet<SubnetId> = new Set();
  #loads = noLoads;
  readonly summaries: BlockSummaries;
  readonly rollUps: RollUps;

  constructor(state: Pick<CoordinatorState, "tree" | "delegationTable">) {
    this.tree = state.tree;
    this.columns = state.tree.columns;
    this.#table = state.delegationTable;
    // Of no meaning until `readRows`: to fill so many numbers at once would take its time.
    this.rows = new Int32Array(state.tree.size);
    this.summaries = new BlockSummaries(state.tree.size);
    this.rollUps = new RollUps(this);
  }

  get delegationCount(): number {
    return this.#table.size;
  }

  get loads(): PlaceLoads {
    return this.#loads;
  }

  get anycast(): ReadonlySet<SubnetId> {
    return this.#anycast;
  }

  get finer(): ReadonlySet<SubnetId> {
    return this.#finer;
  }

  /** Besides the tree and the delegations. */
  get bytes(): number {
    const own = this.rows.byteLength + this.#since.byteLength + this.#loads.bytes;
    return own + this.summaries.bytes + this.rollUps.bytes;
  }

  /** Fills the rows of all places; parents stand before their children. */
  async readRows(turns: WorkTurns): Promise<void> {
    for (let from = 0; from < this.rows.length; from += placesPerPiece) {
      const span = { from, to: Math.min(this.rows.length, from + placesPerPiece) };
      this.#readRowsOf(span.from, span.to);
      // Who crawls what is asked for first, of everything.
      await this.rollUps.prepare(span, { colouring: "crawler", nowSeconds: 0 }, turns);
      await turns.breathe();
    }
  }

  /** The subnet's delegation changed; what is within it and has none of its own follows. Its place, or −1. */
  async follow(subnetId: SubnetId, turns: WorkTurns): Promise<number> {
    const place = this.columns.byId.firstRow(subnetId);
    const row = this.#table.rowOf(subnetId);
    if (place < 0 || row < 0) return place;
    const end = endPlace(this.columns, place);
    this.rows[place] = row;
    this.#summarise(place);
    for (let from = place + 1; from < end; from += placesPerPiece) {
      this.#inherit(from, Math.min(end, from + placesPerPiece));
      await turns.breathe();
    }
    this.rollUps.forget(place, end);
    return place;
  }

  #readRowsOf(from: number, to: number): void {
    const { ids } = this.columns;
    for (let place = from; place < to; place += 1) {
      const own = this.#table.rowOf(asSubnetId(ids[place] as number));
      this.rows[place] = own >= 0 ? own : this.#inheritedRow(place);
      this.#summarise(place);
    }
  }

  #inherit(from: number, to: number): void {
    for (let place = from; place < to; place += 1) {
      if (!this.isOwn(place)) this.rows[place] = this.#inheritedRow(place);
      this.#summarise(place);
    }
  }

  #summarise(place: number): void {
    const row = this.rows[place] as number;
    const isDelegated = row >= 0;
    this.summaries.note(place, {
      crawlerNumber: isDelegated ? this.crawlerAt(row) : 0,
      label: this.columns.labels[place] as number,
      rttMs: isDelegated ? this.rttMsAt(row) : Number.NaN,
      since: isDelegated ? this.sinceAt(row) : 0,
      isDelegated,
      isOwn: isDelegated && this.isOwn(place),
      sizeBits: sizeBits(this.columns, place),
    });
  }

  #inheritedRow(place: number): number {
    const parent = parentPlace(this.columns, place);
    return parent < 0 ? -1 : (this.rows[parent] as number);
  }

  /** Whether the place has a delegation of its own. */
  isOwn(place: number): boolean {
    const row = this.rows[place] as number;
    return row >= 0 && this.#table.subnetAt(row) === this.columns.ids[place];
  }

  /** Where the delegation that holds at the place stands: the place itself, or a less specific one; −1 for none. */
  ownerPlace(place: number): number {
    const row = this.rows[place] as number;
    return row < 0 ? -1 : this.columns.byId.firstRow(this.#table.subnetAt(row));
  }

  crawlerIdAt(row: number): CrawlerId {
    return this.#table.crawlerAt(row);
  }

  /** Numbers are given in the order in which crawlers are named. */
  nameCrawlers(crawlerIds: Iterable<CrawlerId>): void {
    for (const crawlerId of crawlerIds) this.numberOf(crawlerId);
  }

  numberOf(crawlerId: CrawlerId): number {
    const known = this.#smallNumbers[crawlerId] || this.#crawlerNumbers.get(crawlerId);
    if (known !== undefined) return known;
    this.#crawlerIds.push(crawlerId);
    const number = this.#crawlerIds.length;
    this.#crawlerNumbers.set(crawlerId, number);
    if (crawlerId < this.#smallNumbers.length) this.#smallNumbers[crawlerId] = number;
    return number;
  }

  /** Null for 0. */
  crawlerIdOf(number: number): CrawlerId | null {
    return this.#crawlerIds[number - 1] ?? null;
  }

  crawlerAt(row: number): number {
    return this.numberOf(this.#table.crawlerAt(row));
  }

  rttMsAt(row: number): number {
    return this.#table.rttMsAt(row);
  }

  sinceAt(row: number): number {
    return this.#since[row] ?? 0;
  }

  setSince(subnetId: SubnetId, since: number): void {
    const row = this.#table.rowOf(subnetId);
    if (row < 0) return;
    if (row >= this.#since.length) {
      const larger = new Uint32Array(Math.max(row + 1, Math.ceil(1.5 * this.#since.length)));
      larger.set(this.#since);
      this.#since = larger;
    }
    this.#since[row] = since;
  }

  setMarks(marks: { readonly anycast: ReadonlySet<SubnetId>; readonly finer: ReadonlySet<SubnetId> }): void {
    this.#anycast = marks.anycast;
    this.#finer = marks.finer;
  }

  async setLoads(loads: readonly ExploredLoad[], turns: WorkTurns): Promise<void> {
    const columns = {
      places: new Int32Array(loads.length),
      pagesPerDay: new Float64Array(loads.length),
      dueHosts: new Int32Array(loads.length),
    };
    let count = 0;
    for (const [index, { subnetId, pagesPerDay, dueHosts }] of loads.entries()) {
      if (index % 1024 === 0) await turns.breathe();
      const place = this.columns.byId.firstRow(subnetId);
      if (place < 0) continue;
      columns.places[count] = place;
      columns.pagesPerDay[count] = pagesPerDay;
      columns.dueHosts[count] = dueHosts;
      count += 1;
    }
    await turns.breathe();
    this.#loads = new PlaceLoads({
      places: columns.places.subarray(0, count),
      pagesPerDay: columns.pagesPerDay.subarray(0, count),
      dueHosts: columns.dueHosts.subarray(0, count),
    });
  }
}

const noLoads = new PlaceLoads({
  places: new Int32Array(0),
  pagesPerDay: new Float64Array(0),
  dueHosts: new Int32Array(0),
});

/**
 * What occurs among each thousand places, so that a search for something rare passes over nearly all of them. A
 * summary only grows; it may say yes too much, and never no too much.
 */

/** What a place adds to its block. */
interface BlockEntry {
  readonly crawlerNumber: number;
  readonly label: number;
  readonly rttMs: number;
  readonly since: number;
  readonly isDelegated: boolean;
  readonly isOwn: boolean;
  readonly sizeBits: number;
}

const [delegatedBit, ownBit, openBit] = [1, 2, 4];

class BlockSummaries {
  /** One bit of 32 for each crawler, by its number. */
  readonly #crawlers: Uint32Array;
  /** One bit of 32 for each country and registry, by the label. */
  readonly #labels: Uint32Array;
  readonly #states: Uint8Array;
  readonly #highestRttMs: Float32Array;
  readonly #lowestRttMs: Float32Array;
  readonly #oldest: Uint32Array;
  readonly #largestBits: Float32Array;

  constructor(places: number) {
    const blocks = Math.ceil(places / placesPerBlock);
    this.#crawlers = new Uint32Array(blocks);
    this.#labels = new Uint32Array(blocks);
    this.#states = new Uint8Array(blocks);
    this.#highestRttMs = new Float32Array(blocks).fill(-1);
    this.#lowestRttMs = new Float32Array(blocks).fill(Number.POSITIVE_INFINITY);
    this.#oldest = new Uint32Array(blocks).fill(0xffffffff);
    this.#largestBits = new Float32Array(blocks);
  }

  get bytes(): number {
    return 25 * this.#crawlers.length;
  }

  note(place: number, entry: BlockEntry): void {
    const block = blockOf(place);
    this.#labels[block] = (this.#labels[block] as number) | bitOf(entry.label);
    if (entry.sizeBits > (this.#largestBits[block] as number)) this.#largestBits[block] = entry.sizeBits;
    if (!entry.isDelegated) {
      this.#states[block] = (this.#states[block] as number) | openBit;
      return;
    }
    this.#states[block] = (this.#states[block] as number) | delegatedBit | (entry.isOwn ? ownBit : 0);
    this.#crawlers[block] = (this.#crawlers[block] as number) | bitOf(entry.crawlerNumber);
    this.noteSince(place, entry.since);
    if (Number.isNaN(entry.rttMs)) return;
    this.#highestRttMs[block] = Math.max(this.#highestRttMs[block] as number, entry.rttMs);
    this.#lowestRttMs[block] = Math.min(this.#lowestRttMs[block] as number, entry.rttMs);
  }

  noteSince(place: number, since: number): void {
    const block = blockOf(place);
    if (since > 0) this.#oldest[block] = Math.min(this.#oldest[block] as number, since);
  }

  mayHaveCrawler(block: number, crawlerNumber: number): boolean {
    return ((this.#crawlers[block] as number) & bitOf(crawlerNumber)) !== 0;
  }

  mayHaveLabel(block: number, labels: number): boolean {
    return ((this.#labels[block] as number) & labels) !== 0;
  }

  hasOwn(block: number): boolean {
    return ((this.#states[block] as number) & ownBit) !== 0;
  }

  hasOpen(block: number): boolean {
    return ((this.#states[block] as number) & openBit) !== 0;
  }

  hasDelegated(block: number): boolean {
    return ((this.#states[block] as number) & delegatedBit) !== 0;
  }

  /** With a little room for how RTTs are rounded. */
  mayHaveRtt(block: number, lowestMs: number, highestMs: number): boolean {
    return (
      (this.#highestRttMs[block] as number) >= lowestMs - 0.01 &&
      (this.#lowestRttMs[block] as number) <= highestMs + 0.01
    );
  }

  /** The highest RTT among them; below 0 where none was measured. */
  highestRttMs(block: number): number {
    return this.#highestRttMs[block] as number;
  }

  /** When the oldest delegation among them was made, in seconds since 1970. */
  oldest(block: number): number {
    return this.#oldest[block] as number;
  }

  largestBits(block: number): number {
    return this.#largestBits[block] as number;
  }

  mayBeOlderThan(block: number, since: number): boolean {
    return (this.#oldest[block] as number) <= since;
  }
}

/** A crawler's or a label's bit. */
export const bitOf = (number: number): number => 1 << (number & 31);

/**
 * Stores every delegation in columns. A subnet takes 29 bytes, up to half as much room to grow, and some 30 for the index by
 * id, while a map of records with a set per crawler takes 200. A delegation has a row. The rows of one crawler form a ring in
 * the order in which it got them.
 *
 *     crawler 7 ─► row 0 ◄─► row 3 ◄─► row 4 ◄─┐        ids and crawlers are those of the database, 32 bits;
 *                 ▲                            │        RTTs are rounded as the database's `real` is
 *                 └────────────────────────────┘
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import type { Delegation } from "./delegation.ts";

/** Makes the compiler demand a column for every field, optional ones included. */
type WholeDelegation = Required<Delegation>;

const firstRoom = 64;

/** Stands for no crawler. Ids count from 1. */
const nobody = -1;

const noRow = -1;
const measuredFlag = 1;

export class DelegationTable {
  readonly #rows = new Map<SubnetId, number>();
  readonly #rings = new Map<CrawlerId, Ring>();
  #columns = columnsFor(firstRoom);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(subnetId: SubnetId): WholeDelegation | null {
    const row = this.rowOf(subnetId);
    return row === noRow ? null : this.#delegationAt(row);
  }

  ownerOf(subnetId: SubnetId): CrawlerId | null {
    const row = this.rowOf(subnetId);
    return row === noRow ? null : (this.#columns.crawlerIds[row] as CrawlerId);
  }

  /** The delegation in this row. Rows are numbered from 0 in order of first delegation. Null beyond the last row. */
  at(row: number): WholeDelegation | null {
    return row >= 0 && row < this.#size ? this.#delegationAt(row) : null;
  }

  /** The subnet's row, which never changes, or −1. Loops over millions use rows instead of records. */
  rowOf(subnetId: SubnetId): number {
    return this.#rows.get(subnetId) ?? noRow;
  }

  subnetAt(row: number): SubnetId {
    return this.#columns.subnetIds[row] as SubnetId;
  }

  crawlerAt(row: number): CrawlerId {
    return this.#columns.crawlerIds[row] as CrawlerId;
  }

  /** NaN if unknown. */
  rttMsAt(row: number): number {
    return this.#columns.rttsMs[row] as number;
  }

  set(delegation: Delegation): void {
    const known = this.rowOf(delegation.subnetId);
    const row = known === noRow ? this.#newRow(delegation.subnetId) : known;
    const { crawlerIds, rttsMs, runnerUpIds, runnerUpRttsMs, flags } = this.#columns;
    if (known === noRow) this.#link(row, delegation.crawlerId);
    else if (crawlerIds[row] !== delegation.crawlerId) {
      this.#unlink(row);
      this.#link(row, delegation.crawlerId);
    }
    rttsMs[row] = delegation.rttMs ?? Number.NaN;
    runnerUpIds[row] = delegation.runnerUpId ?? nobody;
    runnerUpRttsMs[row] = delegation.runnerUpRttMs ?? Number.NaN;
    flags[row] = delegation.measured ? measuredFlag : 0;
  }

  countOf(crawlerId: CrawlerId): number {
    return this.#rings.get(crawlerId)?.count ?? 0;
  }

  subnetsOf(crawlerId: CrawlerId): SubnetId[] {
    const subnetIds: SubnetId[] = [];
    const ring = this.#rings.get(crawlerId);
    let row = ring?.first ?? noRow;
    for (let left = ring?.count ?? 0; left > 0; left -= 1) {
      subnetIds.push(this.#columns.subnetIds[row] as SubnetId);
      row = this.#columns.next[row] as number;
    }
    return subnetIds;
  }

  /** All delegations, in order of first delegation. */
  *[Symbol.iterator](): IterableIterator<WholeDelegation> {
    for (let row = 0; row < this.#size; row += 1) yield this.#delegationAt(row);
  }

  /** Visits measured delegations without creating records, to build the knowledge. */
  eachMeasured(visit: (subnetId: SubnetId, crawlerId: CrawlerId) => void): void {
    const { subnetIds, crawlerIds, flags } = this.#columns;
    for (let row = 0; row < this.#size; row += 1) {
      if (((flags[row] as number) & measuredFlag) === 0) continue;
      visit(subnetIds[row] as SubnetId, crawlerIds[row] as CrawlerId);
    }
  }

  #delegationAt(row: number): WholeDelegation {
    const { subnetIds, crawlerIds, rttsMs, runnerUpIds, runnerUpRttsMs, flags } = this.#columns;
    const runnerUpId = runnerUpIds[row] as number;
    return {
      subnetId: subnetIds[row] as SubnetId,
      crawlerId: crawlerIds[row] as CrawlerId,
      measured: ((flags[row] as number) & measuredFlag) !== 0,
      rttMs: rttAt(rttsMs, row),
      runnerUpId: runnerUpId === nobody ? null : (runnerUpId as CrawlerId),
      runnerUpRttMs: rttAt(runnerUpRttsMs, row),
    };
  }

  #newRow(subnetId: SubnetId): number {
    const row = this.#size;
    if (row === this.#columns.subnetIds.length) this.#columns = grownColumns(this.#columns);
    this.#size += 1;
    this.#columns.subnetIds[row] = subnetId;
    this.#rows.set(subnetId, row);
    return row;
  }

  #link(row: number, crawlerId: CrawlerId): void {
    const { crawlerIds, next, previous } = this.#columns;
    crawlerIds[row] = crawlerId;
    const ring = this.#rings.get(crawlerId);
    if (!ring) {
      next[row] = row;
      previous[row] = row;
      this.#rings.set(crawlerId, { first: row, count: 1 });
      return;
    }
    const last = previous[ring.first] as number;
    next[last] = row;
    previous[row] = last;
    next[row] = ring.first;
    previous[ring.first] = row;
    ring.count += 1;
  }

  #unlink(row: number): void {
    const { crawlerIds, next, previous } = this.#columns;
    const crawlerId = crawlerIds[row] as CrawlerId;
    const ring = this.#rings.get(crawlerId) as Ring;
    ring.count -= 1;
    if (ring.count === 0) {
      this.#rings.delete(crawlerId);
      return;
    }
    next[previous[row] as number] = next[row] as number;
    previous[next[row] as number] = previous[row] as number;
    if (ring.first === row) ring.first = next[row] as number;
  }
}

interface Ring {
  first: number;
  count: number;
}

const growth = 1.5;

/** One value per row in each column. */
function columnsFor(rows: number) {
  return {
    subnetIds: new Int32Array(rows),
    crawlerIds: new Int32Array(rows),
    /** NaN if unknown. */
    rttsMs: new Float32Array(rows),
    runnerUpIds: new Int32Array(rows),
    runnerUpRttsMs: new Float32Array(rows),
    flags: new Uint8Array(rows),
    /** The next row of the same crawler. */
    next: new Int32Array(rows),
    previous: new Int32Array(rows),
  };
}

/** Copies the columns and adds room for half as many rows again. */
function grownColumns(columns: ReturnType<typeof columnsFor>): ReturnType<typeof columnsFor> {
  const larger = columnsFor(Math.ceil(columns.subnetIds.length * growth));
  for (const name of Object.keys(larger) as (keyof typeof larger)[]) larger[name].set(columns[name]);
  return larger;
}

function rttAt(rttsMs: Float32Array, row: number): number | null {
  const rttMs = rttsMs[row] as number;
  return Number.isNaN(rttMs) ? null : rttMs;
}

/**
 * The subnets of a plan, packed: ids, loads, owners and RTTs by row. A row never changes its RTTs or its owner; a
 * subnet that does gets a new row and leaves the old one dead, so that whatever else was worked out per row never
 * goes stale.
 */
import { asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";
import type { BalanceSubnet } from "./plan.ts";
import { type CrawlerRtt, RttTable } from "./rtt-table.ts";

export class PackedSubnets {
  readonly rtts: RttTable;
  readonly #rowOf = new Map<SubnetId, number>();
  #ids = new Float64Array(64);
  #owners = new Uint16Array(64);
  #pages = new Float64Array(64);
  #bytes = new Float64Array(64);
  #isDead = new Uint8Array(64);
  #rows = 0;

  constructor(crawlerRttMs: CrawlerRtt) {
    this.rtts = new RttTable(crawlerRttMs);
  }

  /** Rows ever added, the dead ones too. */
  get rows(): number {
    return this.#rows;
  }

  get alive(): number {
    return this.#rowOf.size;
  }

  rowOf(subnetId: SubnetId): number | undefined {
    return this.#rowOf.get(subnetId);
  }

  isDead(row: number): boolean {
    return this.#isDead[row] === 1;
  }

  idOf(row: number): SubnetId {
    return asSubnetId(this.#ids[row]!);
  }

  /** The owner's index in `rtts.crawlerIds`. */
  ownerOf(row: number): number {
    return this.#owners[row]!;
  }

  pagesOf(row: number): number {
    return this.#isDead[row] === 1 ? 0 : this.#pages[row]!;
  }

  bytesOf(row: number): number {
    return this.#isDead[row] === 1 ? 0 : this.#bytes[row]!;
  }

  setLoad(row: number, pagesPerDay: number, bytesPerDay: number): void {
    this.#pages[row] = pagesPerDay;
    this.#bytes[row] = bytesPerDay;
  }

  /** Adds a subnet, or replaces it; returns its new row. */
  put(subnet: BalanceSubnet): number {
    this.remove(subnet.subnetId);
    const owner = this.rtts.indexOf(subnet.crawlerId);
    const row = this.rtts.add(subnet);
    if (row >= this.#ids.length) this.#grow();
    this.#ids[row] = subnet.subnetId;
    this.#owners[row] = owner;
    this.setLoad(row, subnet.loadPagesPerDay, subnet.loadBytesPerDay ?? 0);
    this.#rowOf.set(subnet.subnetId, row);
    this.#rows = row + 1;
    return row;
  }

  remove(subnetId: SubnetId): number | undefined {
    const row = this.#rowOf.get(subnetId);
    if (row === undefined) return undefined;
    this.#isDead[row] = 1;
    this.#rowOf.delete(subnetId);
    return row;
  }

  /** What `put` was given, with these differences. */
  unpacked(
    row: number,
    changes: { crawlerId?: CrawlerId; measured?: readonly [CrawlerId, number] },
  ): BalanceSubnet {
    const rttMs = this.rtts.measuredOf(row);
    if (changes.measured) rttMs.set(...changes.measured);
    const holderId = this.rtts.holderOf(row);
    return {
      subnetId: this.idOf(row),
      crawlerId: changes.crawlerId ?? this.rtts.crawlerIds[this.ownerOf(row)]!,
      loadPagesPerDay: this.pagesOf(row),
      loadBytesPerDay: this.bytesOf(row),
      rttMs,
      ...(holderId === null ? {} : { holderId }),
    };
  }

  *living(): Generator<number> {
    for (let row = 0; row < this.#rows; row++) if (this.#isDead[row] === 0) yield row;
  }

  #grow(): void {
    const length = 2 * this.#ids.length;
    this.#ids = copied(new Float64Array(length), this.#ids);
    this.#owners = copied(new Uint16Array(length), this.#owners);
    this.#pages = copied(new Float64Array(length), this.#pages);
    this.#bytes = copied(new Float64Array(length), this.#bytes);
    this.#isDead = copied(new Uint8Array(length), this.#isDead);
  }
}

function copied<Values extends { set(from: Values): void }>(longer: Values, values: Values): Values {
  longer.set(values);
  return longer;
}

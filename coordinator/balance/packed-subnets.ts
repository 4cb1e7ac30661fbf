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

/** Who holds how much of each subnet's load. Nearly all are held whole; only those in parts cost more than four bytes. */
export class Holdings {
  /** The crawler that holds the whole subnet; `inParts` or `nowhere` otherwise. */
  #whole = new Int32Array(16).fill(nowhere);
  readonly #loadOf: (subnet: number) => number;
  readonly #parts = new Map<number, Map<number, number>>();
  /** Less than this is nothing: what rounding leaves of a sum. */
  readonly dust: number;

  constructor(loadOf: (subnet: number) => number, dust: number) {
    this.#loadOf = loadOf;
    this.dust = dust;
  }

  place(subnet: number, crawler: number): void {
    if (subnet >= this.#whole.length) {
      const longer = new Int32Array(Math.max(subnet + 1, 2 * this.#whole.length)).fill(nowhere);
      longer.set(this.#whole);
      this.#whole = longer;
    }
    this.#parts.delete(subnet);
    this.#whole[subnet] = crawler;
  }

  /** Takes the subnet out; returns what was held by whom. */
  remove(subnet: number): ReadonlyMap<number, number> {
    const held = this.partsOf(subnet);
    this.place(subnet, nowhere);
    return held;
  }

  amountAt(subnet: number, crawler: number): number {
    const whole = this.#whole[subnet]!;
    if (whole === crawler) return this.#loadOf(subnet);
    return whole === inParts ? (this.#parts.get(subnet)?.get(crawler) ?? 0) : 0;
  }

  /** The one that holds it whole, or -1. */
  wholeAt(subnet: number): number {
    return Math.max(-1, this.#whole[subnet] ?? nowhere);
  }

  partsOf(subnet: number): ReadonlyMap<number, number> {
    const whole = this.#whole[subnet] ?? nowhere;
    if (whole >= 0) return new Map([[whole, this.#loadOf(subnet)]]);
    return this.#parts.get(subnet) ?? new Map();
  }

  /** Subnets that several crawlers hold a part of. */
  get split(): readonly number[] {
    return [...this.#parts.keys()];
  }

  /** Hands an amount, at most what `from` holds, to another. */
  shift(subnet: number, from: number, to: number, amount: number): void {
    const parts = new Map(this.partsOf(subnet));
    parts.set(from, (parts.get(from) ?? 0) - amount);
    parts.set(to, (parts.get(to) ?? 0) + amount);
    if ((parts.get(from) ?? 0) <= this.dust) parts.delete(from);
    const [only] = parts.keys();
    if (parts.size === 1 && only !== undefined) this.place(subnet, only);
    else {
      this.#whole[subnet] = inParts;
      this.#parts.set(subnet, parts);
    }
  }
}

const nowhere = -2;
const inParts = -1;

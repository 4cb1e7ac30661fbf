/**
 * The hierarchy of subnets in memory, both families (paper section 4.1): look-ups by address, the way up and
 * down, the subnets of a holder. It is built once and never changes; a new registry generation is a new tree.
 *
 * A subnet stands at a place in flat arrays; IPv4 places come before IPv6 places. What lies within a subnet is
 * the stretch of places behind it (`tree-layout.ts`); which subnet is most specific for an address is read from
 * a table of segments (`segments.ts`). Of ranges that cross, the smaller counts as more specific (`nest.ts`).
 */
import { asHolderId, asSubnetId, type HolderId, type SubnetId } from "../ids.ts";
import type { IpAddress } from "../ip/address.ts";
import type { IpRange } from "../ip/range.ts";
import { rangeAt } from "./range-columns.ts";
import { ownerAt, segmentBytes } from "./segments.ts";
import type { Subnet } from "./subnet.ts";
import { noId, registryAt, SubnetRows, unpackCountry } from "./subnet-rows.ts";
import { layOutColumns, type TreeColumns } from "./tree-columns.ts";

/**
 * The tree of these subnets. Throws a RangeError that names the subnet when an id or a range appears twice, or
 * a parent is unknown, of the other family or does not hold its child.
 */
export function buildSubnetTree(subnets: Iterable<Subnet>): SubnetTree {
  const builder = new SubnetTreeBuilder();
  for (const subnet of subnets) builder.add(subnet);
  return builder.finish();
}

/** For subnets that arrive one by one, as from a database cursor: `add` each, then `finish` once. */
export class SubnetTreeBuilder {
  readonly #rows = new SubnetRows();

  add(subnet: Subnet): void {
    this.#rows.add(subnet);
  }

  /** The tree; throws as `buildSubnetTree` does. The builder is spent afterwards. */
  finish(): SubnetTree {
    return new SubnetTree(layOutColumns(this.#rows));
  }
}

/** Made by `buildSubnetTree` or a `SubnetTreeBuilder`. */
export class SubnetTree {
  readonly #columns: TreeColumns;

  constructor(columns: TreeColumns) {
    this.#columns = columns;
  }

  get size(): number {
    return this.#columns.ids.length;
  }

  get(id: SubnetId): Subnet | null {
    const place = this.#columns.byId.firstRow(id);
    return place < 0 ? null : this.#subnetAt(place);
  }

  /** The smallest subnet that holds the address, be it unary; null where nothing is registered. */
  mostSpecific(address: IpAddress): Subnet | null {
    const place = this.#placeOf(address);
    return place < 0 ? null : this.#subnetAt(place);
  }

  /** The smallest subnet of more than one address: a unary subnet is skipped for its parent (paper section 4.3). */
  mostSpecificNonUnary(address: IpAddress): Subnet | null {
    const place = this.#nonUnaryPlaceOf(address);
    return place < 0 ? null : this.#subnetAt(place);
  }

  /** The id alone of `mostSpecificNonUnary`, without the record: what admits a URL. */
  mostSpecificNonUnaryId(address: IpAddress): SubnetId | null {
    const place = this.#nonUnaryPlaceOf(address);
    return place < 0 ? null : asSubnetId(this.#columns.ids[place] as number);
  }

  /** Every less specific subnet, the nearest first; none for an id that is unknown. */
  ancestors(id: SubnetId): Subnet[] {
    const found: Subnet[] = [];
    const { byId, parents } = this.#columns;
    let place = byId.firstRow(id);
    while (place >= 0 && (parents[place] as number) >= 0) {
      place = parents[place] as number;
      found.push(this.#subnetAt(place));
    }
    return found;
  }

  /** Ids of the less specific subnets, the nearest first. */
  ancestorIds(id: SubnetId): SubnetId[] {
    const found: SubnetId[] = [];
    const { byId, ids, parents } = this.#columns;
    let place = byId.firstRow(id);
    while (place >= 0 && (parents[place] as number) >= 0) {
      place = parents[place] as number;
      found.push(asSubnetId(ids[place] as number));
    }
    return found;
  }

  /** Subnets directly under the root, IPv4 first, by address. */
  *roots(): IterableIterator<Subnet> {
    const { ends } = this.#columns;
    for (let place = 0; place < this.size; place = ends[place] as number) yield this.#subnetAt(place);
  }

  /** Subnets directly under this one, by address. */
  *children(id: SubnetId): IterableIterator<Subnet> {
    const { byId, ends } = this.#columns;
    const parent = byId.firstRow(id);
    if (parent < 0) return;
    for (let place = parent + 1; place < (ends[parent] as number); place = ends[place] as number) {
      yield this.#subnetAt(place);
    }
  }

  /** Every subnet within this one, each before its own children. */
  *descendants(id: SubnetId): IterableIterator<Subnet> {
    const { byId, ends } = this.#columns;
    const ancestor = byId.firstRow(id);
    if (ancestor < 0) return;
    for (let place = ancestor + 1; place < (ends[ancestor] as number); place += 1)
      yield this.#subnetAt(place);
  }

  /** Whether the subnet lies somewhere within the other; in constant time, where listing descendants could take long. */
  isWithin(id: SubnetId, ancestorId: SubnetId): boolean {
    const { byId, ends } = this.#columns;
    const place = byId.firstRow(id);
    const ancestor = byId.firstRow(ancestorId);
    return ancestor >= 0 && place > ancestor && place < (ends[ancestor] as number);
  }

  /** Every subnet registered to the holder, IPv4 first, in the order of the tree. */
  *ofHolder(holderId: HolderId): IterableIterator<Subnet> {
    const { byHolder } = this.#columns;
    for (let place = byHolder.firstRow(holderId); place >= 0; place = byHolder.nextRows[place] as number) {
      yield this.#subnetAt(place);
    }
  }

  /** Bytes of the arrays: the look-up tables, and everything else but ids and names. */
  get bytes(): { readonly lookup: number; readonly places: number } {
    const { ipv4, ipv6, parents, ends, countries, registries } = this.#columns;
    const ranges = [ipv4, ipv6].map(({ columns }) => columns.first.byteLength + columns.last.byteLength);
    const places = [
      ...ranges,
      parents.byteLength,
      ends.byteLength,
      countries.byteLength,
      registries.byteLength,
    ];
    return {
      lookup: segmentBytes(ipv4.segments) + segmentBytes(ipv6.segments),
      places: places.reduce((sum, bytes) => sum + bytes, 0),
    };
  }

  #placeOf(address: IpAddress): number {
    const { base, segments } = address.family === 4 ? this.#columns.ipv4 : this.#columns.ipv6;
    const owner = ownerAt(segments, address);
    return owner < 0 ? -1 : base + (owner >> 1);
  }

  /** A unary subnet's parent is wider, hence never unary itself. */
  #nonUnaryPlaceOf(address: IpAddress): number {
    const { base, segments } = address.family === 4 ? this.#columns.ipv4 : this.#columns.ipv6;
    const owner = ownerAt(segments, address);
    if (owner < 0) return -1;
    const place = base + (owner >> 1);
    return (owner & 1) === 0 ? place : (this.#columns.parents[place] as number);
  }

  #subnetAt(place: number): Subnet {
    const { ids, parents, holderIds, countries, registries, names } = this.#columns;
    const parent = parents[place] as number;
    const holderId = holderIds[place] as number;
    return {
      id: asSubnetId(ids[place] as number),
      range: this.#rangeOf(place),
      parentId: parent < 0 ? null : asSubnetId(ids[parent] as number),
      holderId: holderId === noId ? null : asHolderId(holderId),
      country: unpackCountry(countries[place] as number),
      registry: registryAt(registries[place] as number),
      name: names[place] as string,
    };
  }

  #rangeOf(place: number): IpRange {
    const { ipv4, ipv6 } = this.#columns;
    return place < ipv6.base ? rangeAt(ipv4.columns, place) : rangeAt(ipv6.columns, place - ipv6.base);
  }
}

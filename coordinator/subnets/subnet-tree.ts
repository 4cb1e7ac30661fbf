/**
 * The hierarchy of subnets in memory, both families (paper section 4.1): look-ups by address, the way up and
 * down, the subnets of a holder. It is built once and never changes; a new registry generation is a new tree.
 *
 * A subnet stands at a place in flat arrays (`range-table.ts`), IPv4 before IPv6. The hierarchy
 * follows from the ranges alone: of those that hold a range the smallest is its parent, and of ranges that cross
 * the smaller counts as more specific (`nest.ts`).
 */
import { asHolderId, asSubnetId, type HolderId, type SubnetId } from "#core/ids";
import type { IpAddress } from "#core/ip/address";
import {
  endOf,
  nonUnaryPlaceOfIpv4,
  nonUnaryPlaceOfIpv6,
  placeOfIpv4,
  placeOfIpv6,
  rangeOfPlace,
  tableBytes,
  topBit,
} from "./range-table.ts";
import { countryOf, registryOf, type Subnet } from "./subnet.ts";
import { noId, SubnetRows } from "./subnet-rows.ts";
import { layOutColumns, type TreeColumns } from "./tree-columns.ts";

/**
 * The tree of these subnets. Throws a RangeError that names the subnet when an id or a range appears twice, or
 * a parent that is stated is unknown, of the other family or does not hold its child.
 */
export function buildSubnetTree(subnets: Iterable<Subnet>): SubnetTree {
  const rows = new SubnetRows();
  for (const subnet of subnets) rows.add(subnet);
  return treeOfRows(rows);
}

/** The tree of rows that were gathered as numbers, as from a database; throws as `buildSubnetTree` does. */
export function treeOfRows(rows: SubnetRows): SubnetTree {
  return new SubnetTree(layOutColumns(rows));
}

/** What the tree takes in memory, in bytes; each part is for all subnets of both families. */
interface TreeBytes {
  /** Ranges, parents and what look-ups need besides. */
  readonly ipv4Ranges: number;
  readonly ipv6Ranges: number;
  /** Country and registry. */
  readonly labels: number;
  readonly ids: number;
  readonly holderIds: number;
  /** From an id to its place. */
  readonly idIndex: number;
  /** The names, and which of them is whose. */
  readonly names: number;
}

/** Made by `buildSubnetTree`, `treeOfRows` or from a snapshot (`tree-snapshot-store.ts`). */
export class SubnetTree {
  readonly columns: TreeColumns;

  constructor(columns: TreeColumns) {
    this.columns = columns;
  }

  get size(): number {
    return this.columns.ids.length;
  }

  get(id: SubnetId): Subnet | null {
    return this.#subnetOrNull(this.columns.byId.firstRow(id));
  }

  isIpv6(id: SubnetId): boolean {
    return this.columns.byId.firstRow(id) >= this.columns.ipv6Base;
  }

  /** The smallest subnet that holds the address, be it unary; null where nothing is registered. */
  mostSpecific(address: IpAddress): Subnet | null {
    return this.#subnetOrNull(this.#placeOf(address));
  }

  /** The smallest subnet of more than one address: a unary subnet is skipped for its parent (paper section 4.3). */
  mostSpecificNonUnary(address: IpAddress): Subnet | null {
    return this.#subnetOrNull(this.#nonUnaryPlaceOf(address));
  }

  /** The id alone of `mostSpecificNonUnary`, without the record: what admits a URL. */
  mostSpecificNonUnaryId(address: IpAddress): SubnetId | null {
    const place = this.#nonUnaryPlaceOf(address);
    return place < 0 ? null : asSubnetId(this.columns.ids[place] as number);
  }

  /** Every less specific subnet, the nearest first; none for an id that is unknown. */
  ancestors(id: SubnetId): Subnet[] {
    return this.#ancestorPlaces(id).map((place) => this.#subnetAt(place));
  }

  /** Ids of the less specific subnets, the nearest first. */
  ancestorIds(id: SubnetId): SubnetId[] {
    return this.#ancestorPlaces(id).map((place) => asSubnetId(this.columns.ids[place] as number));
  }

  /** Subnets directly under the root, IPv4 first, by address. Goes over all subnets. */
  *roots(): IterableIterator<Subnet> {
    for (let place = 0; place < this.size; place += 1) {
      if (this.#parentOf(place) < 0) yield this.#subnetAt(place);
    }
  }

  /** Subnets directly under this one, by address. Goes over all that start within it. */
  *children(id: SubnetId): IterableIterator<Subnet> {
    const parent = this.columns.byId.firstRow(id);
    const end = this.#endOf(parent);
    for (let place = parent + 1; place < end; place += 1) {
      if (this.#parentOf(place) === parent) yield this.#subnetAt(place);
    }
  }

  /** Every subnet within this one, each before its own children. */
  *descendants(id: SubnetId): IterableIterator<Subnet> {
    const ancestor = this.columns.byId.firstRow(id);
    const end = this.#endOf(ancestor);
    for (let place = ancestor + 1; place < end; place += 1) {
      if (this.#leadsTo(place, ancestor)) yield this.#subnetAt(place);
    }
  }

  /** Whether the subnet lies somewhere within the other: a walk up, where listing descendants could take long. */
  isWithin(id: SubnetId, ancestorId: SubnetId): boolean {
    const place = this.columns.byId.firstRow(id);
    const ancestor = this.columns.byId.firstRow(ancestorId);
    return ancestor >= 0 && place > ancestor && this.#leadsTo(place, ancestor);
  }

  /** Every subnet registered to the holder, IPv4 first, in the order of the tree. Goes over all subnets: 10 ms for ten million. */
  *ofHolder(holderId: HolderId): IterableIterator<Subnet> {
    const { holderIds } = this.columns;
    for (let place = holderIds.indexOf(holderId); place >= 0; place = holderIds.indexOf(holderId, place + 1))
      yield this.#subnetAt(place);
  }

  get bytes(): TreeBytes {
    const { ipv4, ipv6, ids, byId, holderIds, labels, nameIds, names } = this.columns;
    return {
      ipv4Ranges: tableBytes(ipv4),
      ipv6Ranges: tableBytes(ipv6),
      labels: labels.byteLength,
      ids: ids.byteLength,
      holderIds: holderIds.byteLength,
      idIndex: byId.bytes,
      names: nameIds.byteLength + names.bytes,
    };
  }

  #placeOf(address: IpAddress): number {
    const { ipv4, ipv6, ipv6Base } = this.columns;
    if (address.family === 4) return placeOfIpv4(ipv4, address.value ^ topBit);
    const place = placeOfIpv6(ipv6, address.value);
    return place < 0 ? -1 : ipv6Base + place;
  }

  #nonUnaryPlaceOf(address: IpAddress): number {
    const { ipv4, ipv6, ipv6Base } = this.columns;
    if (address.family === 4) return nonUnaryPlaceOfIpv4(ipv4, address.value ^ topBit);
    const place = nonUnaryPlaceOfIpv6(ipv6, address.value);
    return place < 0 ? -1 : ipv6Base + place;
  }

  #parentOf(place: number): number {
    const { ipv4, ipv6, ipv6Base } = this.columns;
    if (place < ipv6Base) return ipv4.parents[place] as number;
    const parent = ipv6.parents[place - ipv6Base] as number;
    return parent < 0 ? -1 : ipv6Base + parent;
  }

  /** Behind the last place that starts within the range of this one; 0 for none. */
  #endOf(place: number): number {
    const { ipv4, ipv6, ipv6Base } = this.columns;
    if (place < 0) return 0;
    return place < ipv6Base ? endOf(ipv4, place) : ipv6Base + endOf(ipv6, place - ipv6Base);
  }

  /** Whether the ancestor is met on the way up; parents stand before their children. */
  #leadsTo(place: number, ancestor: number): boolean {
    let at = place;
    while (at > ancestor) at = this.#parentOf(at);
    return at === ancestor;
  }

  #ancestorPlaces(id: SubnetId): number[] {
    const found: number[] = [];
    let place = this.columns.byId.firstRow(id);
    if (place < 0) return found;
    for (place = this.#parentOf(place); place >= 0; place = this.#parentOf(place)) found.push(place);
    return found;
  }

  #subnetOrNull(place: number): Subnet | null {
    return place < 0 ? null : this.#subnetAt(place);
  }

  #subnetAt(place: number): Subnet {
    const { ids, holderIds, labels, nameIds, names, ipv4, ipv6, ipv6Base } = this.columns;
    const parent = this.#parentOf(place);
    const holderId = holderIds[place] as number;
    const label = labels[place] as number;
    return {
      id: asSubnetId(ids[place] as number),
      range: place < ipv6Base ? rangeOfPlace(ipv4, place) : rangeOfPlace(ipv6, place - ipv6Base),
      parentId: parent < 0 ? null : asSubnetId(ids[parent] as number),
      holderId: holderId === noId ? null : asHolderId(holderId),
      country: countryOf(label),
      registry: registryOf(label),
      name: names.textAt(nameIds[place] as number),
    };
  }
}

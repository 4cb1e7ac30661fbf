/**
 * The in-memory hierarchy of subnets of both families (paper section 4.1), searchable by address and by id. It is immutable:
 * a new registry generation is a new tree.
 *
 * Each subnet has a place in flat arrays (`range-table.ts`), IPv4 before IPv6. The hierarchy follows from the ranges alone:
 * the parent is the smallest containing range, and of crossing ranges the smaller is more specific (`nest.ts`).
 */
import { asHolderId, asSubnetId, type SubnetId } from "#core/ids";
import type { IpAddress } from "#core/ip/address";
import {
  nonUnaryPlaceOfIpv4,
  nonUnaryPlaceOfIpv6,
  placeOfIpv4,
  placeOfIpv6,
  rangeOfPlace,
  topBit,
} from "./range-table.ts";
import { countryOf, registryOf, type Subnet } from "./subnet.ts";
import { layOutColumns, noId, SubnetRows, type TreeColumns } from "./tree-columns.ts";

/** Throws a RangeError that names the subnet if an id or a range appears twice. */
export function buildSubnetTree(subnets: Iterable<Subnet>): SubnetTree {
  const rows = new SubnetRows();
  for (const subnet of subnets) rows.addRange(subnet.range, subnet);
  return treeOfRows(rows);
}

/** Builds the tree from numeric rows, as read from a database. Throws as `buildSubnetTree` does. */
export function treeOfRows(rows: SubnetRows): SubnetTree {
  return new SubnetTree(layOutColumns(rows));
}

/** Created by `buildSubnetTree`, `treeOfRows` or from a snapshot (`tree-snapshot-store.ts`). */
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

  /** Smallest subnet that contains the address, even a single-address one. Null if none is registered. */
  mostSpecific(address: IpAddress): Subnet | null {
    return this.#subnetOrNull(this.#placeOf(address));
  }

  /**
   * The id of the smallest subnet of more than one address. Single-address subnets are replaced by their parent (paper
   * section 4.3). Admission of URLs needs only the id.
   */
  mostSpecificNonUnaryId(address: IpAddress): SubnetId | null {
    const { ipv4, ipv6, ipv6Base, ids } = this.columns;
    const isIpv4 = address.family === 4;
    const place = isIpv4
      ? nonUnaryPlaceOfIpv4(ipv4, address.value ^ topBit)
      : nonUnaryPlaceOfIpv6(ipv6, address.value);
    return place < 0 ? null : asSubnetId(ids[isIpv4 ? place : ipv6Base + place] as number);
  }

  #placeOf(address: IpAddress): number {
    const { ipv4, ipv6, ipv6Base } = this.columns;
    if (address.family === 4) return placeOfIpv4(ipv4, address.value ^ topBit);
    const place = placeOfIpv6(ipv6, address.value);
    return place < 0 ? -1 : ipv6Base + place;
  }

  #parentOf(place: number): number {
    const { ipv4, ipv6, ipv6Base } = this.columns;
    if (place < ipv6Base) return ipv4.parents[place] as number;
    const parent = ipv6.parents[place - ipv6Base] as number;
    return parent < 0 ? -1 : ipv6Base + parent;
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

/**
 * Where a subnet sits, as far as delegation is concerned: the keys under which past delegations are counted.
 * Keys are opaque (subnet ids in the coordinator, path names in the simulator), so that the same policies
 * run on both.
 *
 *   root ─ /8 ─ ancestor ─ … ─ ancestor ─ the subnet        and beside them: its holder, its country
 *
 * The "/8" of an IPv4 address is its first octet; for IPv6 it is the first 16 bits, since the registries
 * hold IPv6 in blocks of about that size (2001::/16, 2600::/12 …).
 */
import type { SubnetId } from "../ids.ts";
import { firstAddress, type IpRange } from "../ip/range.ts";
import type { Subnet } from "../subnet/subnet.ts";

export type PlaceKey = string | number;

export interface Placement {
  readonly subnetKey: PlaceKey;
  readonly holderKey: PlaceKey | null;
  /** The less specific subnets, nearest first, as far as they are smaller than the /8 level. */
  readonly ancestorKeys: readonly PlaceKey[];
  readonly country: string | null;
  readonly slash8Key: PlaceKey;
}

/** What is asked of the IP tree: a subnet by its id, and the less specific ones, nearest first. */
export interface SubnetLookup {
  get(id: SubnetId): Subnet | null | undefined;
  ancestors(id: SubnetId): Iterable<Subnet>;
}

/** The placement of a subnet of the tree; null when the tree does not hold it (any more). */
export function placementOf(tree: SubnetLookup, subnetId: SubnetId): Placement | null {
  const subnet = tree.get(subnetId);
  if (!subnet) return null;
  const ancestorKeys: SubnetId[] = [];
  for (const ancestor of tree.ancestors(subnetId)) {
    if (spansSlash8(ancestor.range)) break;
    ancestorKeys.push(ancestor.id);
  }
  return {
    subnetKey: subnet.id,
    holderKey: subnet.holderId,
    ancestorKeys,
    country: subnet.country,
    slash8Key: slash8KeyOf(subnet.range),
  };
}

/** A number per /8 (0–255) or IPv6 /16 (256 and up), taken from the range's first address. */
export function slash8KeyOf(range: IpRange): number {
  const first = firstAddress(range);
  return first.family === 4 ? first.value >>> 24 : 256 + Number(first.value >> 112n);
}

/** True when the range is as wide as the /8 level or wider: that level and the root stand for it. */
function spansSlash8(range: IpRange): boolean {
  if (range.family === 4) return range.last - range.first + 1 >= 2 ** 24;
  return range.last - range.first + 1n >= 1n << 112n;
}

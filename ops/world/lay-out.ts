/**
 * Gives a planned registry hierarchy its addresses. A plan says which subnet contains which. The layout finds ranges
 * such that every child is inside its parent and smaller than it, and siblings do not overlap:
 *
 *   plan:  provider ─┬─ shop (48 addresses, not a CIDR block)       10.0.0.0 in a drawing:
 *                    └─ bank (64)                                    |shop 48|.16.|bank 64|....free....|
 *
 * Blocks whose size is a power of two are aligned, as registries do. Other sizes start where the last range ended. A
 * parent gets the power of two that fits its children, or twice that when they fill it.
 */

import type { Registry } from "#coordinator/place/subnets/subnet";
import type { IpRange } from "#core/ip/range";
import type { SubnetKind, WorldSubnet } from "./model.ts";

export interface PlannedSubnet {
  readonly name: string;
  readonly kind: SubnetKind;
  readonly holder: number | null;
  readonly country: string | null;
  readonly registry: Registry;
  /** Minimum number of addresses. A leaf gets exactly this many. */
  readonly size: number;
  readonly children: PlannedSubnet[];
  /** The hosts directly in it, each `offset` addresses after its first address. Only leaves have hosts. */
  readonly hosts: readonly PlannedHost[];
}

export interface PlannedHost {
  readonly type: HostType;
  /** The index among the hosts of the same type. */
  readonly index: number;
  readonly offset: number;
  /** True when registered as a range of one address (a unary subnet). */
  readonly unary: boolean;
}

/** A replica is a further address of a site's name. */
type HostType = "site" | "crawler" | "replica";

export interface PlacedHost {
  readonly type: HostType;
  readonly index: number;
  readonly address: number;
  readonly subnet: number;
}

/** A whole /8 of the plan, by its first octet. */
export interface PlannedBlock {
  readonly firstOctet: number;
  readonly subnet: PlannedSubnet;
}

/** Returns the subnets, parents before children in address order, and the address of each host. */
export function layOut(blocks: readonly PlannedBlock[]): { subnets: WorldSubnet[]; hosts: PlacedHost[] } {
  const placed: { subnets: WorldSubnet[]; hosts: PlacedHost[] } = { subnets: [], hosts: [] };
  for (const { firstOctet, subnet } of blocks.toSorted((a, b) => a.firstOctet - b.firstOctet)) {
    const needed = spanOf(subnet.children);
    if (needed >= slash8) {
      throw new RangeError(`${subnet.name} needs ${needed} addresses, more than a /8: give it more blocks`);
    }
    place(
      subnet,
      { family: 4, first: firstOctet * slash8, last: (firstOctet + 1) * slash8 - 1 },
      null,
      placed,
    );
  }
  return placed;
}

/** Returns the hosts of each type by index. */
export function placedByType(hosts: readonly PlacedHost[]): Record<HostType, Map<number, PlacedHost>> {
  const placed = { site: new Map(), crawler: new Map(), replica: new Map() };
  for (const host of hosts) placed[host.type].set(host.index, host);
  return placed;
}

const slash8 = 2 ** 24;

export function sizeOf(subnet: PlannedSubnet): number {
  if (subnet.children.length === 0) return subnet.size;
  return Math.max(subnet.size, powerOfTwoAbove(spanOf(subnet.children)));
}

function place(
  subnet: PlannedSubnet,
  range: IpRange & { family: 4 },
  parent: number | null,
  placed: { subnets: WorldSubnet[]; hosts: PlacedHost[] },
): void {
  const index = placed.subnets.length;
  placed.subnets.push(recordOf(subnet, range, parent));
  for (const host of subnet.hosts.toSorted((a, b) => a.offset - b.offset)) {
    placeHost(host, range.first + host.offset, index, placed);
  }
  let cursor = 0;
  for (const child of subnet.children) {
    const size = sizeOf(child);
    const start = startAt(cursor, size);
    const first = range.first + start;
    place(child, { family: 4, first, last: first + size - 1 }, index, placed);
    cursor = start + size;
  }
}

function recordOf(subnet: PlannedSubnet, range: IpRange, parent: number | null): WorldSubnet {
  const { holder, country, registry, kind, name } = subnet;
  return { range, parent, holder, country, registry, kind, name };
}

function placeHost(
  host: PlannedHost,
  address: number,
  subnet: number,
  placed: { subnets: WorldSubnet[]; hosts: PlacedHost[] },
): void {
  placed.hosts.push({ type: host.type, index: host.index, address, subnet });
  const owner = placed.subnets[subnet];
  if (!host.unary || !owner) return;
  if (placed.subnets.at(-1)?.kind === "host" && placed.subnets.at(-1)?.range.first === address) return;
  placed.subnets.push({
    ...owner,
    range: { family: 4, first: address, last: address },
    parent: subnet,
    kind: "host",
    name: `${owner.name}-H${host.offset}`,
  });
}

/** The number of addresses from the first child's first to the last child's last, laid out one after the other. */
function spanOf(children: readonly PlannedSubnet[]): number {
  let cursor = 0;
  for (const child of children) {
    const size = sizeOf(child);
    cursor = startAt(cursor, size) + size;
  }
  return cursor;
}

function startAt(cursor: number, size: number): number {
  return isPowerOfTwo(size) ? Math.ceil(cursor / size) * size : cursor;
}

function isPowerOfTwo(size: number): boolean {
  return Number.isInteger(Math.log2(size));
}

/** Returns the smallest power of two above the span, so that a parent is never as small as an only child. */
function powerOfTwoAbove(span: number): number {
  return 2 ** Math.floor(Math.log2(span) + 1);
}

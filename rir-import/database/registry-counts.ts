/**
 * What of the tree each registry has: subnets, holders, crossing ranges, and how many addresses lie in its subnets.
 * An address that several nested or crossing subnets of one registry hold counts once.
 */
import type { RangeColumns } from "#coordinator/subnets/range-columns";
import { type Registry, registries } from "#coordinator/subnets/subnet";
import type { FamilyState, RegistryState } from "../tree/registry-state.ts";
import type { CurrentFamily, CurrentTree } from "./current-tree.ts";

export interface RegistryCounts {
  readonly registry: Registry;
  readonly subnets: number;
  readonly ipv4Subnets: number;
  readonly ipv6Subnets: number;
  readonly holders: number;
  /** Subnets that cross another, of whichever registry. */
  readonly crossing: number;
  readonly ipv4Addresses: number;
  /** IPv6 in blocks of a /48, which is what one site is given (RFC 6177): so many are touched. */
  readonly ipv6Slash48s: number;
}

/** One line for each registry that has a subnet, in the order of `registries`. */
export function countState({ ipv4, ipv6 }: RegistryState): readonly RegistryCounts[] {
  return countFamilies([rowsOfState(ipv4), rowsOfState(ipv6)]);
}

/** The same of the tree in force. */
export function countTree({ ipv4, ipv6 }: CurrentTree): readonly RegistryCounts[] {
  return countFamilies([rowsOfTree(ipv4), rowsOfTree(ipv6)]);
}

interface FamilyRows {
  readonly columns: RangeColumns;
  /** Rows in the order of the tree. */
  readonly rowAt: (position: number) => number;
  readonly isThere: (row: number) => boolean;
  readonly registries: Uint8Array;
  /** Below zero: none. */
  readonly holderOf: (row: number) => number;
  readonly crosses: Uint8Array;
}

function rowsOfState(family: FamilyState): FamilyRows {
  return {
    ...family,
    rowAt: (position) => position,
    isThere: () => true,
    holderOf: (row) => family.holders[row] as number,
  };
}

function rowsOfTree(family: CurrentFamily): FamilyRows {
  return {
    ...family,
    rowAt: (position) => family.order[position] as number,
    isThere: (row) => family.removedIn[row] === 0,
    holderOf: (row) => (family.holderIds[row] as number) - 1,
  };
}

type Sums = { -readonly [name in keyof Omit<RegistryCounts, "registry">]: number };

function countFamilies(families: readonly FamilyRows[]): readonly RegistryCounts[] {
  const sums = registries.map((): Sums => ({ ...nothing }));
  for (const family of families) addFamily(sums, family);
  countHolders(sums, families);
  return registries
    .map((registry, index) => ({ registry, ...(sums[index] as Sums) }))
    .filter(({ subnets }) => subnets > 0);
}

const nothing: Sums = {
  subnets: 0,
  ipv4Subnets: 0,
  ipv6Subnets: 0,
  holders: 0,
  crossing: 0,
  ipv4Addresses: 0,
  ipv6Slash48s: 0,
};

/** One walk in the order of addresses: what lies behind the furthest end so far is new. */
function addFamily(sums: readonly Sums[], family: FamilyRows): void {
  const isIpv4 = family.columns.family === 4;
  const covered = new Float64Array(registries.length).fill(-1);
  for (let position = 0; position < family.columns.count; position += 1) {
    const row = family.rowAt(position);
    if (!family.isThere(row)) continue;
    const registry = family.registries[row] as number;
    const sum = sums[registry] as Sums;
    const first = Math.max(blockOf(family.columns, "first", row), (covered[registry] as number) + 1);
    const last = blockOf(family.columns, "last", row);
    const fresh = Math.max(0, last - first + 1);
    covered[registry] = Math.max(covered[registry] as number, last);
    sum.subnets += 1;
    sum.crossing += family.crosses[row] as number;
    sum[isIpv4 ? "ipv4Subnets" : "ipv6Subnets"] += 1;
    sum[isIpv4 ? "ipv4Addresses" : "ipv6Slash48s"] += fresh;
  }
}

/** The address, or the first 48 bits of an IPv6 address: both are whole numbers that a double holds. */
function blockOf(columns: RangeColumns, end: "first" | "last", row: number): number {
  const words = columns[end];
  if (columns.words === 1) return words[row] as number;
  return (words[row * 4] as number) * 0x1_0000 + ((words[row * 4 + 1] as number) >>> 16);
}

/** A holder with subnets of several registries counts for each. */
function countHolders(sums: readonly Sums[], families: readonly FamilyRows[]): void {
  const seen = new Map<number, number>();
  for (const family of families) {
    for (let row = 0; row < family.columns.count; row += 1) {
      const holder = family.holderOf(row);
      if (holder < 0 || !family.isThere(row)) continue;
      const bit = 1 << (family.registries[row] as number);
      const known = seen.get(holder) ?? 0;
      if ((known & bit) !== 0) continue;
      seen.set(holder, known | bit);
      (sums[family.registries[row] as number] as Sums).holders += 1;
    }
  }
}

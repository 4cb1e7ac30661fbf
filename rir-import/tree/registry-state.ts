/**
 * What an import wants the tree to be: every subnet once, nested, with its holder, in flat columns. Subnets
 * are numbered from 0 through both families (IPv4 first), in the order of the tree; the number is the
 * subnet's ordinal.
 */
import type { IpRange } from "#core/ip/range";
import { type RangeColumns, rangeAt } from "#core/subnet/range-columns";
import { type Registry, registries } from "#core/subnet/subnet";
import { unpackCountry } from "#core/subnet/subnet-rows";
import type { TextPool } from "#core/text-pool";
import type { HolderTable } from "./holder-table.ts";

export interface WantedSubnet {
  readonly ordinal: number;
  readonly range: IpRange;
  readonly parentOrdinal: number | null;
  /** Index into `holders`, or null. */
  readonly holder: number | null;
  readonly country: string | null;
  readonly registry: Registry;
  readonly name: string;
}

/** One family, each column indexed by the subnet's place within the family. */
export interface FamilyState {
  readonly columns: RangeColumns;
  /** Place of the parent, or −1. */
  readonly parents: Int32Array;
  /** Index into the state's holders, or −1. */
  readonly holders: Int32Array;
  /** Packed (core/subnet/subnet-rows); 0 for none. */
  readonly countries: Uint16Array;
  /** Index into `registries`. */
  readonly registries: Uint8Array;
  /** Id of the state's texts. */
  readonly names: Int32Array;
  /** 1 for a subnet that crosses another. */
  readonly crosses: Uint8Array;
}

export interface RegistryState {
  readonly ipv4: FamilyState;
  readonly ipv6: FamilyState;
  readonly holders: HolderTable;
  /** Names of subnets and holders, by id. */
  readonly texts: TextPool;
  readonly summary: StateSummary;
}

export interface StateSummary {
  readonly subnets: number;
  readonly ipv4Subnets: number;
  readonly ipv6Subnets: number;
  readonly holders: number;
  readonly withoutHolder: number;
  /** Records that spoke of a range another record has already, and were merged with it. */
  readonly duplicates: number;
  readonly deepest: number;
  /** Pairs of crossing ranges; a tangle of n ranges may have n² pairs, of which at most 2n count. */
  readonly crossings: number;
  /** The first pairs, at most a thousand; `earlier` starts first. */
  readonly crossingSamples: readonly { readonly earlier: string; readonly later: string }[];
}

/** Both families, each with the ordinal of its first subnet. */
export function familiesOf(
  state: RegistryState,
): readonly { readonly family: FamilyState; readonly offset: number }[] {
  return [
    { family: state.ipv4, offset: 0 },
    { family: state.ipv6, offset: state.ipv4.columns.count },
  ];
}

/** Every subnet as a record, for those who read few or want them plain. */
export function* wantedSubnets(state: RegistryState): Generator<WantedSubnet> {
  for (const { family, offset } of familiesOf(state)) {
    for (let place = 0; place < family.columns.count; place += 1)
      yield subnetAt(state, family, offset, place);
  }
}

function subnetAt(state: RegistryState, family: FamilyState, offset: number, place: number): WantedSubnet {
  const parent = family.parents[place] as number;
  const holder = family.holders[place] as number;
  return {
    ordinal: offset + place,
    range: rangeAt(family.columns, place),
    parentOrdinal: parent < 0 ? null : offset + parent,
    holder: holder < 0 ? null : holder,
    country: unpackCountry(family.countries[place] as number),
    registry: registries[family.registries[place] as number] as Registry,
    name: state.texts.textAt(family.names[place] as number),
  };
}

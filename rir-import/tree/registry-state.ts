/**
 * What an import wants the tree to be: every subnet once, nested, with its holder. Subnets are numbered
 * from 0 through both families (IPv4 first), in the order of the tree; a parent has a smaller number than
 * its children.
 */
import type { IpRange } from "#core/ip/range";
import { type RangeColumns, rangeAt } from "#core/subnet/range-columns";
import type { Registry } from "#core/subnet/subnet";
import type { ResolvedHolder } from "./holder-references.ts";

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

export interface FamilyState {
  readonly columns: RangeColumns;
  /** Index of the parent within this family, or −1. */
  readonly parents: Int32Array;
  readonly holders: Int32Array;
  readonly countries: readonly (string | null)[];
  readonly registries: readonly Registry[];
  readonly names: readonly string[];
}

export interface RegistryState {
  readonly ipv4: FamilyState;
  readonly ipv6: FamilyState;
  readonly holders: readonly ResolvedHolder[];
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
  readonly crossings: number;
  /** The first pairs of crossing ranges, at most fifty; `earlier` starts first. */
  readonly crossingSamples: readonly { readonly earlier: string; readonly later: string }[];
}

export function* wantedSubnets(state: RegistryState): Generator<WantedSubnet> {
  yield* familySubnets(state.ipv4, 0);
  yield* familySubnets(state.ipv6, state.ipv4.columns.count);
}

function* familySubnets(family: FamilyState, offset: number): Generator<WantedSubnet> {
  for (let index = 0; index < family.columns.count; index++) {
    const parent = family.parents[index] as number;
    const holder = family.holders[index] as number;
    yield {
      ordinal: offset + index,
      range: rangeAt(family.columns, index),
      parentOrdinal: parent < 0 ? null : offset + parent,
      holder: holder < 0 ? null : holder,
      country: family.countries[index] ?? null,
      registry: family.registries[index] as Registry,
      name: family.names[index] ?? "",
    };
  }
}

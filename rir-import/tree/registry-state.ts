/**
 * What an import wants the tree to be: every subnet once, nested, with its holder, in flat columns. A subnet's
 * place is its number within its family, in the order of the tree.
 */
import type { RangeColumns } from "#coordinator/subnets/range-columns";
import type { TextPool } from "#core/columns";
import type { HolderTable } from "./holder-table.ts";

/** One family, each column indexed by the subnet's place within the family. */
export interface FamilyState {
  readonly columns: RangeColumns;
  /** Place of the parent, or −1. */
  readonly parents: Int32Array;
  /** Index into the state's holders, or −1. */
  readonly holders: Int32Array;
  /** Packed (subnets/subnet-rows); 0 for none. */
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

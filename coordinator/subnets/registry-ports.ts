/** What the flows know of the registry as it is stored: the subnets in force, and trees of them kept for a quick start. */
import type { SubnetRows } from "./subnet-rows.ts";
import type { SubnetTree } from "./subnet-tree.ts";

/** Which registry it is. Generations are counted anew in each database; the moment tells them apart. */
export interface RegistryInForce {
  readonly generation: number;
  /** As the database writes it, to the microsecond. */
  readonly appliedAt: string;
}

export interface SubnetStore {
  /** The generation in force, or null before the first import. */
  currentGeneration(): Promise<number | null>;
  /** The registry in force, or null before the first import. */
  registryInForce(): Promise<RegistryInForce | null>;
  /** Adds every subnet in force, in no order; returns the registry they are of, as of one moment. */
  readRows(into: SubnetRows): Promise<RegistryInForce | null>;
  /** Calls back whenever an import or a rollback has committed (Postgres NOTIFY `nearcrawl_registry`). */
  onChange(changed: () => void): Promise<{ stop(): Promise<void> }>;
}

/** Trees kept outside the database, for a quick start. */
export interface TreeSnapshots {
  /** The tree of that registry, or null when there is none of use. Never rejects. */
  read(registry: RegistryInForce): Promise<SubnetTree | null>;
  /** To be read from now on in place of any other; returns before it is written. */
  keep(tree: SubnetTree, registry: RegistryInForce): void;
}

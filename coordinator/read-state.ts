/** The tree, the delegations and the crawlers as the database has them now, for one who only looks: nothing is changed. */
import type { Database } from "#db/connect";
import { CoordinatorState } from "./flows/coordinator-state.ts";
import { DelegationTable } from "./flows/delegation-table.ts";
import { loadTree } from "./flows/refresh-tree.ts";
import type { TreeSnapshots } from "./flows/registry-ports.ts";
import { createCrawlerStore } from "./postgres/crawler-store.ts";
import { createDelegationStore } from "./postgres/delegation-store.ts";
import { createSubnetStore } from "./postgres/subnet-store.ts";

/** `snapshots`: where a coordinator keeps its tree, which is ten times quicker to read than its rows. */
export async function readState(
  { pool }: Pick<Database, "pool">,
  snapshots?: TreeSnapshots,
): Promise<CoordinatorState> {
  const state = new CoordinatorState();
  const table = new DelegationTable();
  await createDelegationStore(pool).readEach((delegation) => table.set(delegation));
  state.setDelegations(table);
  await loadTree({ subnets: createSubnetStore(pool), state, ...(snapshots ? { snapshots } : {}) });
  state.setCrawlers(await createCrawlerStore(pool).list());
  return state;
}

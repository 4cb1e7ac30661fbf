/** The tree, the delegations and the crawlers as the database has them now, for one who only looks: nothing is changed. */
import type { Database } from "#db/connect";
import { createCrawlerStore } from "./crawlers/crawler-store.ts";
import { DelegationTable } from "./delegation/delegation-table.ts";
import { loadTree } from "./delegation/refresh-tree.ts";
import { CoordinatorState } from "./delegation/state.ts";
import { createDelegationStore } from "./delegation/store.ts";
import { createSubnetStore, type TreeSnapshots } from "./subnets/subnet-store.ts";

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

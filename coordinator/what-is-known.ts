/** What the coordinator reads at its start, and again when the registry changes. */

import type { CoordinatorState } from "./flows/coordinator-state.ts";
import type { DayBudget } from "./flows/day-budget.ts";
import type {
  CrawlerStore,
  DelegationStore,
  FrontierStore,
  ResultStore,
  SubnetStore,
} from "./flows/ports.ts";
import { loadTree, refreshTree } from "./flows/refresh-tree.ts";
import type { Log } from "./log.ts";

export interface KnownPorts {
  readonly subnets: SubnetStore;
  readonly crawlers: CrawlerStore;
  readonly delegations: DelegationStore;
  readonly results: ResultStore;
  readonly state: CoordinatorState;
  readonly budget: DayBudget;
}

export async function readWhatIsKnown(ports: KnownPorts, now: Date): Promise<void> {
  await ports.crawlers.markAllOffline("the coordinator was started anew", now);
  await loadTree(ports);
  ports.state.setCrawlers(await ports.crawlers.list());
  ports.state.setDelegations(await ports.delegations.readAll());
  ports.state.learnRtts(await ports.crawlers.rtts());
  const midnight = new Date(`${now.toISOString().slice(0, 10)}T00:00:00Z`);
  ports.budget.restore(await ports.results.fetchesSince(midnight), now);
}

/** Swaps the tree whenever an import or a rollback has committed. */
export async function followRegistry(ports: {
  readonly subnets: SubnetStore;
  readonly frontier: FrontierStore;
  readonly state: CoordinatorState;
  readonly log: Log;
}): Promise<{ stop(): Promise<void> }> {
  let turn = Promise.resolve();
  return await ports.subnets.onChange(() => {
    turn = turn.then(async () => {
      try {
        const { subnets, movedHosts } = await refreshTree(ports);
        ports.log.info({ subnets, movedHosts }, "registry changed, new tree in place");
      } catch (error) {
        ports.log.error(
          { error },
          "registry changed, but the new tree could not be built; the old one serves on",
        );
      }
    });
  });
}

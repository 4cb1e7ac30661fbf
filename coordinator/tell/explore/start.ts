/** Connects the explorer to the coordinator's memory. */

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Pool } from "pg";
import type { Log } from "#core/log";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { wholeList } from "../../ask/whole-list.ts";
import type { RecrawlPolicies } from "../../crawl/recrawl/recrawl-settings.ts";
import type { CoordinatorState } from "../../place/delegation/state.ts";
import { type ExplorePorts, everySubnet, exploreQuestion } from "./answer.ts";
import { exploreOperations, readyWorld, subnetColumns } from "./explore-ask.ts";
import { Explorer } from "./explorer.ts";
import { createExploreReads, type ExploreClock } from "./reads.ts";

interface ExplorePartOptions {
  /** Connections for long readings, which exceed the time limit of the pages' connections. */
  readonly patientPool: Pool;
  readonly pool: Pool;
  readonly state: CoordinatorState;
  readonly config: { readonly recrawl: Pick<RecrawlPolicies, "intervalHours"> };
  readonly log: Log;
}

export function explorePart({ patientPool, pool, state, config, log }: ExplorePartOptions): WebPart {
  const explorer = new Explorer({
    state,
    reads: createExploreReads(patientPool),
    clock: systemClock,
    recrawlDays: () => config.recrawl.intervalHours / 24,
    onFault: (error, what) => log.warn({ error }, what),
  });
  return explorePages({ explorer, state, reads: createExploreReads(pool), clock: systemClock });
}

function explorePages(ports: ExplorePorts): WebPart {
  const views = addOperations(exploreOperations, ports);
  const file = wholeList(exploreOperations.explore, {
    ...{ path: "/explore/subnets.csv", name: "subnets", columns: subnetColumns },
    pieces: async (input) => everySubnet(ports, await readyWorld(ports), exploreQuestion(input)),
  });
  return (to) => {
    views(to);
    file(to);
  };
}

export const systemClock: ExploreClock = {
  steadyMs: () => performance.now(),
  yieldTurn: async () => {
    await nextTurn();
  },
};

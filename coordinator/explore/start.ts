/** The explorer beside the coordinator's memory. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Pool } from "pg";
import type { Log } from "#core/log";
import type { CoordinatorConfig } from "../config.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import type { WebPart } from "../web/actions.ts";
import { Explorer } from "./explorer.ts";
import { createExploreReads, type ExploreClock } from "./reads.ts";
import { exploreRoutes } from "./routes.ts";

interface ExplorePartOptions {
  /** For long readings; the pages' own connections are too impatient for them. */
  readonly patientPool: Pool;
  readonly pool: Pool;
  readonly state: CoordinatorState;
  readonly config: Pick<CoordinatorConfig, "recrawl">;
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
  return exploreRoutes({ explorer, state, reads: createExploreReads(pool), clock: systemClock });
}

export const systemClock: ExploreClock = {
  steadyMs: () => performance.now(),
  yieldTurn: async () => {
    await nextTurn();
  },
};

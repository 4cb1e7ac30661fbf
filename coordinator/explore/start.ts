/** The explorer beside the coordinator's memory: it begins to read when the pages are up, and follows from then on. */
import { setImmediate as nextTurn, setTimeout as wait } from "node:timers/promises";
import type { Pool } from "pg";
import type { Log } from "#core/log";
import type { CoordinatorConfig } from "../config.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import type { WebPart } from "../web/actions.ts";
import { defaultExplorerSettings, Explorer } from "./explorer.ts";
import { createExploreReads, type ExploreClock } from "./reads.ts";
import { exploreRoutes } from "./routes.ts";

export interface ExplorePartOptions {
  /** For long readings; the pages' own connections are too impatient for them. */
  readonly patientPool: Pool;
  readonly pool: Pool;
  readonly state: CoordinatorState;
  readonly config: Pick<CoordinatorConfig, "recrawl">;
  readonly log: Log;
}

const reviewMs = 10_000;
/** A page waits so long for the first reading before it says how far that is. */
const mostWaitMs = 2000;

export function explorePart({ patientPool, pool, state, config, log }: ExplorePartOptions): WebPart {
  const explorer = new Explorer(
    {
      state,
      reads: createExploreReads(patientPool),
      clock: systemClock,
      onFault: (error, what) => log.warn({ error }, what),
    },
    {
      ...defaultExplorerSettings,
      get recrawlDays() {
        return config.recrawl.intervalHours / 24;
      },
    },
  );
  const whenReady = async () =>
    await Promise.race([explorer.settled(), wait(mostWaitMs, null, { ref: false })]).then(() => {});
  const routes = exploreRoutes({
    explorer,
    state,
    reads: createExploreReads(pool),
    clock: systemClock,
    whenReady,
  });
  return (to) => {
    routes(to);
    let timer: NodeJS.Timeout | null = null;
    to.app.addHook("onReady", async () => {
      timer = setInterval(() => explorer.review(), reviewMs).unref();
    });
    to.app.addHook("onClose", async () => {
      if (timer !== null) clearInterval(timer);
      await explorer.stop();
    });
  };
}

export const systemClock: ExploreClock = {
  now: () => new Date(),
  steadyMs: () => performance.now(),
  yieldTurn: async () => {
    await nextTurn();
  },
};

/** What keeps the database's tables in order by the clock: the index for search, ranks, channels, changes, old rows. */

import type { IncidentLog } from "#core/incidents";
import type { Timekeeper } from "#core/scheduler";
import { scheduleChangeDuties } from "./changes/start.ts";
import { scheduleChannelDuties } from "./channels/start.ts";
import type { CoordinatorConfig } from "./config.ts";
import type { CoordinatorOptions } from "./coordinator-options.ts";
import { frontierOrder } from "./frontier/order/strategies.ts";
import { scheduleHostWorths } from "./frontier/start.ts";
import { scheduleSearchDuties } from "./search/start.ts";
import { scheduleUpkeep } from "./upkeep-duties.ts";
import { scheduleRanking } from "./web-graph/start.ts";

export function scheduleTableDuties(
  ports: Pick<CoordinatorOptions, "database" | "log"> & {
    readonly incidents: IncidentLog;
    readonly timekeeper: Timekeeper;
    readonly now: () => Date;
  },
  config: Pick<CoordinatorConfig, "changes" | "frontier">,
): void {
  const { database, incidents, timekeeper, log, now } = ports;
  const { pool } = database;
  const nowMs = () => performance.now();
  scheduleSearchDuties({ pool, timekeeper, now, nowMs });
  scheduleUpkeep({ pool, incidents, timekeeper, now });
  scheduleRanking({ database, timekeeper, log, now });
  scheduleHostWorths({ pool, timekeeper, order: () => frontierOrder(config.frontier), now, nowMs });
  scheduleChannelDuties(pool, timekeeper, now);
  scheduleChangeDuties({ pool, timekeeper, now, keepDays: () => config.changes.keepDays, nowMs });
}

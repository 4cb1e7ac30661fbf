/** What keeps the database's tables in order by the clock: the index for search, ranks, channels, changes, old rows. */
import { frontierOrder } from "#core/order/order-strategies";
import { scheduleChangeDuties } from "./change-duties.ts";
import { scheduleChannelDuties } from "./channel-part.ts";
import type { CoordinatorConfig } from "./config.ts";
import type { CoordinatorOptions } from "./coordinator-options.ts";
import type { IncidentLog } from "./flows/incident-log.ts";
import { scheduleRanking } from "./graph-duties.ts";
import { scheduleHostWorths } from "./host-worth-duties.ts";
import { scheduleSearchDuties } from "./search-duties.ts";
import type { Timekeeper } from "./timekeeper.ts";
import { scheduleUpkeep } from "./upkeep-duties.ts";

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

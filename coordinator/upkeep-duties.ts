/** What is forgotten in time: incidents, seals and turns that nobody will ask about any more. */
import type { Pool } from "pg";
import type { IncidentLog } from "#core/incidents";
import type { Timekeeper } from "#core/scheduler";
import { forgetTurns } from "./frontier/turn-store.ts";
import { forgetSeals } from "./results/result-writes.ts";

export interface UpkeepParts {
  readonly pool: Pool;
  readonly incidents: IncidentLog;
  readonly timekeeper: Timekeeper;
  readonly now: () => Date;
}

const forgetMs = 3_600_000;

export function scheduleUpkeep({ pool, incidents, timekeeper, now }: UpkeepParts): void {
  timekeeper.every("forget-what-is-old", forgetMs, async () => {
    await incidents.forgetOld(now());
    await forgetSeals(pool, now());
    await forgetTurns(pool, now());
  });
}

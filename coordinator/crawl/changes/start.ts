/** Periodic work of the change feed: it numbers new changes and removes the oldest. */
import type { Pool } from "pg";
import type { Timekeeper } from "#core/scheduler";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { inTurns } from "../../database/bounded-work.ts";
import { createChangeFeed } from "./change-feed-reads.ts";
import { numberChanges, removeOldChanges } from "./change-writes.ts";
import { changeOperations } from "./changes-ask.ts";

interface ChangeDutyPorts {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every">;
  readonly keepDays: () => number;
  readonly now: () => Date;
  /** Reads a monotonic clock. */
  readonly nowMs: () => number;
}

/** Maximum delay until the change that a stored result caused can be read. */
const numberMs = 500;

const removeMs = 60_000;

/** Maximum working time per run. */
const turnMs = 2000;

const dayMs = 86_400_000;

export function scheduleChanges(ports: ChangeDutyPorts): void {
  const { pool, timekeeper, keepDays, now, nowMs } = ports;
  const turn = { nowMs, turnMs };
  timekeeper.every("number-changes", numberMs, async () => {
    await inTurns(turn, async () => await numberChanges(pool, now()));
  });
  timekeeper.every("forget-changes", removeMs, async () => {
    const before = new Date(now().getTime() - keepDays() * dayMs);
    await inTurns(turn, async () => await removeOldChanges(pool, before));
  });
}

export const changePart = ({ pool }: Pick<ChangeDutyPorts, "pool">): WebPart =>
  addOperations(changeOperations, createChangeFeed(pool));

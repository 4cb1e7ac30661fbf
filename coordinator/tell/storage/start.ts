/** Deletes expired rows by the retention policies, and serves the page on the database's content. */

import type { Pool } from "pg";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { forgetRejectedUrls } from "../../crawl/frontier/frontier-store.ts";
import { forgetClosedLeases } from "../../crawl/frontier/lease-end-writes.ts";
import { keepFetchDays } from "../../crawl/results/fetch-day-store.ts";
import { forgetUnusedSets } from "../../crawl/results/stated-uses-store.ts";
import { deleteOldest, inTurns } from "../../database/bounded-work.ts";
import { forgetDelegationChanges, OldRounds } from "../../place/delegation/round-store.ts";
import { storageOperations } from "./storage-ask.ts";
import { storageFacts } from "./storage-reads.ts";
import { type KeepSettings, storageAnswer, tableEnds } from "./table-ends.ts";

interface RetentionPorts {
  readonly pool: Pool;
  readonly timekeeper: Pick<Timekeeper, "every">;
  readonly log: Pick<Log, "info" | "warn">;
  readonly now: () => Date;
  /** A monotonic clock. */
  readonly nowMs: () => number;
  /** False while the clock is doubted: partitions are then created but none is dropped. Default: always true. */
  readonly mayForget?: () => boolean;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** Time limit per table and run. Remaining rows wait for the next run. */
const turnMs = 2000;

const recordsAtOnce = 1000;

/** Referenced rows are kept longer, because the search may still reach them just before the changes expire. */
const spareDays = 7;

/** These tables have few rows, so even those without an index are scanned. */
const records = Object.entries(tableEnds).flatMap(([table, end]) =>
  end.type === "policy" && end.by !== undefined ? [{ table, ...end.by }] : [],
);

export function retentionDuties(ports: RetentionPorts, config: KeepSettings) {
  const { pool, timekeeper, log, now, nowMs, mayForget = () => true } = ports;
  const turn = { nowMs, turnMs };
  const rounds = new OldRounds(pool);
  const ago = (spanMs: number) => new Date(now().getTime() - spanMs);
  const keepDays = async () => {
    const days = mayForget() ? config.retention.fetchDays : Number.POSITIVE_INFINITY;
    const kept = await keepFetchDays(pool, { keepDays: days, now: now() });
    if (kept !== null && kept.made.length + kept.dropped.length + kept.moved > 0)
      log.info({ ...kept }, "the days of fetches are kept");
  };
  return {
    /** Creates today's partition before results arrive. Failures are harmless, because results have a default partition. */
    begin: async () => {
      await keepDays().catch((error: unknown) => {
        log.warn({ error }, "no day was made for fetches, which lie without one until it is");
      });
    },
    start: () => {
      timekeeper.every("keep-fetch-days", 10 * minuteMs, keepDays);
      timekeeper.every("forget-leases", minuteMs, async () => {
        await forgetClosedLeases(pool, ago(config.retention.leaseHours * hourMs), turn);
      });
      timekeeper.every("forget-rounds", 10 * minuteMs, async () => {
        await rounds.forget(ago(config.retention.roundDays * dayMs), turn);
        await forgetDelegationChanges(pool, ago(config.retention.historyDays * dayMs), turn);
      });
      timekeeper.every("forget-records", hourMs, async () => {
        await forgetRejectedUrls(pool, ago(config.retention.rejectedDays * dayMs), turn);
        const stated = ago((config.changes.keepDays + spareDays) * dayMs);
        await inTurns(turn, async () => await forgetUnusedSets(pool, stated, recordsAtOnce));
        const before = ago(config.retention.recordDays * dayMs);
        for (const record of records)
          await inTurns(turn, async () => await deleteOldest(pool, record, before, recordsAtOnce));
      });
    },
  };
}

export const storagePart = ({
  pool,
  config,
}: Pick<RetentionPorts, "pool"> & { readonly config: KeepSettings }): WebPart =>
  addOperations(storageOperations, {
    read: async (now: Date) => storageAnswer(await storageFacts(pool, now), config, now),
  });

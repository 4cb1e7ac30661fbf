/**
 * Ranks the pages daily in a thread, for orders and importances by rank. If the graph is too large for the
 * coordinator's memory, the log says so, and another engine has to rank it (ops/runbook/scaling.md).
 */

import type { Pool } from "pg";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import { releaseAdvisoryLock, tryAdvisoryLock } from "#db/advisory-lock";
import type { Database } from "#db/server-database";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { graphOperations } from "./graph-ask.ts";
import { estimatedLinks } from "./graph-reads.ts";
import { rankInWorker } from "./local-rank-store.ts";
import { defaultPageRankSettings } from "./page-rank.ts";
import { lastRanked, latestSummary, ranksMadeAt } from "./rank-store.ts";

interface RankingDuty {
  readonly database: Pick<Database, "pool" | "url" | "schema">;
  readonly timekeeper: Pick<Timekeeper, "every" | "stopping">;
  readonly log: Pick<Log, "info" | "warn">;
  readonly now: () => Date;
  /** Maximum number of links that the coordinator ranks. Default: `mostLinksHere`. */
  readonly mostLinks?: number;
}

/** How often it checks whether a ranking is due. */
const lookMs = 600_000;

const rankEveryMs = 86_400_000;

/** Ranking this many links takes about 1 GB of memory. */
const mostLinksHere = 20_000_000;

const lockName = "nearcrawl ranks pages";

export function scheduleRanking(duty: RankingDuty): void {
  duty.timekeeper.every("rank-pages", lookMs, async () => await rankWhenDue(duty));
}

/** Takes a lock, so that only one coordinator ranks. */
async function rankWhenDue(duty: RankingDuty): Promise<void> {
  const { pool, schema } = duty.database;
  const client = await pool.connect();
  try {
    if (!(await tryAdvisoryLock(client, lockName, schema))) return;
    await rankIfOld(duty);
  } catch (error) {
    // A ranking was cancelled so that `stop` need not wait. It writes only at its end, and the next start ranks again.
    if (!duty.timekeeper.stopping.aborted) throw error;
  } finally {
    await releaseAdvisoryLock(client, lockName, schema);
    client.release();
  }
}

async function rankIfOld(duty: RankingDuty): Promise<void> {
  const { database, timekeeper, log, now, mostLinks = mostLinksHere } = duty;
  const at = now();
  const last = await lastRanked(database.pool);
  // A time in the future was written by a fast clock, and does not delay the ranking.
  if (last !== null && last <= at && at.getTime() - last.getTime() < rankEveryMs) return;
  const links = await estimatedLinks(database.pool);
  if (links > mostLinks) {
    log.warn(
      { links, mostLinks },
      "too many links to rank here: run nearcrawl graph export --format parquet, another engine, and nearcrawl rank --from",
    );
    return;
  }
  const { summary, mended } = await rankInWorker(
    database,
    { settings: defaultPageRankSettings, write: true, at },
    { signal: timekeeper.stopping },
  );
  const { nodes, ranking } = summary;
  log.info({ nodes, links: summary.links, iterations: ranking.iterations, mended }, "pages are ranked");
}

export const graphPart = (pool: Pool): WebPart =>
  addOperations(graphOperations, async () => await Promise.all([latestSummary(pool), ranksMadeAt(pool)]));

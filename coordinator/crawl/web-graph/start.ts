/**
 * Ranks the pages once a day in a thread of the coordinator, for the orders and importances that go by rank. A graph that
 * would take too much of the coordinator's memory is left to `nearcrawl rank --engine sql --write`, and the log says so.
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
  /** Links beyond which the coordinator does not rank; absent: `mostLinksHere`. */
  readonly mostLinks?: number;
}

/** How often it is looked whether a ranking is due. */
const lookMs = 600_000;

const rankEveryMs = 86_400_000;

/** About 1 GB while they are ranked. */
const mostLinksHere = 20_000_000;

const lockName = "nearcrawl ranks pages";

export function scheduleRanking(duty: RankingDuty): void {
  duty.timekeeper.every("rank-pages", lookMs, async () => await rankWhenDue(duty));
}

/** One of several coordinators does it. */
async function rankWhenDue(duty: RankingDuty): Promise<void> {
  const { pool, schema } = duty.database;
  const client = await pool.connect();
  try {
    if (!(await tryAdvisoryLock(client, lockName, schema))) return;
    await rankIfOld(duty);
  } catch (error) {
    // Given up, so that stopping need not wait: nothing is written before the end, and the next start ranks.
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
  // A clock that was ahead: what lies in the future is no reason to wait.
  if (last !== null && last <= at && at.getTime() - last.getTime() < rankEveryMs) return;
  const links = await estimatedLinks(database.pool);
  if (links > mostLinks) {
    log.warn({ links, mostLinks }, "too many links to rank here: run nearcrawl rank --engine sql --write");
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

/** The SQL engine from end to end: ranks by statements, summary by statements, and the ranks stay where they are made. */
import type { Pool, PoolClient } from "pg";
import { DatabaseError } from "#core/errors";
import { releaseAdvisoryLock, tryAdvisoryLock } from "#db/advisory-lock";
import type { Database } from "#db/connect";
import type { RankOptions, RankProgress } from "./local-rank-store.ts";
import { copyRanks } from "./rank-store.ts";
import { rankBySql, type SqlRank, type SqlRankOptions } from "./sql-rank-store.ts";
import { readVisits } from "./summarise-graph.ts";
import { type GraphSummary, type RankedPage, topListLength } from "./summary.ts";

/** What the statements tell of the graph; degrees and hosts take the local engine. */
export type SqlSummary = Pick<
  GraphSummary,
  "nodes" | "links" | "selfLinks" | "visited" | "change" | "topPages" | "ranking"
>;

const lockName = "nearcrawl rank by sql";

/** Throws DatabaseError when another process ranks by SQL in this schema: the work tables are the same. */
export async function rankInDatabase(
  database: Pick<Database, "pool" | "schema">,
  options: RankOptions,
  {
    onProgress = () => {},
    placePart,
  }: { onProgress?: (progress: RankProgress) => void } & Pick<SqlRankOptions, "placePart"> = {},
): Promise<{ summary: SqlSummary }> {
  const client = await database.pool.connect();
  try {
    if (!(await tryAdvisoryLock(client, lockName, database.schema))) {
      throw new DatabaseError(
        `another process ranks by SQL in schema ${database.schema}: wait for it to end`,
      );
    }
    const { settings } = options;
    const onIteration = (done: number, residual: number) => onProgress({ step: "sweeps", done, residual });
    const ranked = await rankBySql(client, { settings, onIteration, ...(placePart ? { placePart } : {}) });
    try {
      const summary = await summaryOf(database.pool, ranked, options);
      if (options.write) await write(client, ranked, options.at);
      return { summary };
    } finally {
      await ranked.drop();
    }
  } finally {
    await releaseAdvisoryLock(client, lockName, database.schema);
    // Closed: its settings are not the pool's.
    client.release(true);
  }
}

async function write(client: PoolClient, { table }: SqlRank, at: Date): Promise<void> {
  await client.query("begin");
  try {
    await copyRanks(client, table, at);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

async function summaryOf(pool: Pool, ranked: SqlRank, { settings }: RankOptions): Promise<SqlSummary> {
  const { nodes, links, selfLinks, iterations, residual, converged } = ranked;
  return {
    nodes,
    links,
    selfLinks,
    ...(await readVisits(pool)),
    topPages: await topPages(pool, ranked.table),
    ranking: {
      engine: "sql",
      damping: settings.damping,
      tolerance: settings.tolerance,
      iterations,
      residual,
      converged,
    },
  };
}

async function topPages(pool: Pool, table: string): Promise<RankedPage[]> {
  const { rows } = await pool.query<RankedPage>(
    `select u.url, r.page_rank as "pageRank", coalesce(u.back_links, 0) as "inLinks", r.links::int as "outLinks"
     from (select * from ${table} order by page_rank desc, host_hash, url_hash limit ${topListLength}) r
     left join frontier_url u on u.host_hash = r.host_hash and u.url_hash = r.url_hash
     order by r.page_rank desc, r.host_hash, r.url_hash`,
  );
  return rows;
}

/**
 * PageRank inside the database, for graphs too large for one machine's memory: power iteration in plain statements on
 * tables distributed by host hash. Joins use that key, so each part is joined where it is, and only sums per target
 * travel. It avoids what distributed Postgres engines lack: temporary tables, data-changing CTEs, `on conflict`,
 * `update … from`, identity columns.
 */
import type { Pool, PoolClient } from "pg";
import { DatabaseError } from "#core/errors";
import { releaseAdvisoryLock, tryAdvisoryLock } from "#db/advisory-lock";
import type { Database } from "#db/server-database";
import { inTransaction } from "../../database/transaction.ts";
import type { RankOptions, RankProgress } from "./local-rank-store.ts";
import type { PageRankSettings } from "./page-rank.ts";
import { copyRanks, readVisits } from "./rank-store.ts";
import { type GraphSummary, type RankedPage, topListLength } from "./summary.ts";

interface SqlRank {
  readonly nodes: number;
  readonly links: number;
  readonly selfLinks: number;
  readonly iterations: number;
  /** The share by which the last iteration changed the ranks (L1). */
  readonly residual: number;
  readonly converged: boolean;
  /** Name of the table with host_hash, url_hash, links and page_rank. */
  readonly table: string;
}

const parts = 8;

const tables = {
  sql_rank_seen: "host_hash bigint, url_hash bigint, links bigint",
  sql_rank_share: "host_hash bigint, url_hash bigint, share float8",
  sql_rank_a: "host_hash bigint, url_hash bigint, links bigint, page_rank float8",
  sql_rank_b: "host_hash bigint, url_hash bigint, links bigint, page_rank float8",
} as const;

/**
 * Needs a connection of its own without an open transaction, so that vacuum can remove each iteration's rows. The
 * caller drops the work tables. If the connection was lost, the next ranking does so.
 */
export async function rankBySql(
  client: PoolClient,
  settings: PageRankSettings,
  onIteration: (iteration: number, residual: number) => void = () => {},
): Promise<SqlRank> {
  await client.query("set enable_partitionwise_join = on");
  await client.query("set enable_partitionwise_aggregate = on");
  await makeTables(client);
  const counts = await readNodes(client);
  let [from, to] = ["sql_rank_a", "sql_rank_b"];
  let iterations = 0;
  let residual = counts.nodes === 0 ? 0 : Number.POSITIVE_INFINITY;
  while (iterations < settings.iterations && residual >= settings.tolerance) {
    residual = await iterate(client, { from, to, nodes: counts.nodes, damping: settings.damping });
    [from, to] = [to, from];
    iterations += 1;
    onIteration(iterations, residual);
  }
  return { ...counts, iterations, residual, converged: residual < settings.tolerance, table: from };
}

async function makeTables(client: PoolClient): Promise<void> {
  await dropWorkTables(client);
  for (const [table, columns] of Object.entries(tables)) {
    await client.query(`create table ${table} (${columns}) partition by hash (host_hash)`);
    for (let part = 0; part < parts; part++) {
      await client.query(
        `create unlogged table ${table}_${part} partition of ${table}
         for values with (modulus ${parts}, remainder ${part})`,
      );
    }
  }
}

export async function dropWorkTables(client: PoolClient): Promise<void> {
  await client.query(`drop table if exists ${Object.keys(tables).join(", ")}`);
}

/** Makes a node for each URL of the frontier and each link target, with its number of links to others. */
async function readNodes(client: PoolClient): Promise<{ nodes: number; links: number; selfLinks: number }> {
  await client.query(
    "insert into sql_rank_seen (host_hash, url_hash, links) select host_hash, url_hash, 0 from frontier_url",
  );
  await client.query(
    `insert into sql_rank_seen (host_hash, url_hash, links)
     select to_host_hash, to_url_hash, 0
     from link
     group by to_host_hash, to_url_hash`,
  );
  await client.query(
    `insert into sql_rank_seen (host_hash, url_hash, links)
     select host_hash, url_hash, count(*)
     from link
     where host_hash <> to_host_hash or url_hash <> to_url_hash
     group by host_hash, url_hash`,
  );
  await client.query(
    `insert into sql_rank_b (host_hash, url_hash, links, page_rank)
     select host_hash, url_hash, sum(links), 0
     from sql_rank_seen
     group by host_hash, url_hash`,
  );
  await client.query("truncate sql_rank_seen");
  const counted = await client.query<{ nodes: number; links: number }>(
    "select count(*)::float8 as nodes, coalesce(sum(links), 0)::float8 as links from sql_rank_b",
  );
  const all = await client.query<{ links: number }>("select count(*)::float8 as links from link");
  const { nodes, links } = counted.rows[0]!;
  await startEven(client, nodes);
  return { nodes, links, selfLinks: all.rows[0]!.links - links };
}

async function startEven(client: PoolClient, nodes: number): Promise<void> {
  if (nodes === 0) return;
  await client.query(
    `insert into sql_rank_a (host_hash, url_hash, links, page_rank)
     select host_hash, url_hash, links, $1::float8
     from sql_rank_b`,
    [1 / nodes],
  );
  await client.query("analyze sql_rank_a");
  await client.query("analyze sql_rank_b");
}

interface Iteration {
  readonly from: string;
  readonly to: string;
  readonly nodes: number;
  readonly damping: number;
}

/** Returns by which share the iteration changed the ranks (L1). */
async function iterate(client: PoolClient, { from, to, nodes, damping }: Iteration): Promise<number> {
  await client.query("truncate sql_rank_share");
  await client.query(
    `insert into sql_rank_share (host_hash, url_hash, share)
     select l.to_host_hash, l.to_url_hash, sum(r.page_rank / r.links)
     from link l
     join ${from} r on r.host_hash = l.host_hash and r.url_hash = l.url_hash
     where l.host_hash <> l.to_host_hash or l.url_hash <> l.to_url_hash
     group by l.to_host_hash, l.to_url_hash`,
  );
  const { rows } = await client.query<{ dangling: number }>(
    `select coalesce(sum(page_rank), 0)::float8 as dangling from ${from} where links = 0`,
  );
  const everybody = (1 - damping + damping * rows[0]!.dangling) / nodes;
  await client.query(`truncate ${to}`);
  await client.query(
    `insert into ${to} (host_hash, url_hash, links, page_rank)
     select r.host_hash, r.url_hash, r.links, $1::float8 + $2::float8 * coalesce(s.share, 0)
     from ${from} r
     left join sql_rank_share s on s.host_hash = r.host_hash and s.url_hash = r.url_hash`,
    [everybody, damping],
  );
  const changed = await client.query<{ residual: number }>(
    `select coalesce(sum(abs(n.page_rank - b.page_rank)), 0)::float8 as residual
     from ${to} n
     join ${from} b on b.host_hash = n.host_hash and b.url_hash = n.url_hash`,
  );
  return changed.rows[0]!.residual;
}

// The SQL engine from end to end. Ranks never leave the database.

/** The part of the summary that SQL computes. Degrees and hosts need the local engine. */
type SqlSummary = Pick<
  GraphSummary,
  "nodes" | "links" | "selfLinks" | "visited" | "change" | "topPages" | "ranking"
>;

const lockName = "nearcrawl rank by sql";

/** Throws a DatabaseError if another process ranks by SQL in this schema, because both would use the same work tables. */
export async function rankInDatabase(
  database: Pick<Database, "pool" | "schema">,
  options: RankOptions,
  { onProgress = () => {} }: { onProgress?: (progress: RankProgress) => void } = {},
): Promise<{ summary: SqlSummary }> {
  const client = await database.pool.connect();
  try {
    if (!(await tryAdvisoryLock(client, lockName, database.schema))) {
      throw new DatabaseError(
        `another process ranks by SQL in schema ${database.schema}: wait for it to end`,
      );
    }
    try {
      const ranked = await rankBySql(client, options.settings, (done, residual) =>
        onProgress({ step: "sweeps", done, residual }),
      );
      const summary = await summaryOf(database.pool, ranked, options);
      const write = async (other: PoolClient) => await copyRanks(other, ranked.table, options.at);
      if (options.write) await inTransaction(database.pool, write);
      return { summary };
    } finally {
      await dropWorkTables(client).catch(() => {});
    }
  } finally {
    await releaseAdvisoryLock(client, lockName, database.schema);
    // The connection is closed, because its session settings differ from the pool's.
    client.release(true);
  }
}

async function summaryOf(pool: Pool, ranked: SqlRank, { settings }: RankOptions): Promise<SqlSummary> {
  const { nodes, links, selfLinks, table, ...found } = ranked;
  const { damping, tolerance } = settings;
  return {
    ...{ nodes, links, selfLinks },
    ...(await readVisits(pool)),
    topPages: await topPages(pool, table),
    ranking: { engine: "sql", damping, tolerance, ...found },
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

/** Tables url_rank and graph_summary, and corrections of frontier_url.back_links. */
import type { Pool, PoolClient } from "pg";
import type { HostHash } from "#core/ids";
import { writeCopy } from "#db/copy";
import { partsOf } from "#db/table-sizes";
import { inTransaction, sqlStateOf } from "../../database/transaction.ts";
import { lockHosts } from "../frontier/admission-writes.ts";
import { readRelatives } from "../frontier/foreign-url-store.ts";
import { hostsByHash, urlsByHash, type WebGraph } from "./graph-reads.ts";
import { inDegrees, NodeIndex } from "./link-graph.ts";
import { type PageRank, type PageRankSettings, pageRank } from "./page-rank.ts";
import {
  type GraphSummary,
  type HostGraph,
  hostGraph,
  largest,
  type RankedHost,
  type RankedPage,
  shapeOf,
  topListLength,
} from "./summary.ts";

const keptSummaries = 100;

const mendedAtOnce = 500;

/** Replaces all ranks. Concurrent readers see the former ranks. */
export async function writeRanks(
  client: PoolClient,
  { index, knownNodes }: WebGraph,
  { ranks, at }: { readonly ranks: Float64Array; readonly at: Date },
): Promise<void> {
  const keys = index.keys;
  await replaceRanks(client, async (table) => {
    const into = { table, columns: ["host_hash", "url_hash", "page_rank", "ranked_at"] };
    await writeCopy(client, into, async (rows) => {
      for (let node = 0; node < knownNodes; node++) {
        rows.row();
        rows.int64(keys[4 * node]!, keys[4 * node + 1]!);
        rows.int64(keys[4 * node + 2]!, keys[4 * node + 3]!);
        rows.float32(ranks[node]!);
        rows.timestamp(at);
        if (rows.isFull) await rows.flush();
      }
    });
  });
}

/** How long the swap may block others. Then it releases its place in the queue and retries. */
const swapLockMs = 500;

const mostSwapTries = 120;

/**
 * Fills a new table and swaps it in within the caller's transaction, because deleting and inserting would leave a
 * dead row for each live one in table and index. The table in use is locked only at the end. Readers delay the swap,
 * but the swap delays others no longer than `swapLockMs`.
 */
export async function replaceRanks(
  client: PoolClient,
  fill: (table: string) => Promise<void>,
): Promise<void> {
  await client.query("select pg_advisory_xact_lock(hashtext('nearcrawl rank'), hashtext(current_schema()))");
  const parts = (await partsOf(client, "url_rank")).length;
  await client.query("create table url_rank_next (like url_rank) partition by hash (host_hash)");
  for (let part = 0; part < parts; part++)
    await client.query(
      `create table url_rank_next_${part} partition of url_rank_next for values with (modulus ${parts}, remainder ${part})`,
    );
  await fill("url_rank_next");
  await client.query("alter table url_rank_next add primary key (host_hash, url_hash)");
  await client.query("analyze url_rank_next");
  await lockRanks(client);
  await client.query("drop table url_rank");
  await client.query("alter table url_rank_next rename to url_rank");
  await client.query("alter index url_rank_next_pkey rename to url_rank_pkey");
  for (let part = 0; part < parts; part++) {
    await client.query(`alter table url_rank_next_${part} rename to url_rank_${part}`);
    await client.query(`alter index url_rank_next_${part}_pkey rename to url_rank_${part}_pkey`);
  }
}

async function lockRanks(client: PoolClient): Promise<void> {
  await client.query(`set local lock_timeout = ${swapLockMs}`);
  for (let attempt = 1; ; attempt++) {
    await client.query("savepoint before_swap");
    try {
      await client.query("lock table url_rank in access exclusive mode");
      return;
    } catch (error) {
      if (sqlStateOf(error) !== lockNotAvailable || attempt === mostSwapTries) throw error;
      await client.query("rollback to savepoint before_swap");
      await client.query("select pg_sleep($1)", [swapLockMs / 1000]);
    }
  }
}

const lockNotAvailable = "55P03";

export async function writeSummary(client: PoolClient, summary: GraphSummary, at: Date): Promise<void> {
  await client.query(
    "insert into graph_summary (made_at, summary) values ($1, $2) on conflict (made_at) do update set summary = excluded.summary",
    [at, JSON.stringify(summary)],
  );
  await client.query(
    "delete from graph_summary where made_at not in (select made_at from graph_summary order by made_at desc limit $1)",
    [keptSummaries],
  );
}

/** Returns when the pages were last ranked, here or elsewhere, or null. */
export async function lastRanked(pool: Pick<Pool, "query">): Promise<Date | null> {
  const { rows } = await pool.query<{ at: Date | null }>(
    `select greatest(
       (select ranked_at from url_rank limit 1),
       (select max(made_at) from graph_summary)
     ) as at`,
  );
  return rows[0]!.at;
}

/** Returns when the stored ranks were made, or null. */
export async function ranksMadeAt(pool: Pick<Pool, "query">): Promise<Date | null> {
  const { rows } = await pool.query<{ ranked_at: Date }>("select ranked_at from url_rank limit 1");
  return rows[0]?.ranked_at ?? null;
}

/** Returns null if nobody has ranked yet. */
export async function latestSummary(
  pool: Pick<Pool, "query">,
): Promise<{ madeAt: Date; summary: GraphSummary } | null> {
  const { rows } = await pool.query<{ made_at: Date; summary: GraphSummary }>(
    "select made_at, summary from graph_summary order by made_at desc limit 1",
  );
  const [row] = rows;
  return row === undefined ? null : { madeAt: row.made_at, summary: row.summary };
}

/**
 * Adds the links that existed before the frontier had their target. It adds a difference, so that concurrent changes
 * count, too. Returns how many URLs were corrected. If there are related coordinators, surplus counts are correct,
 * because others reported those links.
 */
export async function mendBackLinks(pool: Pool, graph: WebGraph): Promise<number> {
  const isAlone = (await readRelatives(pool)) === null;
  const wrong = wrongCounts(graph).filter(({ missing }) => isAlone || missing > 0);
  for (let first = 0; first < wrong.length; first += mendedAtOnce) {
    const some = wrong.slice(first, first + mendedAtOnce);
    await inTransaction(pool, async (client) => {
      await lockHosts(
        client,
        some.map(({ hostHash }) => hostHash as HostHash),
      );
      await client.query(
        `update frontier_url u
         set back_links = greatest(0, u.back_links + given.missing)
         from unnest($1::bigint[], $2::bigint[], $3::int[]) as given (host_hash, url_hash, missing)
         where u.host_hash = given.host_hash and u.url_hash = given.url_hash`,
        [
          some.map(({ hostHash }) => hostHash),
          some.map(({ urlHash }) => urlHash),
          some.map(({ missing }) => missing),
        ],
      );
    });
  }
  return wrong.length;
}

function wrongCounts({ index, countedLinks, backLinks, knownNodes }: WebGraph) {
  const wrong: { hostHash: string; urlHash: string; missing: number }[] = [];
  for (let node = 0; node < knownNodes; node++) {
    const missing = backLinks[node]! - countedLinks[node]!;
    if (missing !== 0) wrong.push({ ...hashesOf(index.keys, node), missing });
  }
  return wrong;
}

/** Returns hashes in decimal, like the database's bigints. */
function hashesOf(keys: Int32Array, node: number): { hostHash: string; urlHash: string } {
  return {
    hostHash: bigintOf(keys[4 * node]!, keys[4 * node + 1]!),
    urlHash: bigintOf(keys[4 * node + 2]!, keys[4 * node + 3]!),
  };
}

function bigintOf(high: number, low: number): string {
  return ((BigInt(high) << 32n) | BigInt(low >>> 0)).toString();
}

interface Hosts {
  readonly graph: HostGraph;
  /** Keyed by the host's hash. The other half of the key is 0. */
  readonly index: NodeIndex;
  readonly pages: Uint32Array;
}

/** Numbers hosts in the order of their first nodes. */
export function hostsOf(graph: WebGraph, seed: number): Hosts {
  const { keys } = graph.index;
  const index = new NodeIndex(seed);
  const hostOf = new Uint32Array(graph.nodes);
  for (let node = 0; node < graph.nodes; node++) {
    hostOf[node] = index.add(0, 0, keys[4 * node]!, keys[4 * node + 1]!);
  }
  const pages = new Uint32Array(index.size);
  for (const host of hostOf) pages[host]! += 1;
  return { graph: hostGraph(graph, hostOf, index.size), index, pages };
}

interface RankedGraph {
  readonly graph: WebGraph;
  readonly hosts: Hosts;
  readonly ranking: PageRank;
  readonly settings: PageRankSettings;
}

export async function summaryOf(pool: Pool, found: RankedGraph): Promise<GraphSummary> {
  const { graph, hosts, ranking, settings } = found;
  const { ranks: _ranks, ...facts } = ranking;
  const inLinks = inDegrees(graph);
  return {
    ...shapeOf(graph, hosts.graph),
    knownNodes: graph.knownNodes,
    ...(await readVisits(pool)),
    topPages: await pagesOf(pool, found, largest(ranking.ranks, topListLength)),
    mostLinked: await pagesOf(pool, found, largest(inLinks, topListLength)),
    topHosts: await topHosts(pool, hosts, settings),
    ranking: { damping: settings.damping, tolerance: settings.tolerance, ...facts },
  };
}

/** Computes averages over visited pages. */
async function readVisits(pool: Pick<Pool, "query">): Promise<Pick<GraphSummary, "visited" | "change">> {
  const { rows } = await pool.query<{
    pages: number;
    out_links: number | null;
    compared: number;
    change_ratio: number | null;
  }>(
    `select count(out_links)::float8 as pages, avg(out_links)::float8 as out_links,
       count(change_ratio)::float8 as compared, avg(change_ratio)::float8 as change_ratio
     from frontier_url
     where visits > 0`,
  );
  const { pages, out_links: averageOutLinks, compared, change_ratio: average } = rows[0]!;
  return { visited: { pages, averageOutLinks }, change: { pages: compared, average } };
}

async function pagesOf(
  pool: Pool,
  { graph, ranking }: RankedGraph,
  nodes: readonly number[],
): Promise<RankedPage[]> {
  const hashes = nodes.map((node) => hashesOf(graph.index.keys, node));
  const urls = await urlsByHash(pool, hashes);
  const inLinks = inDegrees(graph);
  return nodes.map((node, place) => ({
    url: urls[place]!,
    pageRank: ranking.ranks[node]!,
    inLinks: inLinks[node]!,
    outLinks: graph.outWeights[node]!,
  }));
}

async function topHosts(pool: Pool, hosts: Hosts, settings: PageRankSettings): Promise<RankedHost[]> {
  const { graph, index, pages } = hosts;
  const { ranks } = pageRank(graph, settings);
  const top = largest(ranks, topListLength);
  const names = await hostsByHash(
    pool,
    top.map((host) => bigintOf(index.keys[4 * host + 2]!, index.keys[4 * host + 3]!)),
  );
  return top.map((host, place) => ({
    host: names[place]!,
    rank: ranks[host]!,
    pages: pages[host]!,
    linkingHosts: graph.starts[host + 1]! - graph.starts[host]!,
    inLinks: weightOf(graph, host),
    outLinks: graph.outWeights[host]!,
  }));
}

function weightOf({ starts, weights }: HostGraph, host: number): number {
  return weights?.subarray(starts[host]!, starts[host + 1]!).reduce((sum, weight) => sum + weight, 0) ?? 0;
}

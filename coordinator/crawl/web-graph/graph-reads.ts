/**
 * Reads the web graph by COPY. The frontier's URLs are the first nodes, in order of arrival; link targets outside the
 * frontier, which have no links, follow. All is from one snapshot, so that links and their stored counts agree.
 */
import type { Pool, PoolClient } from "pg";
import { type CopiedRow, readCopy } from "#db/copy";
import { estimatedRows } from "#db/table-sizes";
import { type LinkGraph, LinkList, linkGraph, NodeIndex } from "./link-graph.ts";

interface ReadLinks {
  readonly index: NodeIndex;
  /** Nodes below this number are the frontier's URLs. */
  readonly knownNodes: number;
  /** The stored count frontier_url.back_links of each of the frontier's URLs. */
  readonly countedLinks: Int32Array;
  readonly links: LinkList;
}

export interface WebGraph extends LinkGraph, Omit<ReadLinks, "links"> {
  /** Counts the links to each of the frontier's URLs, including links to itself. */
  readonly backLinks: Int32Array;
}

export interface ReadingProgress {
  readonly step: "urls" | "links" | "ranks";
  readonly done: number;
  /** The database server's estimate; 0 if it has none. */
  readonly expected: number;
}

type OnReading = (progress: ReadingProgress) => void;

const tellEvery = 50_000;

/** In COPY's format an array is ndim, flags and type, then the dimension's length and first index, then lengths and values. */
const pagesWithLinks = "select host_hash, url_hash, own_links::int, urls, hosts, places::int[] from out_link";

/** `seed` must be unpredictable (link-graph.ts). */
export async function readLinks(
  pool: Pool,
  seed: number,
  onReading: OnReading = () => {},
): Promise<ReadLinks> {
  return await inSnapshot(pool, async (client) => {
    const expected = await expectedRows(client);
    const { index, countedLinks } = await readUrls(client, seed, teller("urls", expected.urls, onReading));
    const knownNodes = index.size;
    const links = new LinkList();
    await readLinkRows(client, { index, links, tell: teller("links", expected.links, onReading) });
    return { index, knownNodes, countedLinks, links };
  });
}

export function webGraph({ links, index, knownNodes, countedLinks }: ReadLinks): WebGraph {
  const graph = linkGraph({ nodes: index.size, from: links.from, to: links.to });
  return { ...graph, index, knownNodes, countedLinks, backLinks: backLinksOf(links, knownNodes) };
}

/** Estimates by statistics: the number of pages times the mean number of links of the first pages on disk. */
export async function estimatedLinks(pool: Pick<Pool, "query">): Promise<number> {
  const { rows } = await pool.query<{ links: number }>(
    `select coalesce(avg(cardinality(o.urls)), 0)::float8 as links
     from (select urls from out_link limit 2000) o`,
  );
  return (await estimatedRows(pool, "out_link")) * rows[0]!.links;
}

async function expectedRows(client: PoolClient): Promise<{ urls: number; links: number }> {
  return { urls: await estimatedRows(client, "frontier_url"), links: await estimatedLinks(client) };
}

async function readUrls(
  client: PoolClient,
  seed: number,
  tell: (done: number) => void,
): Promise<Pick<ReadLinks, "index" | "countedLinks">> {
  const index = new NodeIndex(seed);
  let counted = new Int32Array(1024);
  await readCopy(client, "select host_hash, url_hash, back_links from frontier_url", (row) => {
    const node = index.add(row.half(0, 0), row.half(0, 1), row.half(1, 0), row.half(1, 1));
    if (node === counted.length) counted = grown(counted);
    counted[node] = row.int32(2);
    tell(index.size);
  });
  return { index, countedLinks: counted.subarray(0, index.size) };
}

interface LinkReading {
  readonly index: NodeIndex;
  readonly links: LinkList;
  readonly tell: (done: number) => void;
}

async function readLinkRows(client: PoolClient, { index, links, tell }: LinkReading): Promise<void> {
  await readCopy(client, pagesWithLinks, (row) => {
    const from = index.add(row.half(0, 0), row.half(0, 1), row.half(1, 0), row.half(1, 1));
    const ownLinks = row.int32(2);
    const count = arrayLength(row, 3);
    for (let link = 0; link < count; link++) {
      const url = arrayHeader + 3 * link + 1;
      const place = link < ownLinks ? null : row.half(5, arrayHeader + 2 * (link - ownLinks) + 1) - 1;
      const host = place === null ? 0 : arrayHeader + 3 * place + 1;
      const column = place === null ? 0 : 4;
      const to = index.add(
        row.half(column, host),
        row.half(column, host + 1),
        row.half(3, url),
        row.half(3, url + 1),
      );
      links.add(from, to);
      tell(links.count);
    }
  });
}

/** Length of an array's header in 32-bit words. Then each element has a word for its length and one for its value. */
const arrayHeader = 5;

const arrayLength = (row: CopiedRow, column: number) => (row.half(column, 0) === 0 ? 0 : row.half(column, 3));

function backLinksOf({ to }: LinkList, knownNodes: number): Int32Array {
  const counts = new Int32Array(knownNodes);
  for (let link = 0; link < to.length; link++) if (to[link]! < knownNodes) counts[to[link]!]! += 1;
  return counts;
}

function grown(numbers: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * numbers.length);
  larger.set(numbers);
  return larger;
}

function teller(step: ReadingProgress["step"], expected: number, onReading: OnReading) {
  return (done: number) => {
    if (done % tellEvery === 0) onReading({ step, done, expected });
  };
}

// Exports the web graph row by row in constant memory, through cursors over one snapshot.

/** `pages`: URLs with their links. `hosts`: hosts with the number of links between their pages. */
type GraphKind = "pages" | "hosts";

export interface ExportedNode {
  /** The hashes in hexadecimal: 32 digits for a page, 16 for a host. */
  readonly id: string;
  /** URL or host name; null if it is only linked to and not in the frontier. */
  readonly name: string | null;
  readonly pageRank: number | null;
  readonly inLinks: number | null;
  readonly outLinks: number | null;
}

export interface ExportedLink {
  readonly from: string;
  readonly to: string;
  readonly fromName: string | null;
  readonly toName: string | null;
  /** Number of links; always 1 between pages. */
  readonly links: number;
}

export interface GraphRows {
  /** Nodes of the frontier come first, in hash order, then the others. */
  nodes(onRows: (rows: readonly ExportedNode[]) => Promise<void>): Promise<void>;
  /** `sorted` orders links by their source nodes. Links of a page to itself are included. */
  links(sorted: boolean, onRows: (rows: readonly ExportedLink[]) => Promise<void>): Promise<void>;
}

const rowsAtOnce = 5000;

/** Everything that `work` reads is from one snapshot. */
export async function readGraphRows<T>(
  pool: Pool,
  kind: GraphKind,
  work: (rows: GraphRows) => Promise<T>,
): Promise<T> {
  return await inSnapshot(
    pool,
    async (client) =>
      await work({
        nodes: async (onRows) => {
          for (const sql of nodeSql[kind]) await eachBatch(client, sql, onRows);
        },
        links: async (sorted, onRows) => {
          await eachBatch(client, `${linkSql[kind]} ${sorted ? linkOrder[kind] : ""}`, onRows);
        },
      }),
  );
}

async function inSnapshot<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query("begin isolation level repeatable read read only");
    return await work(client);
  } finally {
    await client.query("rollback").catch(() => {});
    client.release();
  }
}

async function eachBatch<Row extends object>(
  client: PoolClient,
  sql: string,
  onRows: (rows: readonly Row[]) => Promise<void>,
): Promise<void> {
  for await (const rows of batches<Row>(client, sql)) await onRows(rows);
}

async function* batches<Row extends object>(client: PoolClient, sql: string): AsyncGenerator<Row[]> {
  await client.query(`declare graph_rows no scroll cursor for ${sql}`);
  while (true) {
    const { rows } = await client.query<Row>(`fetch forward ${rowsAtOnce} from graph_rows`);
    if (rows.length === 0) break;
    yield rows;
  }
  await client.query("close graph_rows");
}

type TableRow = Readonly<Record<string, string | bigint | boolean | null>>;

/**
 * Both tables by the hashes alone, which needs no look-up of URLs, from one snapshot. `onTable` takes all rows of one
 * before it resolves.
 */
export async function readGraphTables(
  pool: Pool,
  onTable: (table: "nodes" | "edges", rows: AsyncIterable<TableRow>) => Promise<void>,
  onReading: OnReading,
): Promise<void> {
  await inSnapshot(pool, async (client) => {
    const { urls, links } = await expectedRows(client);
    for (const [table, step, expected] of [
      ["nodes", "urls", urls],
      ["edges", "links", links],
    ] as const)
      await onTable(table, tableRows(client, tableSql[table], teller(step, expected, onReading)));
  });
}

async function* tableRows(client: PoolClient, sql: string, tell: (done: number) => void) {
  let done = 0;
  for await (const rows of batches<Record<string, string | boolean | null>>(client, sql)) {
    for (const row of rows) {
      yield Object.fromEntries(
        Object.entries(row).map(([name, value]) => [name, name.endsWith("hash") ? BigInt(value!) : value]),
      );
    }
    done += rows.length;
    tell(done);
  }
}

const tableSql = {
  nodes: `select host_hash, url_hash, url from frontier_url
     union all
     select l.to_host_hash, l.to_url_hash, null
     from link l
     where not exists (
       select from frontier_url u where u.host_hash = l.to_host_hash and u.url_hash = l.to_url_hash
     )
     group by l.to_host_hash, l.to_url_hash`,
  edges: `select host_hash as from_host_hash, url_hash as from_url_hash, to_host_hash, to_url_hash, nofollow from link`,
};

const hex = (column: string) => `lpad(to_hex(${column}), 16, '0')`;

const nodeSql: Readonly<Record<GraphKind, readonly string[]>> = {
  pages: [
    `select ${hex("u.host_hash")} || ${hex("u.url_hash")} as id, u.url as name, r.page_rank::float8 as "pageRank",
       u.back_links as "inLinks", u.out_links as "outLinks"
     from frontier_url u
     left join url_rank r on r.host_hash = u.host_hash and r.url_hash = u.url_hash
     order by u.host_hash, u.url_hash`,
    `select ${hex("l.to_host_hash")} || ${hex("l.to_url_hash")} as id, null as name, null as "pageRank",
       count(*)::int as "inLinks", null as "outLinks"
     from link l
     where not exists (
       select from frontier_url u where u.host_hash = l.to_host_hash and u.url_hash = l.to_url_hash
     )
     group by l.to_host_hash, l.to_url_hash
     order by l.to_host_hash, l.to_url_hash`,
  ],
  hosts: [
    `select ${hex("host_hash")} as id, host as name, null as "pageRank", null as "inLinks", null as "outLinks"
     from frontier_host
     order by host_hash`,
    `select ${hex("l.to_host_hash")} as id, null as name, null as "pageRank", null as "inLinks", null as "outLinks"
     from link l
     where not exists (select from frontier_host h where h.host_hash = l.to_host_hash)
     group by l.to_host_hash
     order by l.to_host_hash`,
  ],
};

const linkSql: Readonly<Record<GraphKind, string>> = {
  pages: `select ${hex("l.host_hash")} || ${hex("l.url_hash")} as "from",
       ${hex("l.to_host_hash")} || ${hex("l.to_url_hash")} as "to", s.url as "fromName", t.url as "toName", 1 as links
     from link l
     left join frontier_url s on s.host_hash = l.host_hash and s.url_hash = l.url_hash
     left join frontier_url t on t.host_hash = l.to_host_hash and t.url_hash = l.to_url_hash`,
  hosts: `select ${hex("l.host_hash")} as "from", ${hex("l.to_host_hash")} as "to", s.host as "fromName",
       t.host as "toName", l.links
     from (
       select host_hash, to_host_hash, count(*)::float8 as links
       from link
       where host_hash <> to_host_hash
       group by host_hash, to_host_hash
     ) l
     left join frontier_host s on s.host_hash = l.host_hash
     left join frontier_host t on t.host_hash = l.to_host_hash`,
};

const linkOrder: Readonly<Record<GraphKind, string>> = {
  pages: "order by l.host_hash, l.url_hash",
  hosts: "order by l.host_hash",
};

export async function urlsByHash(
  pool: Pool,
  hashes: readonly { readonly hostHash: string; readonly urlHash: string }[],
): Promise<(string | null)[]> {
  const { rows } = await pool.query<{ url: string | null }>(
    `select u.url
     from unnest($1::bigint[], $2::bigint[]) with ordinality as given (host_hash, url_hash, place)
     left join frontier_url u on u.host_hash = given.host_hash and u.url_hash = given.url_hash
     order by given.place`,
    [hashes.map(({ hostHash }) => hostHash), hashes.map(({ urlHash }) => urlHash)],
  );
  return rows.map(({ url }) => url);
}

export async function hostsByHash(pool: Pool, hostHashes: readonly string[]): Promise<(string | null)[]> {
  const { rows } = await pool.query<{ host: string | null }>(
    `select h.host
     from unnest($1::bigint[]) with ordinality as given (host_hash, place)
     left join frontier_host h on h.host_hash = given.host_hash
     order by given.place`,
    [hostHashes],
  );
  return rows.map(({ host }) => host);
}

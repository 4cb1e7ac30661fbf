/** The web graph row by row for whoever wants it elsewhere: by cursors of one snapshot, so that nothing is held in memory. */
import type { Pool, PoolClient } from "pg";

/** `pages`: URLs and their links; `hosts`: hosts and how many links lead from pages of one to pages of the other. */
export type GraphKind = "pages" | "hosts";

export interface ExportedNode {
  /** Hexadecimal, of the hashes: 32 digits for a page, 16 for a host. */
  readonly id: string;
  /** URL or host; null: linked to, and not in the frontier. */
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
  /** 1 between pages. */
  readonly links: number;
}

export interface GraphRows {
  /** Those of the frontier first, in the order of their hashes, then those beyond it. */
  nodes(onRows: (rows: readonly ExportedNode[]) => Promise<void>): Promise<void>;
  /** With `sorted` in the order of their sources among the nodes. Links of a page to itself are among them. */
  links(sorted: boolean, onRows: (rows: readonly ExportedLink[]) => Promise<void>): Promise<void>;
}

const rowsAtOnce = 5000;

/** All that `work` reads is of one moment. */
export async function readGraphRows<T>(
  pool: Pool,
  kind: GraphKind,
  work: (rows: GraphRows) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query("begin isolation level repeatable read read only");
    return await work({
      nodes: async (onRows) => {
        for (const sql of nodeSql[kind]) await eachBatch(client, sql, onRows);
      },
      links: async (sorted, onRows) => {
        await eachBatch(client, `${linkSql[kind]} ${sorted ? linkOrder[kind] : ""}`, onRows);
      },
    });
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
  await client.query(`declare graph_rows no scroll cursor for ${sql}`);
  while (true) {
    const { rows } = await client.query<Row>(`fetch forward ${rowsAtOnce} from graph_rows`);
    if (rows.length === 0) break;
    await onRows(rows);
  }
  await client.query("close graph_rows");
}

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

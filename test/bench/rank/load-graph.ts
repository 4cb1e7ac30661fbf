/** A graph into the frontier and its links, as visits would have left it, by COPY. */
import type { Pool, PoolClient } from "pg";
import { type CopyWriter, writeCopy } from "#db/copy";
import type { ScaleFreeGraph } from "./scale-free-graph.ts";

export async function loadGraph(pool: Pool, graph: ScaleFreeGraph): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    await loadUrls(client, graph);
    await loadLinks(client, graph);
    await client.query("commit");
    await client.query("vacuum analyze");
  } finally {
    client.release();
  }
}

async function loadUrls(client: PoolClient, graph: ScaleFreeGraph): Promise<void> {
  const into = { table: "frontier_url", columns: ["host_hash", "url_hash", "url"] };
  await writeCopy(client, into, async (rows) => {
    for (const [node, url] of graph.urls.entries()) {
      rows.row();
      writeNode(rows, graph, node);
      rows.text(url);
      if (rows.isFull) await rows.flush();
    }
  });
  await client.query(
    `insert into frontier_host (host_hash, host)
     select distinct host_hash, split_part(split_part(url, '/', 3), ':', 1) from frontier_url`,
  );
}

/** As rows of out_link have them: own links first, each URL once; hosts and places of the others. */
async function loadLinks(client: PoolClient, graph: ScaleFreeGraph): Promise<void> {
  const columns = ["host_hash", "url_hash", "to_host_hash", "to_url_hash"];
  await client.query(
    `create temporary table given_link (${columns.map((column) => `${column} bigint not null`).join(", ")}) on commit drop`,
  );
  await writeCopy(client, { table: "given_link", columns }, async (rows) => {
    for (let link = 0; link < graph.from.length; link++) {
      rows.row();
      writeNode(rows, graph, graph.from[link]!);
      writeNode(rows, graph, graph.to[link]!);
      if (rows.isFull) await rows.flush();
    }
  });
  await client.query(
    `with given as materialized (
       select *, to_host_hash <> host_hash as is_far
       from (select distinct * from given_link) given_link
     ), far as (
       select host_hash, url_hash, array_agg(distinct to_host_hash order by to_host_hash) as hosts
       from given where is_far group by host_hash, url_hash
     )
     insert into out_link (host_hash, url_hash, visit, visited_at, digest, own_links, urls, hosts, places, anchors)
     select g.host_hash, g.url_hash, 1, now(), 0, count(*) filter (where not is_far),
       array_agg(to_url_hash order by is_far, to_host_hash, to_url_hash), coalesce(min(far.hosts), '{}'),
       coalesce(array_agg(array_position(far.hosts, to_host_hash)::smallint order by to_host_hash, to_url_hash)
         filter (where is_far), '{}'),
       repeat(e'\n', count(*)::int - 1)
     from given g
     left join far on far.host_hash = g.host_hash and far.url_hash = g.url_hash
     group by g.host_hash, g.url_hash`,
  );
}

function writeNode(rows: CopyWriter, { hostHashes, urlHashes }: ScaleFreeGraph, node: number): void {
  for (const hash of [hostHashes[node]!, urlHashes[node]!]) {
    rows.int64(Number(hash >> 32n), Number(hash & 0xffff_ffffn));
  }
}

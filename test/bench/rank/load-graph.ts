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

async function loadLinks(client: PoolClient, graph: ScaleFreeGraph): Promise<void> {
  const columns = ["host_hash", "url_hash", "to_host_hash", "to_url_hash", "anchor", "nofollow"];
  await writeCopy(client, { table: "link", columns }, async (rows) => {
    for (let link = 0; link < graph.from.length; link++) {
      rows.row();
      writeNode(rows, graph, graph.from[link]!);
      writeNode(rows, graph, graph.to[link]!);
      rows.text("a link");
      rows.boolean(false);
      if (rows.isFull) await rows.flush();
    }
  });
}

function writeNode(rows: CopyWriter, { hostHashes, urlHashes }: ScaleFreeGraph, node: number): void {
  for (const hash of [hostHashes[node]!, urlHashes[node]!]) {
    rows.int64(Number(hash >> 32n), Number(hash & 0xffff_ffffn));
  }
}

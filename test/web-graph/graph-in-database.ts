/** A small random graph in the frontier's tables, partly outside the frontier, and its expected ranks. */
import type { Pool } from "pg";
import { seededRandom } from "#core/random";
import type { UrlAddress } from "#core/url-key";
import { addLinks } from "../support/links.ts";
import { densePageRank } from "./dense-page-rank.ts";

export interface SeededGraph {
  /** `host/url` of the hashes → rank, by the definition. */
  readonly ranks: ReadonlyMap<string, number>;
  readonly links: number;
  readonly selfLinks: number;
  /** Links to URLs in the frontier, by name. */
  readonly backLinks: ReadonlyMap<string, number>;
}

/** Cycles, pages without links, self-links, links to 6 pages outside the frontier. */
export async function seedGraph(pool: Pool, seed: number, damping: number): Promise<SeededGraph> {
  const random = seededRandom(seed);
  const nodes = Array.from({ length: 40 }, (_, node) => ({
    // Both ends of bigint, and hosts with several pages.
    host: `${(BigInt(node % 11) - 5n) * 1_700_000_000_000_000_000n}`,
    url: `${BigInt(Math.floor(random() * 2 ** 40)) * (node % 2 === 0 ? 1n : -1n)}`,
  }));
  const known = nodes.slice(0, 34);
  const links = Array.from({ length: 160 }, () => {
    const from = Math.floor(random() * 25);
    const to = random() < 0.1 ? from : Math.floor(random() ** 2 * nodes.length);
    return [from, to] as const;
  });
  const distinct = [...new Map(links.map((link) => [link.join(), link])).values()];
  await pool.query(
    `insert into frontier_url (host_hash, url_hash, url)
     select host, url, 'http://page.example/' || place
     from unnest($1::bigint[], $2::bigint[]) with ordinality as given (host, url, place)`,
    [known.map(({ host }) => host), known.map(({ url }) => url)],
  );
  const address = (node: number) =>
    ({ hostHash: nodes[node]!.host, urlHash: nodes[node]!.url }) as UrlAddress;
  await addLinks(
    pool,
    distinct.map(([from, to]) => ({ from: address(from), to: address(to) })),
  );
  return expectedOf(nodes, distinct, damping);
}

function expectedOf(
  nodes: readonly { host: string; url: string }[],
  links: readonly (readonly [number, number])[],
  damping: number,
): SeededGraph {
  const name = (node: number) => `${nodes[node]!.host}/${nodes[node]!.url}`;
  const there = new Set([...links.map(([, to]) => to), ...nodes.slice(0, 34).map((_, node) => node)]);
  const order = [...there].sort((a, b) => a - b);
  const ranks = densePageRank(
    order.length,
    links.map(([from, to]) => [order.indexOf(from), order.indexOf(to)] as const),
    damping,
  );
  return {
    ranks: new Map(order.map((node, at) => [name(node), ranks[at]!])),
    links: links.filter(([from, to]) => from !== to).length,
    selfLinks: links.filter(([from, to]) => from === to).length,
    backLinks: new Map(
      nodes.slice(0, 34).map((_, node) => [name(node), links.filter(([, to]) => to === node).length]),
    ),
  };
}

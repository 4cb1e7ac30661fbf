/**
 * A seeded graph like the web's (Kumar et al. 2000, the copying model): pages of hosts whose sizes follow a power law,
 * out-degrees around an average with a long tail, targets copied from other links (so that in-degrees follow a power law),
 * taken from the page's own host, or anywhere. A share of the pages was never visited and has no links.
 */

import { seededRandom } from "#core/random";
import { urlKeyOf } from "#core/url-key";

export interface ScaleFreeSettings {
  readonly nodes: number;
  readonly links: number;
  readonly hosts: number;
  readonly seed: number;
  /** Of pages that have no links. */
  readonly unvisited: number;
}

export interface ScaleFreeGraph {
  /** In the order of their hashes, as the database keeps them. */
  readonly urls: readonly string[];
  readonly hostHashes: BigInt64Array;
  readonly urlHashes: BigInt64Array;
  /** In the order of their sources; no link twice. */
  readonly from: Uint32Array;
  readonly to: Uint32Array;
}

export function scaleFreeGraph(settings: ScaleFreeSettings): ScaleFreeGraph {
  const random = seededRandom(settings.seed);
  const pages = pagesOf(settings, random);
  const links = linksOf(
    settings,
    pages.map(({ host }) => host),
    random,
  );
  return {
    urls: pages.map(({ url }) => url),
    hostHashes: BigInt64Array.from(pages, ({ hostHash }) => hostHash),
    urlHashes: BigInt64Array.from(pages, ({ urlHash }) => urlHash),
    ...links,
  };
}

/** Of one page, as on the wire. */
const mostLinks = 2000;

interface Page {
  readonly url: string;
  readonly host: number;
  readonly hostHash: bigint;
  readonly urlHash: bigint;
}

function pagesOf({ nodes, hosts }: ScaleFreeSettings, random: () => number): Page[] {
  const pages = Array.from({ length: nodes }, (_, index) => {
    const host = Math.floor(hosts * random() ** 3);
    const key = urlKeyOf(`http://host-${host}.example/page-${index}`);
    if (typeof key === "string") throw new Error(key);
    return { url: key.url, host, hostHash: BigInt(key.hostHash), urlHash: BigInt(key.urlHash) };
  });
  return pages.sort((a, b) => compare(a.hostHash, b.hostHash) || compare(a.urlHash, b.urlHash));
}

const compare = (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0);

function linksOf(settings: ScaleFreeSettings, hosts: readonly number[], random: () => number) {
  const { nodes, links, unvisited } = settings;
  const visited = Array.from({ length: nodes }, () => random() >= unvisited);
  const average = (1.1 * links) / visited.filter(Boolean).length;
  const bounds = hostBounds(hosts);
  const from = new Uint32Array(links);
  const to = new Uint32Array(links);
  let count = 0;
  for (let node = 0; node < nodes && count < links; node++) {
    if (!visited[node]) continue;
    const seen = new Set<number>([node]);
    // Pareto with exponent 2: half of the average at least, and a tail.
    const degree = Math.min(mostLinks, Math.round(average / 2 / Math.sqrt(1 - random())));
    for (let draw = 0; draw < 2 * degree && seen.size <= degree && count < links; draw++) {
      const target = targetOf(node);
      if (seen.has(target)) continue;
      seen.add(target);
      from[count] = node;
      to[count] = target;
      count += 1;
    }
  }
  return { from: from.subarray(0, count), to: to.subarray(0, count) };

  function targetOf(node: number): number {
    const draw = random();
    if (draw < 0.5) {
      const [first, size] = bounds.get(hosts[node]!)!;
      return first + Math.floor(size * random());
    }
    if (draw < 0.9 && count > 1000) return to[Math.floor(count * random())]!;
    return Math.floor(nodes * random());
  }
}

/** Pages of a host stand together: its first one and how many. */
function hostBounds(hosts: readonly number[]): Map<number, [number, number]> {
  const bounds = new Map<number, [number, number]>();
  for (const [node, host] of hosts.entries()) {
    const known = bounds.get(host);
    if (known) known[1] += 1;
    else bounds.set(host, [node, 1]);
  }
  return bounds;
}

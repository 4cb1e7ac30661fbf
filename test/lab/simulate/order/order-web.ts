/**
 * A seeded web to crawl: host sizes follow a power law; pages link within their host (often to its front page), to what others
 * link to (the copying model, Kumar et al. 2000) or anywhere, and change by a Poisson process.
 */

import { linkGraph } from "#coordinator/crawl/web-graph/link-graph";
import { pageRank } from "#coordinator/crawl/web-graph/page-rank";
import { seededRandom } from "#core/random";

interface OrderWebSettings {
  readonly pages: number;
  readonly hosts: number;
  /** Mean number of links on a page. */
  readonly outDegree: number;
  readonly seed: number;
}

export interface OrderWeb {
  readonly pages: number;
  /** The host of each page; a host's pages are adjacent, the front page first. */
  readonly hostOf: Uint32Array;
  readonly links: readonly Uint32Array[];
  /** Changes a day, from one in three months to ten a day, independent of rank. */
  readonly changesPerDay: Float64Array;
  /** PageRank over the whole web; its sum is 1. */
  readonly ranks: Float64Array;
  /** Front pages from which the crawl starts. */
  readonly seeds: readonly number[];
}

const startPages = 10;

export function orderWeb(settings: OrderWebSettings): OrderWeb {
  const { pages, hosts, seed } = settings;
  const random = seededRandom(seed);
  const hostOf = Uint32Array.from({ length: pages }, () => Math.floor(hosts * random() ** 2.5)).sort();
  const links = linksOf(settings, hostOf, random);
  const { ranks } = pageRank(graphOf(links));
  const fronts = [...hostOf.keys()].filter((page) => page === 0 || hostOf[page] !== hostOf[page - 1]);
  return {
    pages,
    hostOf,
    links,
    changesPerDay: Float64Array.from({ length: pages }, () => 10 ** (random() * 3 - 2)),
    ranks,
    seeds: Array.from({ length: startPages }, () => fronts[Math.floor(fronts.length * random())]!),
  };
}

/** Over pages with known links; `links[page]` undefined: not visited. */
export function graphOf(links: readonly (Uint32Array | undefined)[]) {
  const total = links.reduce((sum, one) => sum + (one?.length ?? 0), 0);
  const from = new Uint32Array(total);
  const to = new Uint32Array(total);
  let at = 0;
  for (const [page, targets] of links.entries()) {
    for (const target of targets ?? []) {
      from[at] = page;
      to[at++] = target;
    }
  }
  return linkGraph({ nodes: links.length, from, to });
}

function linksOf(
  { pages, outDegree }: OrderWebSettings,
  hostOf: Uint32Array,
  random: () => number,
): Uint32Array[] {
  const firstOf = new Map<number, number>();
  const sizeOf = new Map<number, number>();
  for (const [page, host] of hostOf.entries()) {
    if (!firstOf.has(host)) firstOf.set(host, page);
    sizeOf.set(host, (sizeOf.get(host) ?? 0) + 1);
  }
  const copied: number[] = [];
  return Array.from(hostOf, (host, page) => {
    const seen = new Set<number>();
    const [first, size] = [firstOf.get(host)!, sizeOf.get(host)!];
    // Pareto with exponent 2: at least half of the average, and a tail.
    const degree = Math.min(500, Math.max(1, Math.round(outDegree / 2 / Math.sqrt(1 - random()))));
    for (let draw = 0; draw < 2 * degree && seen.size < degree; draw++) {
      const target = targetOf(first, size);
      if (target !== page) seen.add(target);
    }
    // Each page is linked from its neighbour, so that all pages of a known host can be reached.
    if (page + 1 < pages && hostOf[page + 1] === host) seen.add(page + 1);
    for (const target of seen) copied.push(target);
    return Uint32Array.from(seen);
  });

  function targetOf(first: number, size: number): number {
    const draw = random();
    if (draw < 0.15) return first;
    if (draw < 0.6) return first + Math.floor(size * random() ** 2);
    if (draw < 0.92 && copied.length > 100) return copied[Math.floor(copied.length * random())]!;
    return Math.floor(pages * random());
  }
}

/**
 * WEB-SAILOR section 4.1: "the crawling decision quality will always be as good as that of a single crawler". The same web
 * is crawled by three clients with domain sets and by one client without, with as many connections in all; of the pages
 * fetched first, how many are the same, and how many of the web's links lead to them. Links are counted in the web as it
 * was planned, not as somebody came to see it.
 */
import type { OrderName } from "#coordinator/frontier/order/strategies";
import type { World } from "#ops/world/model";
import { planSite } from "#ops/world/site-plan";
import { sailingFleet } from "./sailing-fleet.ts";

export interface OrderedCrawl {
  readonly order: OrderName;
  readonly clients: readonly { readonly connections: number; readonly sets: readonly string[] }[];
  /** URLs of a host in one lease, which are fetched before what later pages say of others: 4 when left out. */
  readonly urlsPerHost?: number;
}

export interface FirstPages {
  /** In the order in which they were fetched. */
  readonly urls: readonly string[];
  readonly seconds: number;
}

const sites = { com: 33, edu: 7, net: 6, org: 14 };
/** Until so many pages were fetched, or so long after the first. */
export const wantedPages = 600;
const mostSeconds = 30;
/** For crawlers and their threads to start. */
const mostStartSeconds = 30;

/** The same web each time. */
export async function crawlInOrder(crawl: OrderedCrawl): Promise<FirstPages & { world: World }> {
  const { clients, ...settings } = crawl;
  const fleet = await sailingFleet({
    ...{ sites, ...settings },
    pagesOf: (site) => 10 + ((site * 37) % 51),
    politenessFloorMs: 300,
  });
  try {
    for (const { connections, sets } of clients) await fleet.addClient(connections, sets);
    await fleet.admit(fleet.world.sites.map(({ host }) => host));
    await pagesWithin(fleet.pool, 1, mostStartSeconds);
    const seconds = await pagesWithin(fleet.pool, wantedPages, mostSeconds);
    return { urls: await fetched(fleet.pool), seconds, world: fleet.world };
  } finally {
    await fleet.close();
  }
}

type Pool = Awaited<ReturnType<typeof sailingFleet>>["pool"];

/** How long it took, or the time allowed. */
async function pagesWithin(pool: Pool, pages: number, mostSecondsHere: number): Promise<number> {
  const startedMs = Date.now();
  for (;;) {
    const seconds = (Date.now() - startedMs) / 1000;
    if (seconds >= mostSecondsHere || (await fetched(pool)).length >= pages) return seconds;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

async function fetched(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ url: string }>(
    `select u.url
     from page_fetch f
     join frontier_url u using (host_hash, url_hash)
     where f.status = 200
     group by u.url
     order by min(f.fetched_at), u.url
     limit $1`,
    [wantedPages],
  );
  return rows.map(({ url }) => url);
}

/** Pages that link to each URL, itself left out, as the web is planned; links that say nofollow count for nothing. */
export function plannedBackLinks(world: World): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const site of world.sites) {
    const plan = planSite(world, site);
    const menu = plan.pages.slice(0, 4).map(({ path }) => path);
    for (const page of plan.pages) {
      const here = new URL(page.path, `http://${site.host}/`).href;
      const hrefs = page.links.filter(({ nofollow }) => !nofollow).map(({ href }) => href);
      const targets = new Set([...menu, ...hrefs].map((href) => new URL(href, here).href));
      targets.delete(here);
      for (const target of targets) counts.set(target, (counts.get(target) ?? 0) + 1);
    }
  }
  return counts;
}

/** Of all links, the share that leads to the first so many pages. */
export function linkShare(
  urls: readonly string[],
  backLinks: ReadonlyMap<string, number>,
  first: number,
): number {
  const all = [...backLinks.values()].reduce((sum, links) => sum + links, 0);
  return urls.slice(0, first).reduce((sum, url) => sum + (backLinks.get(url) ?? 0), 0) / all;
}

/** Whoever knew all links beforehand would have these first. */
export function bestOrder(backLinks: ReadonlyMap<string, number>): string[] {
  return [...backLinks].sort(([, a], [, b]) => b - a).map(([url]) => url);
}

/** Of the first so many, the share that is among the other's first so many. */
export function overlap(a: readonly string[], b: readonly string[], first: number): number {
  const others = new Set(b.slice(0, first));
  return a.slice(0, first).filter((url) => others.has(url)).length / Math.min(first, a.length);
}

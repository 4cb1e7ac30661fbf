/**
 * WEB-SAILOR section 4.1: "the crawling decision quality will always be as good as that of a single crawler". The same web
 * is crawled by three clients with domain sets and by one client without, with as many connections in all; of the pages
 * fetched first, how many are the same, and how many of the web's links lead to them. Links are counted in the web as it
 * was planned, not as somebody came to see it.
 */
import assert from "node:assert/strict";
import type { OrderName } from "#coordinator/frontier/order/strategies";
import type { World } from "#ops/world/model";
import { planSite } from "#ops/world/site-plan";
import { sailingFleet } from "./sailing-fleet.ts";

interface OrderedCrawl {
  readonly order: OrderName;
  readonly clients: readonly { readonly connections: number; readonly sets: readonly string[] }[];
  /** URLs of a host in one lease, which are fetched before what later pages say of others: 4 when left out. */
  readonly urlsPerHost?: number;
}

interface FirstPages {
  /** In the order in which they were fetched. */
  readonly urls: readonly string[];
  readonly seconds: number;
}

const sites = { com: 33, edu: 7, net: 6, org: 14 };
/** Until so many pages were fetched, or so long after the first. */
const wantedPages = 600;
const mostSeconds = 30;
/** For crawlers and their threads to start. */
const mostStartSeconds = 30;

/** The same web each time. */
async function crawlInOrder(crawl: OrderedCrawl): Promise<FirstPages & { world: World }> {
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
function plannedBackLinks(world: World): ReadonlyMap<string, number> {
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
function linkShare(urls: readonly string[], backLinks: ReadonlyMap<string, number>, first: number): number {
  const all = [...backLinks.values()].reduce((sum, links) => sum + links, 0);
  return urls.slice(0, first).reduce((sum, url) => sum + (backLinks.get(url) ?? 0), 0) / all;
}

/** Whoever knew all links beforehand would have these first. */
function bestOrder(backLinks: ReadonlyMap<string, number>): string[] {
  return [...backLinks].sort(([, a], [, b]) => b - a).map(([url]) => url);
}

/** Of the first so many, the share that is among the other's first so many. */
function overlap(a: readonly string[], b: readonly string[], first: number): number {
  const others = new Set(b.slice(0, first));
  return a.slice(0, first).filter((url) => others.has(url)).length / Math.min(first, a.length);
}

/** A share in whole percent, as tables have it. */
export function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

/** One client's order beside three clients'. */
export async function compareOrders(print: (lines: readonly string[]) => void): Promise<void> {
  const three = [
    { connections: 25, sets: [".com"] },
    { connections: 10, sets: [".edu .net"] },
    { connections: 10, sets: [".org"] },
  ];
  const one = [{ connections: 45, sets: [] }];
  const single = await crawlInOrder({ order: "back-links", clients: one });
  const many = await crawlInOrder({ order: "back-links", clients: three });
  const short = await crawlInOrder({ order: "back-links", clients: three, urlsPerHost: 1 });
  const again = await crawlInOrder({ order: "back-links", clients: one });
  const breadth = await crawlInOrder({ order: "breadth-first", clients: one });
  const hosts = ({ world }: typeof single) => world.sites.map(({ host }) => host);
  for (const crawl of [many, short, again, breadth]) assert.deepEqual(hosts(crawl), hosts(single));
  const backLinks = plannedBackLinks(single.world);
  const crawls: {
    readonly name: string;
    readonly urls: readonly string[];
    readonly seconds: number | null;
  }[] = [
    { ...single, name: "one client, 45 connections" },
    { ...many, name: "three clients, 25 + 10 + 10" },
    { ...short, name: "three clients, one URL a lease" },
    { ...again, name: "one client, once more" },
    { ...breadth, name: "one client, breadth-first" },
    { urls: bestOrder(backLinks), seconds: null, name: "whoever knew all links" },
  ];
  const firsts = [100, 200, 400, wantedPages];
  const shareLines = [
    `| share of all links to the first | ${firsts.join(" | ")} pages | fetched in |`,
    `|${"---|".repeat(firsts.length + 2)}`,
  ];
  for (const { name, urls, seconds } of crawls) {
    const shares = firsts.map((first) =>
      urls.length < first ? "-" : percent(linkShare(urls, backLinks, first)),
    );
    const time = seconds === null ? "" : `${urls.length} in ${seconds.toFixed(0)} s`;
    shareLines.push(`| ${name} | ${shares.join(" | ")} | ${time} |`);
  }
  print(shareLines);
  const sameLines = [
    `| the same pages among the first | ${firsts.join(" | ")} |`,
    `|${"---|".repeat(firsts.length + 1)}`,
  ];
  for (const other of crawls.slice(1, 5)) {
    const shares = firsts.map((first) =>
      Math.min(single.urls.length, other.urls.length) < first
        ? "-"
        : percent(overlap(single.urls, other.urls, first)),
    );
    sameLines.push(`| ${crawls[0]!.name}, and ${other.name} | ${shares.join(" | ")} |`);
  }
  print(sameLines);
}

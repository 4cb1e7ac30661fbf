/** One client's order beside three clients', as tables of the page and as a picture (order-quality says what is compared). */
import assert from "node:assert/strict";
import {
  bestOrder,
  crawlInOrder,
  linkShare,
  overlap,
  plannedBackLinks,
  wantedPages,
} from "./order-quality.ts";
import { percent } from "./percent.ts";
import type { ResultsPage } from "./results-page.ts";
import { type NamedCrawl, orderPicture } from "./sailing-pictures.ts";

/** Prints the tables; gives the picture. */
export async function compareOrders(page: ResultsPage): Promise<string> {
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
  const crawls: (NamedCrawl & { readonly seconds: number | null })[] = [
    { ...single, name: "one client, 45 connections", role: "exhaustive" },
    { ...many, name: "three clients, 25 + 10 + 10", role: "nearest" },
    { ...short, name: "three clients, one URL a lease", role: "random" },
    { ...again, name: "one client, once more", role: "ipmicra" },
    { ...breadth, name: "one client, breadth-first", role: "get-first" },
    { urls: bestOrder(backLinks), seconds: null, name: "whoever knew all links", role: "paper" },
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
  page.add("shares", shareLines);
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
  page.add("same", sameLines);
  return orderPicture(crawls, backLinks, wantedPages);
}

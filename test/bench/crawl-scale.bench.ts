/**
 * The crawler at scale, as the one-file bundle in a process of its own: its peak memory with 500 hosts open; how
 * much faster it is when everything may use a second processor (extraction in threads); and what 100 sites that
 * take a connection and never answer cost the others. Wall time counts here: on a machine with nothing else to
 * do. Run: npm run bench -- crawl-scale · one part: npm run bench -- crawl-scale memory (or threads, or silent)
 */
import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";
import type { CrawlerSettings } from "#crawler/settings/config";
import { type CrawlGround, crawlGround } from "./crawl/crawl-ground.ts";
import { startOurCrawler } from "./crawl/our-crawler.ts";
import { deadHosts, goodHosts } from "./crawl/site-hosts.ts";
import { spread } from "./crawl/spread.ts";

const part = process.argv[2] ?? "all";
const ground = await crawlGround();
try {
  if (part === "all" || part === "memory") await memory(ground);
  if (part === "all" || part === "threads") await threads(ground);
  if (part === "all" || part === "silent") await silentSites(ground);
} finally {
  ground.close();
}
process.exit();

/** Every host rests 200 ms between pages, so that all 500 are open until the end. */
async function memory({ bundle, scratch, port }: CrawlGround): Promise<void> {
  for (const extractionThreads of [0, 1, 2]) {
    const limits = { concurrentHosts: 500, extractionThreads };
    const ours = await startOurCrawler(bundle, scratch, { limits, politenessFloorMs: 200 });
    const idle = (await ours.process.usage()).rssBytes;
    await ours.crawl(urlsOf(goodHosts, port, 8, "p", 0));
    const { peakBytes, rssBytes } = await ours.process.usage();
    console.log(
      `500 hosts open, ${extractionThreads} threads: peak ${megabytes(peakBytes)} MB, in the end ${megabytes(rssBytes)} MB, before the first page ${megabytes(idle)} MB`,
    );
    await ours.stop();
  }
}

/** Everything on one processor against everything on two; on larger machines the sites have the others. */
async function threads({ bundle, scratch, port, sitesPid }: CrawlGround): Promise<void> {
  const rounds = 5;
  const hosts = goodHosts.slice(0, 200);
  const [single, double] = [
    await startOurCrawler(bundle, scratch, { limits: { extractionThreads: 0 } }),
    await startOurCrawler(bundle, scratch, { limits: { extractionThreads: 2 } }),
  ];
  const elsewhere = availableParallelism() > 3 ? `2-${availableParallelism() - 1}` : null;
  const rate = async (ours: typeof single, cores: string, round: number) => {
    bind(ours.process.pid, cores);
    for (const pid of [sitesPid, process.pid]) bind(pid, elsewhere ?? cores);
    const startedMs = performance.now();
    const pages = await ours.crawl(urlsOf(hosts, port, 5, "p", round));
    return (1000 * pages) / (performance.now() - startedMs);
  };
  await rate(single, "0,1", 0);
  await rate(double, "0,1", 0);
  const [one, two]: [number[], number[]] = [[], []];
  for (let round = 1; round <= rounds; round++) {
    one.push(await rate(single, "0", round));
    two.push(await rate(double, "0,1", round));
  }
  const ratios = two.map((pagesPerSecond, round) => pagesPerSecond / one[round]!);
  console.log(`one processor, no thread    ${spread(one, 0)} pages/s`);
  console.log(`two processors, two threads ${spread(two, 0)} pages/s, ${spread(ratios)} times as many`);
  await single.stop();
  await double.stop();
}

/** With the pauses that the crawler ships with: 200 good sites alone, then with a silent one after every second. */
async function silentSites({ bundle, scratch, port }: CrawlGround): Promise<void> {
  const good = goodHosts.slice(0, 200);
  const mixed = good.flatMap((host, index) => (index % 2 === 0 ? [host, deadHosts[index / 2]!] : [host]));
  const settings: Partial<CrawlerSettings> = { politenessFloorMs: 1000, responseTimeFactor: 5 };
  const seconds = async (hosts: readonly string[]) => {
    const ours = await startOurCrawler(bundle, scratch, settings);
    const startedMs = performance.now();
    await ours.crawl(urlsOf(hosts, port, 5, "p", 0), new Set(deadHosts));
    await ours.stop();
    return (performance.now() - startedMs) / 1000;
  };
  const alone = await seconds(good);
  const together = await seconds(mixed);
  console.log(
    `200 good sites, 5 pages each: ${alone.toFixed(1)} s; among 100 silent ones ${together.toFixed(1)} s, ${(together / alone).toFixed(2)} times as long`,
  );
}

function urlsOf(hosts: readonly string[], port: number, pages: number, kind: "p", round: number) {
  return hosts.flatMap((host) =>
    Array.from({ length: pages }, (_, page) => `http://${host}:${port}/${kind}/${round * 7 + page}`),
  );
}

/** All threads of a process, on Linux; elsewhere the part says nothing that can be compared. */
function bind(pid: number, cores: string): void {
  execFileSync("taskset", ["-apc", cores, String(pid)], { stdio: "ignore" });
}

function megabytes(bytes: number): number {
  return Math.round(bytes / 2 ** 20);
}

/**
 * The crawler at scale, as the one-file bundle in a process of its own: its peak memory with 500 hosts open; how
 * much faster it is with the extraction thread, on one processor and on two; and what 100 sites that
 * take a connection and never answer cost the others. Wall time counts here: on a machine with nothing else to
 * do. Run: npm run bench -- crawl-scale · one part: npm run bench -- crawl-scale memory (or threads, or silent)
 */
import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";
import type { CrawlerSettings } from "#crawler/settings/config";
import { type CrawlGround, crawlGround, realUrls } from "./crawl/crawl-ground.ts";
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
  const mebibyte = 2 ** 20;
  for (const [extractionThreads, memoryBytes] of [
    [0, null],
    [1, null],
    [2, null],
    [1, 256 * mebibyte],
  ] as const) {
    const limits = { concurrentHosts: 500, extractionThreads, memoryBytes };
    const ours = await startOurCrawler(bundle, scratch, { limits, politenessFloorMs: 200 });
    const idle = (await ours.process.usage()).rssBytes;
    await ours.crawl(urlsOf(goodHosts, port, 8, "p", 0));
    const { peakBytes, rssBytes } = await ours.process.usage();
    console.log(
      `500 hosts open, ${extractionThreads} threads, ${memoryBytes === null ? "no limit" : `${megabytes(memoryBytes)} MB allowed`}: peak ${megabytes(peakBytes)} MB, in the end ${megabytes(rssBytes)} MB, before the first page ${megabytes(idle)} MB`,
    );
    await ours.stop();
  }
}

/**
 * With and without the extraction thread, on one processor and on two, which crawler, sites and coordinator's side share
 * (where there are four, the others have those that are left over). On real pages where they are at hand.
 */
async function threads(here: CrawlGround): Promise<void> {
  const { bundle, scratch, port, sitesPid, realPages } = here;
  // Each place has hosts of its own in each round, of which there are seven times as many.
  const rounds = 2;
  const crawlers = [
    await startOurCrawler(bundle, scratch, { limits: { extractionThreads: 0 } }),
    await startOurCrawler(bundle, scratch),
  ] as const;
  const cores = availableParallelism();
  const places = ["0", "0,1"].filter((place) => place === "0" || cores > 1);
  const elsewhere = cores > 3 ? `2-${cores - 1}` : null;
  const urls = (round: number) =>
    realPages === null ? urlsOf(goodHosts.slice(0, 200), port, 5, "p", round) : realUrls(here, round);
  const ways = places.flatMap((place) => [0, 1].map((threads) => ({ place, threads })));
  const rates = ways.map((): number[] => []);
  for (let round = 0; round <= rounds; round++) {
    for (const [at, { place, threads }] of ways.entries()) {
      const ours = crawlers[threads]!;
      bind(ours.process.pid, place);
      for (const pid of [sitesPid, process.pid]) bind(pid, elsewhere ?? place);
      const startedMs = performance.now();
      const pages = await ours.crawl(urls(places.length * round + places.indexOf(place)));
      if (round > 0) rates[at]!.push((1000 * pages) / (performance.now() - startedMs));
    }
  }
  console.log(`${cores} cores, ${realPages === null ? "made-up" : "real"} pages`);
  for (const [at, { place, threads }] of ways.entries()) {
    const ratios = rates[at]!.map((rate, round) => rate / rates[0]![round]!);
    const where = place === "0" ? "one processor" : "two processors";
    console.log(
      `${where}, ${threads} threads: ${spread(rates[at]!, 0)} pages/s, ${spread(ratios)} times as many`,
    );
  }
  for (const ours of crawlers) await ours.stop();
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

/**
 * How exactly the host's limits hold, measured from outside on our one-file bundle with more work than it may do:
 * processor share by the kernel's count of the process, bytes by a relay that everything goes through, memory by the
 * process's resident size. Run: npm run bench -- limits
 */
import { availableParallelism, loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { CrawlerSettings } from "#crawler/settings/config";
import { startCountingRelay } from "../migrating-crawler/support/counting-relay.ts";
import { type CrawlGround, crawlGround } from "./crawl/crawl-ground.ts";
import { type OurCrawler, startOurCrawler } from "./crawl/our-crawler.ts";
import { goodHosts } from "./crawl/site-hosts.ts";
import { spread } from "./crawl/spread.ts";

const windowMs = 2500;
const windows = 4;
const warmMs = 1500;
/** With the word `low` after it: for a machine that others keep busy. */
const isLow = process.argv.includes("low");
const shares = isLow ? [0.1, 0.2] : [0.1, 0.25, 0.5, 0.75];
const rates = isLow ? [200] : [200, 1000];
const mebibyte = 1024 * 1024;

type Limits = NonNullable<CrawlerSettings["limits"]>;

const ground = await crawlGround();
console.log(
  `${availableParallelism()} cores, load average ${loadavg()[0]?.toFixed(1)}, windows of ${windowMs} ms`,
);
try {
  for (const extractionThreads of [0, 1]) {
    for (const cpuShare of shares) await measureShare(ground, { cpuShare, extractionThreads });
  }
  for (const kilobytesPerSecond of rates) await measureRate(ground, kilobytesPerSecond);
  for (const memoryBytes of [null, 224 * mebibyte]) await measureMemory(ground, memoryBytes);
} finally {
  ground.close();
}
process.exit();

async function measureShare({ bundle, scratch, port }: CrawlGround, limits: Limits): Promise<void> {
  const urls = pagesOf(goodHosts.slice(0, 200), port);
  const ours = await busyCrawler({ bundle, scratch }, { ...limits, concurrentHosts: 32 }, urls);
  const used: number[] = [];
  for (let window = 0; window < windows; window++) used.push(await processorsUsed(ours));
  await ours.stop();
  console.log(
    `cpuShare ${limits.cpuShare}, ${limits.extractionThreads} extraction threads: ${spread(used, 3)} processors used`,
  );
}

async function processorsUsed(ours: OurCrawler): Promise<number> {
  const startedMs = performance.now();
  const before = await ours.process.usage();
  await sleep(windowMs);
  const after = await ours.process.usage();
  return (after.cpuMs - before.cpuMs) / (performance.now() - startedMs);
}

async function measureRate(
  { bundle, scratch, port }: CrawlGround,
  kilobytesPerSecond: number,
): Promise<void> {
  const relay = await startCountingRelay(port, goodHosts[0]);
  const limits = { kilobytesPerSecond, concurrentHosts: 32 };
  const urls = pagesOf(
    Array.from({ length: 100 }, (_, host) => `h${host}.localhost`),
    relay.port,
  );
  const ours = await busyCrawler({ bundle, scratch }, limits, urls);
  const seen: number[] = [];
  for (let window = 0; window < windows; window++) {
    const [startedMs, before] = [performance.now(), relay.carriedBytes()];
    await sleep(windowMs);
    seen.push((relay.carriedBytes() - before) / 1.024 / (performance.now() - startedMs));
  }
  await ours.stop();
  await relay.close();
  console.log(
    `kilobytesPerSecond ${kilobytesPerSecond}: ${spread(seen, 1)} KB/s to and from sites (the link has the rest)`,
  );
}

async function measureMemory(
  { bundle, scratch, port }: CrawlGround,
  memoryBytes: number | null,
): Promise<void> {
  const limits = { memoryBytes, concurrentHosts: 500 };
  const ours = await busyCrawler({ bundle, scratch }, limits, pagesOf(goodHosts, port));
  const megabytes: number[] = [];
  for (let second = 0; second < 8; second++) {
    await sleep(1000);
    megabytes.push((await ours.process.usage()).rssBytes / mebibyte);
  }
  await ours.stop();
  console.log(
    `memoryBytes ${memoryBytes === null ? "not set" : `${memoryBytes / mebibyte} MiB`}, 500 hosts: ${spread(megabytes, 0)} MiB`,
  );
}

/** Busy with more pages than it can do while it is measured. */
async function busyCrawler(
  { bundle, scratch }: Pick<CrawlGround, "bundle" | "scratch">,
  limits: Limits,
  urls: readonly string[],
): Promise<OurCrawler> {
  const settings = { requestsPerAddress: 64, limits: { ...limits, priority: 0 } };
  const ours = await startOurCrawler(bundle, scratch, settings);
  // Ends when the process does, long before all pages are fetched.
  ours.crawl(urls).catch(() => {});
  await sleep(warmMs);
  return ours;
}

function pagesOf(hosts: readonly string[], port: number): string[] {
  return hosts.flatMap((host) =>
    Array.from({ length: 100 }, (_, page) => `http://${host}:${port}/p/${page}`),
  );
}

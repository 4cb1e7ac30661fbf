/**
 * The whole crawler against others on the same sites in the same run: CPU a page of our one-file bundle (robots,
 * fetching, extraction, lexemes, digest, simhash, spool, compression, everything), of Crawlee's CheerioCrawler,
 * of spider-rs and of undici alone, each in a process of its own, taking turns; the sites and the coordinator's
 * side are in other processes. Then where our CPU goes. Run: npm run bench -- crawl
 * With the word `short` after it, a quick one; with `alone`, without the others.
 */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type CrawlGround, crawlGround } from "./crawl/crawl-ground.ts";
import type { MeasuredProcess } from "./crawl/measured-process.ts";
import { startOurCrawler } from "./crawl/our-crawler.ts";
import { startPeers } from "./crawl/peers.ts";
import { goodHosts } from "./crawl/site-hosts.ts";
import { spread } from "./crawl/spread.ts";
import { stageProfile } from "./crawl/stage-profile.ts";

const hosts = goodHosts.slice(0, 200);
const hostsAtATime = 32;
const pagesPerHost = 5;
const rounds = process.argv.includes("short") ? 2 : 5;
const pages = hosts.length * pagesPerHost;

const inOneThread = { limits: { extractionThreads: 0 } };
const kindNames = { p: "", u: ", language not stated", t: ", pages all of text" };

const ground = await crawlGround();
console.log(
  `${hosts.length} hosts, ${pagesPerHost} pages each of ${Math.round(ground.pageBytes)} bytes and 101 links, ${hostsAtATime} hosts at a time, ${rounds} rounds, ${availableParallelism()} cores`,
);
try {
  await compare(ground);
  await showStages(ground);
} finally {
  ground.close();
}
process.exit();

interface Side {
  readonly name: string;
  readonly process: MeasuredProcess;
  /** The number of pages that were crawled. */
  readonly crawl: (round: number) => Promise<number>;
  readonly ms: number[];
}

async function compare({ bundle, port, scratch }: CrawlGround): Promise<void> {
  const ours = await startOurCrawler(bundle, scratch, inOneThread);
  const threaded = await startOurCrawler(bundle, scratch);
  const peers = process.argv.includes("alone") ? [] : startPeers((line) => console.log(line));
  const sides: Side[] = [
    ...(["p", "u", "t"] as const).map((kind) => ({
      name: `Nearcrawl${kindNames[kind]}`,
      process: ours.process,
      crawl: (round: number) => ours.crawl(urls(port, kind, round)),
      ms: [],
    })),
    {
      name: "Nearcrawl, extraction in a thread",
      process: threaded.process,
      crawl: (round: number) => threaded.crawl(urls(port, "p", round)),
      ms: [],
    },
    ...peers.map((peer) => ({
      name: peer.name,
      process: peer.process,
      crawl: (round: number) => peer.crawl(urls(port, "p", round), hostsAtATime),
      ms: [],
    })),
  ];
  for (const side of sides) await side.crawl(0);
  for (let round = 1; round <= rounds; round++) {
    for (const side of sides) side.ms.push(await cpuPerPage(side, round));
  }
  report(sides);
  const { peakBytes } = await ours.process.usage();
  console.log(`our peak memory, ${hostsAtATime} hosts at a time: ${Math.round(peakBytes / 2 ** 20)} MB`);
  await threaded.stop();
  for (const peer of peers) await peer.process.stop();
  await ours.stop();
}

async function cpuPerPage(side: Side, round: number): Promise<number> {
  const before = await side.process.usage();
  const crawled = await side.crawl(round);
  const after = await side.process.usage();
  // One that finds its own way may end some pages early.
  if (crawled < 0.9 * pages) throw new Error(`${side.name} has crawled ${crawled} of ${pages} pages`);
  return (after.cpuMs - before.cpuMs) / crawled;
}

function report(sides: readonly Side[]): void {
  const [ours] = sides;
  console.log(`${"".padEnd(32)} ms CPU a page           times ours`);
  for (const side of sides) {
    const ratios = side.ms.map((ms, round) => ms / ours!.ms[round]!);
    console.log(`${side.name.padEnd(32)} ${spread(side.ms).padEnd(23)} ${spread(ratios)}`);
  }
}

async function showStages({ bundle, port, scratch }: CrawlGround): Promise<void> {
  const ours = await startOurCrawler(bundle, scratch, inOneThread);
  await ours.crawl(urls(port, "p", 0));
  const file = join(scratch, "profile.json");
  await ours.process.profile(file, () => ours.crawl(urls(port, "p", 1)));
  const { stages, functions } = stageProfile(file, bundle);
  console.log(`\nwhere it goes, ms a page of the profiler's samples`);
  for (const { name, ms } of stages) console.log(`  ${name.padEnd(30)} ${(ms / pages).toFixed(3)}`);
  console.log("functions with the most time of their own");
  for (const { name, ms } of functions.slice(0, 40)) console.log(`  ${(ms / pages).toFixed(3)}  ${name}`);
  await ours.stop();
}

function urls(port: number, kind: keyof typeof kindNames, round: number): readonly string[] {
  return hosts.flatMap((host) =>
    Array.from({ length: pagesPerHost }, (_, page) => `http://${host}:${port}/${kind}/${round * 7 + page}`),
  );
}

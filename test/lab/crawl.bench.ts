/**
 * CPU per page of the bundled crawler (robots, fetching, extraction, digest, simhash, spool, compression, everything)
 * in its own process; the sites and the coordinator's side are in other processes. First real pages, at first sight (new hosts
 * and pages) and later (the same URLs with a twentieth of the long words changed); then pages of the emulated Internet. Other
 * crawlers on the same sites are in test/bench/results/crawl.md. Run: npm run bench -- crawl
 * Followed by `short`: a quick run; by `real` or `made`: only that part.
 */
import { availableParallelism } from "node:os";
import { type CrawlGround, crawlGround, realHosts, realUrls } from "./crawl/crawl-ground.ts";
import type { MeasuredProcess } from "./crawl/measured-process.ts";
import { type OurCrawler, startOurCrawler } from "./crawl/our-crawler.ts";
import { goodHosts } from "./crawl/real-pages.ts";
import { figure, median, spread } from "./figure.ts";

const asked = new Set(process.argv.slice(2));
const parts = ["real", "made"].filter((part) => asked.has(part));
const isWanted = (part: string) => parts.length === 0 || parts.includes(part);

const hostsAtATime = 32;
const rounds = asked.has("short") ? 2 : 5;
const madeHosts = goodHosts.slice(0, asked.has("short") ? 40 : 200);
const madePagesPerHost = 5;

/** Of the requested pages; the CPU is of the crawled ones. */
const leastShare = 0.5;

const inOneThread = { limits: { extractionThreads: 0 } };
const kindNames = { p: "", u: ", language not stated" };

const ground = await crawlGround();
console.log(`${hostsAtATime} hosts at a time, ${rounds} rounds, ${availableParallelism()} cores`);
try {
  if (isWanted("real")) await compareOnReal(ground);
  if (isWanted("made")) await compareOnMade(ground);
} finally {
  ground.close();
}
process.exit();

interface Crawling {
  readonly name: string;
  readonly process: MeasuredProcess;
  /** The number of crawled pages. */
  readonly crawl: (urls: readonly string[]) => Promise<number>;
}

interface Sides {
  readonly ours: readonly [threaded: OurCrawler, inOne: OurCrawler];
  readonly all: readonly Crawling[];
  stop(): Promise<void>;
}

/** The partners' way first: the other's figures are printed as ratios to it. */
async function startSides({ bundle, scratch }: CrawlGround): Promise<Sides> {
  const threaded = await startOurCrawler(bundle, scratch);
  const inOne = await startOurCrawler(bundle, scratch, inOneThread);
  const all = [
    { name: "Nearcrawl", ...threaded },
    { name: "Nearcrawl, extraction in the main thread", ...inOne },
  ];
  const stop = async () => {
    await threaded.stop();
    await inOne.stop();
  };
  return { ours: [threaded, inOne], all, stop };
}

/** Two passes per round over new hosts: every page at first sight, then with small changes. */
async function compareOnReal(here: CrawlGround): Promise<void> {
  if (here.realPages === null) {
    console.log("no real pages: the shared data is absent, and what follows is of made-up ones alone");
    return;
  }
  const { count, bytes } = here.realPages;
  console.log(`\n${count} real pages of ${Math.round(bytes)} bytes on ${realHosts} hosts a round`);
  const sides = await startSides(here);
  const passes = ["at first sight", "later"].map((name) => ({ name, ms: sides.all.map((): number[] => []) }));
  for (let round = 0; round <= rounds; round++) {
    const urls = realUrls(here, round);
    for (const [edition, { ms }] of passes.entries()) {
      await here.serve(edition);
      for (const [side, crawling] of sides.all.entries()) {
        const spent = await cpuPerPage(crawling, urls);
        if (round > 0) ms[side]!.push(spent);
      }
    }
  }
  for (const { name, ms } of passes) report(name, sides.all, ms);
  await tellPeak(sides);
  await sides.stop();
}

async function compareOnMade(here: CrawlGround): Promise<void> {
  console.log(
    `\nmade-up pages: ${madeHosts.length} hosts, ${madePagesPerHost} pages each of ${Math.round(here.pageBytes)} bytes`,
  );
  const sides = await startSides(here);
  const [, inOne] = sides.ours;
  const runs = [
    ...sides.all.map((side) => ({ ...side, kind: "p" as const })),
    { ...inOne, name: `Nearcrawl, extraction in the main thread${kindNames.u}`, kind: "u" as const },
  ];
  const ms = runs.map((): number[] => []);
  for (let round = 0; round <= rounds; round++) {
    for (const [index, run] of runs.entries()) {
      const spent = await cpuPerPage(run, madeUrls(here, run.kind, round));
      if (round > 0) ms[index]!.push(spent);
    }
  }
  report("made-up pages", runs, ms);
  await tellPeak(sides);
  await sides.stop();
}

async function cpuPerPage(side: Crawling, urls: readonly string[]): Promise<number> {
  const before = await side.process.usage();
  const crawled = await side.crawl(urls);
  const after = await side.process.usage();
  // A crawler that follows links may end early: most links of real pages lead elsewhere.
  if (crawled < leastShare * urls.length) {
    throw new Error(`${side.name} has crawled ${crawled} of ${urls.length} pages`);
  }
  return (after.cpuMs - before.cpuMs) / crawled;
}

function report(what: string, sides: readonly Crawling[], ms: readonly (readonly number[])[]): void {
  console.log(`${what.padEnd(62)} ms CPU a page           times`);
  for (const [index, { name }] of sides.entries()) {
    const ratios = ms[index]!.map((one, round) => one / ms[0]![round]!);
    console.log(`  ${name.padEnd(60)} ${spread(ms[index]!).padEnd(23)} ${spread(ratios)}`);
    figure(`${what}: ${name}`, median(ms[index]!), "ms CPU a page");
  }
}

async function tellPeak({ ours: [threaded, inOne] }: Sides): Promise<void> {
  const [withThread, without] = [await threaded.process.usage(), await inOne.process.usage()];
  const megabytes = ({ peakBytes }: { readonly peakBytes: number }) => Math.round(peakBytes / 2 ** 20);
  console.log(
    `our peak memory: ${megabytes(withThread)} MB with the extraction thread, ${megabytes(without)} MB without`,
  );
}

function madeUrls({ port }: CrawlGround, kind: keyof typeof kindNames, round: number): readonly string[] {
  return madeHosts.flatMap((host) =>
    Array.from(
      { length: madePagesPerHost },
      (_, page) => `http://${host}:${port}/${kind}/${round * 7 + page}`,
    ),
  );
}

/**
 * The whole crawler against others on the same sites in the same run: CPU a page of our one-file bundle (robots,
 * fetching, extraction, lexemes, digest, simhash, spool, compression, everything), of Crawlee's CheerioCrawler,
 * of spider-rs and of undici alone, each in a process of its own, taking turns; the sites and the coordinator's
 * side are in other processes. Then where our CPU goes. Run: npm run bench -- crawl
 * With the word `short` after it, a quick one; with `alone`, without the others.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { readStopWords } from "#crawler/extract/stop-words";
import { bundleCrawler } from "../../ops/bundle-crawler.mjs";
import type { MeasuredProcess } from "./crawl/measured-process.ts";
import { startOurCrawler } from "./crawl/our-crawler.ts";
import { startPeers } from "./crawl/peers.ts";
import { goodHosts } from "./crawl/site-hosts.ts";
import { stageProfile } from "./crawl/stage-profile.ts";

const root = join(import.meta.dirname, "../..");
const hosts = goodHosts.slice(0, 200);
const hostsAtATime = 32;
const short = process.argv.includes("short");
const pagesPerHost = 5;
const rounds = short ? 2 : 5;
const pages = hosts.length * pagesPerHost;

const kindNames = { p: "", u: ", language not stated", t: ", pages all of text" };

const scratch = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const sites = fork(join(import.meta.dirname, "crawl-site.ts"), { execArgv: process.execArgv });
try {
  const [{ port, pageBytes }] = (await once(sites, "message")) as [{ port: number; pageBytes: number }];
  const bundle = join(scratch, "crawler-bundle.mjs");
  await bundleCrawler({ root, outfile: bundle, stopWords: readStopWords() });
  console.log(
    `${hosts.length} hosts, ${pagesPerHost} pages each of ${Math.round(pageBytes)} bytes and 101 links, ${hostsAtATime} hosts at a time, ${rounds} rounds, ${availableParallelism()} cores`,
  );
  await compare(bundle, port);
  await showStages(bundle, port);
} finally {
  sites.kill();
  rmSync(scratch, { recursive: true, force: true });
}
process.exit();

interface Side {
  readonly name: string;
  readonly process: MeasuredProcess;
  /** The number of pages that were crawled. */
  readonly crawl: (round: number) => Promise<number>;
  readonly ms: number[];
}

async function compare(bundle: string, port: number): Promise<void> {
  const ours = await startOurCrawler(bundle, scratch);
  const peers = process.argv.includes("alone") ? [] : startPeers((line) => console.log(line));
  const sides: Side[] = [
    ...(["p", "u", "t"] as const).map((kind) => ({
      name: `Nearcrawl${kindNames[kind]}`,
      process: ours.process,
      crawl: (round: number) => ours.crawl(urls(port, kind, round)),
      ms: [],
    })),
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

async function showStages(bundle: string, port: number): Promise<void> {
  const ours = await startOurCrawler(bundle, scratch);
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

/** Median (smallest to largest). */
function spread(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)]!;
  return `${median.toFixed(2)} (${sorted[0]!.toFixed(2)} to ${sorted.at(-1)!.toFixed(2)})`;
}

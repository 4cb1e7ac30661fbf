/**
 * What known digests save on the wire: bytes that leave a crawler for pages of the emulated Internet, as packed and
 * deflated results. A channel's first pages are known; of the next a share is known texts under other URLs. Three
 * ways: everything ships; known texts stay (with the set's bytes, and how often it errs); and for comparison the same
 * pages at their own URLs, where the digest beside the URL tells that nothing changed. Every lease begins a new stream,
 * so that nothing is saved by a text that went by before.
 */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { knownTextsPay } from "#coordinator/channels/known-text-store";
import { withoutKnownText } from "#crawler/crawl/crawl-slice";
import { axisFor } from "#ops/evaluate/pictures/document";
import { drawLines } from "#ops/evaluate/pictures/line-picture";
import { generateWorld } from "#ops/world/generate-world";
import { pageHtml, siteFurniture } from "#ops/world/page-html";
import { type PlannedPage, planSite } from "#ops/world/site-plan";
import { MessageDeflater } from "#protocol/deflate";
import { KnownDigests, packKnownDigests } from "#protocol/known-digests";
import { FrameWriter, joinFrame, packResult } from "#protocol/packed/message-frames";
import type { FetchResult } from "#protocol/result";
import { resultOf } from "./extracted-result.ts";

const leaseUrls = 20;
const sitesMeasured = 12;
const shares = [0, 0.05, 0.1, 0.25, 0.5, 1];
const knownPages = [100, 500, 2000];

const world = generateWorld({ seed: 1, sites: 60, crawlers: 4 });
interface Share {
  readonly share: number;
  /** Bytes of a lease: every text ships, and known ones stay. */
  readonly all: number;
  readonly less: number;
}

const leases: FetchResult[][] = [];
for (const site of world.sites.slice(0, sitesMeasured)) {
  // Most sites are smaller than a lease; these are drawn as long as one.
  const plan = planSite(world, { ...site, pages: leaseUrls });
  const furniture = siteFurniture(plan.pages[0]!.seed);
  const html = (page: PlannedPage) => Buffer.from(pageHtml(plan, page, furniture));
  const lease: FetchResult[] = [];
  for (const [at, page] of plan.pages.slice(0, leaseUrls).entries())
    lease.push(await resultOf(`http://${plan.site.host}/moved/${at}${page.path}`, html(page)));
  leases.push(lease);
}
console.log(
  `${leases.length} sites of the emulated Internet, leases of ${leaseUrls} URLs; bytes of a lease, mean`,
);
const sets = knownPages.map((count) => setOf(count).length);
console.log(`sets of ${knownPages.join(", ")} pages: ${sets.join(", ")} bytes`);
console.log(
  `| known texts | all ships | known texts stay | saved with ${knownPages.join(" | ")} pages known |`,
);
const points: Share[] = [];
for (const share of shares) {
  let whole = 0;
  let left = 0;
  for (const lease of leases) {
    const count = Math.round(share * lease.length);
    const known = new KnownDigests(packKnownDigests(lease.slice(0, count).map(digestOf), 0));
    whole += await wireBytes(lease);
    left += await wireBytes(lease.map((result) => ({ ...result, ...withoutKnownText(result, known) })));
  }
  const [all, less] = [whole / leases.length, left / leases.length];
  points.push({ share, all, less });
  const saved = sets.map((bytes) =>
    knownTextsPay({ setBytes: bytes, newUrls: leaseUrls, duplicateShare: share })
      ? `${((100 * (all - less - bytes)) / all).toFixed(1)} %`
      : "not sent",
  );
  console.log(`| ${[`${100 * share} %`, Math.round(all), Math.round(less), ...saved].join(" | ")} |`);
}
const unchanged = leases.map((lease) => lease.map(asUnchanged));
const sum = async (all: readonly FetchResult[][]) =>
  (await Promise.all(all.map(wireBytes))).reduce((total, bytes) => total + bytes, 0) / all.length;
console.log(`at their own URLs, unchanged by the digest beside the URL: ${Math.round(await sum(unchanged))}`);
const textBytes =
  ((await sum(leases)) - (await sum(leases.map((lease) => lease.map(withoutText))))) / leaseUrls;
console.log(`the text of a page: ${Math.round(textBytes)} bytes`);
reportMistakes();
if (process.argv[2] !== undefined) drawTo(process.argv[2]);

/** `npm run bench -- digests FILE.svg` draws the table, too. */
function drawTo(file: string): void {
  const ways = [
    { name: "every text ships", role: "random", bytes: ({ all }: Share) => all },
    { name: "known texts stay, set of 500", role: "nearest", bytes: ({ less }: Share) => less + sets[1]! },
    { name: "known texts stay, without the set", role: "paper", bytes: ({ less }: Share) => less },
  ] as const;
  const lines = ways.map(({ name, role, bytes }) => ({
    name,
    role,
    style: "line-with-marks" as const,
    points: points.map((point) => ({ x: 100 * point.share, y: bytes(point) / 1000 })),
  }));
  const picture = {
    title: "Bytes of a lease, by known texts",
    description: "With more known texts fewer bytes leave the crawler, down to a fifth.",
    panels: [
      {
        title: `${sitesMeasured} sites of the emulated Internet`,
        x: axisFor("known texts, % of the lease", [100], { to: 100 }),
        y: axisFor("kB that leave the crawler, and the set", [points[0]!.all / 1000]),
        lines,
      },
    ],
  };
  writeFileSync(file, drawLines(picture));
}

/** How often a set of 2,000 takes another digest for one of its own. */
function reportMistakes(): void {
  const known = new KnownDigests(setOf(2000));
  const asked = 1_000_000;
  let mistaken = 0;
  for (let at = 0; at < asked; at += 1) if (known.has(sha256(`other ${at}`))) mistaken += 1;
  const bits = (8 * setOf(2000).length) / 2000;
  console.log(
    `a set of 2,000: ${bits.toFixed(1)} bits a page; ${mistaken} of ${asked} other digests mistaken`,
  );
}

function setOf(count: number): Buffer {
  return packKnownDigests(
    Array.from({ length: count }, (_, at) => sha256(`known ${at}`)),
    0,
  );
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function digestOf({ page }: FetchResult): string {
  return page!.digest;
}

function asUnchanged(result: FetchResult): FetchResult {
  return { ...result, outcome: { type: "unchanged", status: 200 }, page: null };
}

function withoutText(result: FetchResult): FetchResult {
  const known = new KnownDigests(packKnownDigests([digestOf(result)], 0));
  return { ...result, ...withoutKnownText(result, known) };
}

async function wireBytes(results: readonly FetchResult[]): Promise<number> {
  const writer = new FrameWriter();
  const deflater = new MessageDeflater();
  let bytes = 0;
  for (const [at, result] of results.entries()) {
    const { text, numbers } = writer.result(at + 1, packResult("123456", result));
    bytes += joinFrame(numbers, await deflater.deflate(text)).length;
  }
  deflater.close();
  return bytes;
}

/**
 * What shipping a result costs, in bytes and in CPU, packed (protocol version 2) and as JSON (version 1). Bytes are exact and the same in every run; times are CPU, as ratios to
 * JSON in the same round, median and range of the rounds. On the benchmark's own pages, and on the real pages
 * of the shared data where they are at hand. Run: npm run bench -- wire; with `short` behind it, fewer
 * rounds.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { canParseUrl } from "#core/ip/url-host";
import { seededRandom } from "#core/random";
import { extractPage } from "#crawler/extract/extract-page";
import { decodeCrawlerMessage, decodePackedMessage } from "#protocol/codec";
import { MessageDeflater, type MessageInflater, NodeInflater } from "#protocol/deflate";
import {
  FrameReader,
  FrameWriter,
  joinFrame,
  type MessageParts,
  packResult,
} from "#protocol/packed/message-frames";
import type { FetchResult } from "#protocol/result";
import { InflaterPool, loadZlibSync } from "#protocol/zlib-sync-inflater";
import { sharedData } from "../support/shared-data.ts";
import { benchPages } from "./crawl/page-markup.ts";
import { figure } from "./figure.ts";
import { median } from "./runner/compare-figures.ts";

const isShort = process.argv.includes("short");
const rounds = isShort ? 5 : 9;
const maxBytes = 8 * 1024 * 1024;
const zlibSync = await loadZlibSync();
const pool = new InflaterPool(zlibSync, 8);

interface Page {
  readonly url: string;
  readonly html: Buffer;
  readonly contentType: string;
}

console.log(`node ${process.version}, zlib-sync ${zlibSync ? "present" : "absent"}`);
const { typical } = benchPages(200);
await report(
  "the benchmark's pages, one host",
  typical.map((text, at) => page(`https://site.example/p/${at}`, Buffer.from(text))),
);
const real = realPages();
if (real.length > 0) {
  await report("the real pages, by host", real);
}

async function report(what: string, pages: readonly Page[]): Promise<void> {
  const results = await resultsOf(pages);
  const htmlBytes = pages.reduce((sum, { html }) => sum + html.length, 0);
  console.log(`\n${what}: ${pages.length} pages, ${Math.round(htmlBytes / pages.length)} bytes of HTML each`);
  const texts = asJson(results);
  const json = await deflateAll(texts);
  const parts = asParts(results);
  const deflated = await deflateAll(parts.map(({ text }) => text));
  const frames = parts.map(({ numbers }, at) => joinFrame(numbers, deflated[at]!));
  const line = (name: string, bytes: number) =>
    console.log(
      `  ${name.padEnd(34)} ${String(Math.round(bytes / pages.length)).padStart(6)} bytes a result, HTML ${(htmlBytes / bytes).toFixed(1)} : 1`,
    );
  line("JSON, not compressed", bytesOf(texts.map((text) => Buffer.from(text))));
  line("JSON in one deflate stream", bytesOf(json));
  line("packed, texts in one deflate stream", bytesOf(frames));
  console.log(`  packed sends ${((100 * bytesOf(frames)) / bytesOf(json)).toFixed(1)} % of what JSON sends`);
  figure(`packed, ${what}`, bytesOf(frames) / pages.length, "bytes a result");
  await reportTimes(results, { json, deflated, parts }, what);
}

interface Sent {
  readonly json: readonly Buffer[];
  readonly deflated: readonly Buffer[];
  readonly parts: readonly MessageParts[];
}

async function reportTimes(results: readonly FetchResult[], sent: Sent, what: string): Promise<void> {
  const works: [string, () => unknown][] = [
    ["crawler: JSON", () => void asJson(results)],
    ["crawler: JSON and deflate", () => deflateAll(asJson(results))],
    ["crawler: pack", () => void asParts(results)],
    ["crawler: pack and deflate", () => deflateAll(asParts(results).map(({ text }) => text))],
    ["coordinator: inflate JSON, check", () => takeJson(sent.json)],
    ["coordinator: inflate, unpack, check", () => takePacked(sent)],
  ];
  const times = works.map((): number[] => []);
  for (let round = 0; round <= rounds; round += 1) {
    for (const [at, [, work]] of works.entries()) {
      const ms = await cpuMs(work);
      if (round > 0) times[at]!.push((1000 * ms) / results.length);
    }
  }
  const baseline = times[1]!;
  works.forEach(([name], at) => {
    if (!name.includes("JSON")) figure(`${name}, ${what}`, median(times[at]!), "µs CPU a result");
    const ratios = times[at]!.map((time, round) => time / baseline[round]!);
    const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
    console.log(
      `  ${name.padEnd(36)} ${median(times[at]!).toFixed(0).padStart(5)} µs a result, ${median(ratios).toFixed(2)} (${range}) of JSON and deflate`,
    );
  });
}

async function resultsOf(pages: readonly Page[]): Promise<FetchResult[]> {
  const random = seededRandom(1);
  const tenths = (most: number) => Math.round(random() * most * 10) / 10;
  const results: FetchResult[] = [];
  for (const { url, html, contentType } of pages) {
    const body = { url, bytes: html, contentType, contentLanguage: null, robotsTag: undefined };
    const { page } = await extractPage({ ...body, quiet: async () => {} });
    results.push({
      url,
      fetchedAt: new Date(1_795_000_000_000 + Math.floor(random() * 1e8)).toISOString(),
      outcome: { type: "fetched", status: 200, truncated: false },
      address: "198.51.100.7",
      timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: tenths(200), totalMs: tenths(400) },
      wireBytes: Math.floor(html.length / 4),
      bodyBytes: html.length,
      etag: null,
      lastModified: null,
      hostDelayMs: 1000,
      page,
    });
  }
  return results;
}

function realPages(): Page[] {
  const folder = sharedData("suites/pages");
  if (folder === null) return [];
  const entries = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")) as {
    readonly file: string;
    readonly url: string;
    readonly contentType: string | null;
  }[];
  const pages = entries.map(({ file, url, contentType }, at) => {
    const known = canParseUrl(url) ? url : `https://site-${at}.example/page`;
    return page(known, readFileSync(join(folder, file)), contentType ?? "text/html");
  });
  return pages.sort((a, b) => (new URL(a.url).host < new URL(b.url).host ? -1 : 1));
}

function page(url: string, html: Buffer, contentType = "text/html; charset=utf-8"): Page {
  return { url, html, contentType };
}

function asJson(results: readonly FetchResult[]): string[] {
  return results.map((result, at) =>
    JSON.stringify({ type: "crawler:result", sequence: at + 1, leaseId: "123456", result }),
  );
}

function asParts(results: readonly FetchResult[]): MessageParts[] {
  const writer = new FrameWriter();
  return results.map((result, at) => writer.result(at + 1, packResult("123456", result)));
}

async function deflateAll(texts: readonly string[]): Promise<Buffer[]> {
  const deflater = new MessageDeflater();
  const frames = await Promise.all(texts.map((text) => deflater.deflate(text)));
  deflater.close();
  return frames;
}

function takeJson(frames: readonly Buffer[]): void {
  const inflater: MessageInflater = pool.take(new NodeInflater());
  for (const frame of frames) decodeCrawlerMessage(inflater.inflate(frame, maxBytes));
  inflater.release();
}

function takePacked({ deflated, parts }: Sent): void {
  const inflater: MessageInflater = pool.take(new NodeInflater());
  const reader = new FrameReader();
  for (const [at, frame] of deflated.entries()) {
    decodePackedMessage({ numbers: parts[at]!.numbers, text: inflater.inflate(frame, maxBytes) }, reader);
  }
  inflater.release();
}

async function cpuMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

function bytesOf(items: readonly Buffer[]): number {
  return items.reduce((total, item) => total + item.length, 0);
}

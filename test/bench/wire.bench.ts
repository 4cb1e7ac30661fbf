/**
 * What the wire's compression is worth and what inflating costs the coordinator, on generated results.
 * Bytes are exact and the same in every run of one seed; times are CPU, as ratios to gunzip of every message
 * by itself in the same round, median and range of the rounds.
 */
import { deflateRawSync, gunzipSync, gzipSync } from "node:zlib";
import { decodeCrawlerMessage } from "#protocol/codec";
import { MessageDeflater } from "#protocol/message-deflater";
import { type MessageInflater, NodeInflater } from "#protocol/message-inflater";
import { InflaterPool, loadZlibSync } from "#protocol/zlib-sync-inflater";
import { generatedResults } from "../protocol/generated-results.ts";

const seed = 20260101;
const count = 600;
const rounds = 9;
const maxBytes = 8 * 1024 * 1024;

const zlibSync = await loadZlibSync();
const pool = new InflaterPool(zlibSync, 8);
console.log(
  `node ${process.version}, zlib-sync ${zlibSync ? "present" : "absent"}, seed ${seed}, ${count} results`,
);

for (const hosts of [60, 1]) {
  const texts = generatedResults({ count, hosts, seed }).map((message) => JSON.stringify(message));
  const frames = await deflateAll(texts);
  console.log(
    `\n${hosts === 1 ? "one host" : `${hosts} hosts`}: ${sum(texts)} bytes of JSON, ${Math.round(sum(texts) / count)} a result`,
  );
  reportBytes(texts, frames);
  reportTimes(texts, frames);
}

function reportBytes(texts: readonly string[], frames: readonly Buffer[]): void {
  const json = sum(texts);
  const gzip = sum(texts.map((text) => gzipSync(text, { level: 6 })));
  const rawEach = sum(texts.map((text) => deflateRawSync(text, { level: 6 })));
  const stream = sum(frames);
  const line = (name: string, bytes: number) =>
    console.log(
      `  ${name.padEnd(34)} ${Math.round(bytes / count)} bytes a result, ${(json / bytes).toFixed(2)} : 1`,
    );
  line("gzip, each message by itself", gzip);
  line("raw deflate, each by itself", rawEach);
  line("one deflate stream (the wire)", stream);
  console.log(`  the wire sends ${((100 * stream) / gzip).toFixed(1)} % of what gzip sends`);
}

function reportTimes(texts: readonly string[], frames: readonly Buffer[]): void {
  const gzipped = texts.map((text) => gzipSync(text, { level: 6 }));
  const works: [string, () => void][] = [
    ["node:zlib inflater", () => inflateAll(new NodeInflater(), frames)],
  ];
  if (zlibSync) works.push(["zlib-sync inflater", () => inflateAll(pool.take(new NodeInflater()), frames)]);
  works.push(["JSON and schema check", () => texts.forEach((text) => void decodeCrawlerMessage(text))]);
  const ratios = works.map((): number[] => []);
  const baselines: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const baseline = cpuMs(() => gzipped.forEach((bytes) => void gunzipSync(bytes)));
    const times = works.map(([, work]) => cpuMs(work));
    if (round === 0) continue; // warming up
    baselines.push(baseline);
    times.forEach((time, at) => void ratios[at]?.push(time / baseline));
  }
  console.log(
    `  gunzip of each message: ${((1000 * median(baselines)) / count).toFixed(0)} µs a result (the 1.00 below)`,
  );
  works.forEach(([name], at) => {
    const all = ratios[at] ?? [];
    const range = `${Math.min(...all).toFixed(2)} to ${Math.max(...all).toFixed(2)}`;
    console.log(`  ${name.padEnd(34)} ${median(all).toFixed(2)} (${range})`);
  });
}

async function deflateAll(texts: readonly string[]): Promise<Buffer[]> {
  const deflater = new MessageDeflater("large");
  const frames = await Promise.all(texts.map((text) => deflater.deflate(text)));
  deflater.close();
  return frames;
}

function inflateAll(inflater: MessageInflater, frames: readonly Buffer[]): void {
  for (const frame of frames) inflater.inflate(frame, maxBytes);
  inflater.release();
}

function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

function sum(items: readonly (string | Buffer)[]): number {
  return items.reduce((total, item) => total + Buffer.byteLength(item), 0);
}

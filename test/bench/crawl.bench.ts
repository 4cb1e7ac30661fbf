/**
 * CPU per page of the whole crawler (robots, fetch, decoding, extraction, lexemes, digest, simhash, spool,
 * the wire's compression) against fetching alone with undici, alternating in the same process; the sites run
 * in a process of their own. Memory and start-up time of the crawler process. Run: npm run bench -- crawl
 */
import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Client } from "undici";
import { crawlerConfig } from "#crawler/config";
import { crawlSlice } from "#crawler/crawl-slice";
import { RobotsCache } from "#crawler/fetch/robots";
import { Governor } from "#crawler/limits/governor";
import { HostGates } from "#crawler/limits/host-gate";
import { Connector } from "#crawler/net/connector";
import { Spool } from "#crawler/spool/spool";
import { encodeMessage } from "#protocol/codec";
import { MessageDeflater } from "#protocol/message-deflater";

const hosts = 200;
const pagesPerHost = 5;
const openHosts = 32;
const rounds = 5;

const sites = fork(join(import.meta.dirname, "crawl-site.ts"), { execArgv: process.execArgv });
const [port] = (await once(sites, "message")) as [number];
const home = mkdtempSync(join(tmpdir(), "nearcrawl-bench-"));
const config = crawlerConfig({
  coordinatorUrl: "ws://127.0.0.1:9/crawler",
  key: "0123456789abcdef",
  name: "bench",
  home,
  allowRanges: ["127.0.0.0/8"],
  politenessFloorMs: 0,
  responseTimeFactor: 0,
});
const connector = new Connector(config);
const governor = new Governor({ limits: config.limits, home });
const spool = new Spool({ home, maxBytes: 1e9 });
let wireBytes = 0;
let pageBytes = 0;

await crawlWithUndici(0);
await crawlWithUs(0);
const fetchOnly: number[] = [];
const whole: number[] = [];
for (let round = 1; round <= rounds; round++) {
  fetchOnly.push(await cpuPerPage(() => crawlWithUndici(round)));
  whole.push(await cpuPerPage(() => crawlWithUs(round)));
}
const ratios = whole.map((ms, round) => ms / fetchOnly[round]!);
const line = (values: readonly number[]) =>
  `${median(values).toFixed(2)} (${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)})`;
console.log(
  `${hosts} hosts, ${pagesPerHost} pages each of 40 KB and 101 links, ${rounds} rounds, ${availableParallelism()} cores`,
);
console.log(`undici fetch and gunzip   ${line(fetchOnly)} ms CPU a page`);
console.log(`the whole crawler         ${line(whole)} ms CPU a page, ${line(ratios)} times fetching alone`);
console.log(`shipped bytes             1/${(pageBytes / wireBytes).toFixed(1)} of the pages' HTML`);
console.log(
  `memory of this process    ${(process.memoryUsage.rss() / 2 ** 20).toFixed(0)} MB (crawler, baseline and loader together)`,
);
measureProcess();
sites.kill();
process.exit(0);

async function crawlWithUndici(round: number): Promise<void> {
  await inParallel(async (host) => {
    const client = new Client(`http://${host}:${port}`, { pipelining: 1 });
    for (let page = 0; page < pagesPerHost; page++) {
      const headers = { "accept-encoding": "gzip" };
      const answer = await client.request({ method: "GET", path: `/p/${round * 7 + page}`, headers });
      const body = Buffer.from(await answer.body.arrayBuffer());
      gunzipSync(body, { maxOutputLength: 5 * 1024 * 1024 });
    }
    await client.close();
  });
}

async function crawlWithUs(round: number): Promise<void> {
  const deflater = new MessageDeflater("large");
  const take = (bytes: number) => governor.takeBytes(bytes);
  const userAgent = () => "Nearcrawl/bench";
  const { timeouts } = config;
  const tools = {
    connector,
    timeouts,
    governor,
    gates: new HostGates({ floorMs: 0, responseTimeFactor: 0 }),
    robots: new RobotsCache({ connector, timeouts, userAgent, take }),
    userAgent,
    quiet: async () => {},
    now: () => new Date(),
  };
  const shipping: Promise<void>[] = [];
  await inParallel(async (host) => {
    const urls = Array.from({ length: pagesPerHost }, (_, page) => ({
      url: `http://${host}:${port}/p/${round * 7 + page}`,
      etag: null,
      lastModified: null,
    }));
    const lease = { leaseId: "1", host, addresses: [], expiresInSeconds: 600, waitMs: 0, urls };
    const keep = (leaseId: string, result: Parameters<Spool["append"]>[1]) => {
      if (result.outcome.type !== "fetched") throw new Error(JSON.stringify(result.outcome));
      const sequence = spool.append(leaseId, result)!;
      pageBytes += result.bodyBytes;
      const message = encodeMessage({ type: "crawler:result", sequence, leaseId, result });
      shipping.push(ship(deflater, message));
      return true;
    };
    const ending = await crawlSlice(lease, { ...tools, keep }, new AbortController().signal);
    if (ending !== null) throw new Error(ending);
  });
  await Promise.all(shipping);
  spool.acknowledge(spool.last ?? 0);
  deflater.close();
}

async function ship(deflater: MessageDeflater, message: string): Promise<void> {
  const frame = await deflater.deflate(message);
  wireBytes += frame.length;
}

async function inParallel(crawl: (host: string) => Promise<void>): Promise<void> {
  const waiting = Array.from({ length: hosts }, (_, host) => `127.0.1.${host + 1}`).values();
  const worker = async () => {
    for (const host of waiting) await crawl(host);
  };
  await Promise.all(Array.from({ length: openHosts }, worker));
}

async function cpuPerPage(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / (hosts * pagesPerHost);
}

/** Time until the bundle is loaded, and memory then. */
function measureProcess(): void {
  const entry = join(import.meta.dirname, "../../dist/crawler-bundle.mjs");
  if (!existsSync(entry)) {
    console.log("the bundle is not built: its start is not measured");
    return;
  }
  const script =
    "const t=performance.now();const m=await import(process.argv[1]);const ms=performance.now()-t;console.log(JSON.stringify({ms,rss:process.memoryUsage().rss}))";
  const runs = Array.from({ length: rounds }, () => {
    const output = execFileSync(process.execPath, ["--input-type=module", "-e", script, entry], {
      encoding: "utf8",
    });
    return JSON.parse(output) as { ms: number; rss: number };
  });
  console.log(
    `the bundle's start        ${line(runs.map((run) => run.ms))} ms, ${line(runs.map((run) => run.rss / 2 ** 20))} MB`,
  );
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

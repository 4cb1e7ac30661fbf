/**
 * What the emulated Internet costs and how true it is: CPU per page through a proxy beside a plain HTTP
 * server in the same run, lateness of answers against the model, time to make worlds, and the figures by
 * which worlds are calibrated.
 *
 *   node --conditions=nearcrawl-source --import tsx test/bench/world.bench.ts
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { connect, type Socket } from "node:net";
import { downloadTimeMs } from "#ops/world/compare";
import { generateWorld } from "#ops/world/generate-world";
import { type RunningWorld, startWorld } from "#ops/world/main";
import { printHardness } from "./world/hardness.ts";

const rounds = 5;
const pagesPerRound = 600;
/** The generator's constants were chosen on seeds 1 to 50: it is judged on others. */
const firstSeed = 1001;

const world = generateWorld({ seed: 1, sites: 1000, crawlers: 12 });
const running = await startWorld(world);
const body = "x".repeat(12_000);
const plain = createServer((_request, response) => response.end(body));
await new Promise<void>((resolve) => plain.listen(0, "127.0.0.1", resolve));

const baselineMs: number[] = [];
const worldMs: number[] = [];
const lateMs: number[] = [];
for (let round = 0; round < rounds; round++) {
  baselineMs.push(await cpuPerPageMs(() => plainPage((plain.address() as AddressInfo).port)));
  worldMs.push(
    await cpuPerPageMs(async (index) => void (await worldPage(running, round * pagesPerRound + index))),
  );
}
await inParallel(world.crawlers.length, 360, async (index) => {
  lateMs.push(await worldPage(running, index));
});
plain.close();
await running.close();

const ratios = worldMs.map((ms, index) => ms / baselineMs[index]!);
print("CPU per page, client and server together, ms", [
  ["plain HTTP server, new connection, 12 KB", spread(baselineMs)],
  ["emulated Internet, new connection through a proxy, gzip", spread(worldMs)],
  ["ratio", spread(ratios)],
]);
print("time from connecting to the last byte, beyond the model, ms (one page at a time for each crawler)", [
  ["median", at(lateMs, 0.5)],
  ["a quarter below", at(lateMs, 0.25)],
  ["95 of 100 below", at(lateMs, 0.95)],
]);
print(
  "making a world, s",
  [
    [1000, 12],
    [10_000, 200],
    [100_000, 200],
  ].map(([sites, crawlers]) => {
    const startMs = performance.now();
    generateWorld({ seed: 1, sites: sites!, crawlers: crawlers! });
    return [`${sites} sites, ${crawlers} crawlers`, ((performance.now() - startMs) / 1000).toFixed(2)];
  }),
);
print("a round trip, µs of CPU: 1,000 crawlers", rttCosts());
for (const crawlers of [12, 50, 200]) {
  for (const [sites, count] of [
    [1000, 10],
    [10_000, crawlers > 50 ? 3 : 5],
  ] as const) {
    printHardness({ crawlers, sites, seeds: Array.from({ length: count }, (_, index) => firstSeed + index) });
  }
}

/** One by one and by rows, in turns. */
function rttCosts(): [string, string][] {
  const wide = generateWorld({ seed: 1, sites: 2000, crawlers: 1000 });
  const row = new Float64Array(1000);
  const single: number[] = [];
  const byRow: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const sites = wide.sites.slice(round * 100, round * 100 + 100);
    single.push(
      cpuMicroseconds(() => {
        for (const { address } of sites)
          for (let crawler = 0; crawler < 1000; crawler++) wide.rttMs(crawler, address);
      }) / 100_000,
    );
    byRow.push(
      cpuMicroseconds(() => {
        for (let site = 0; site < 400; site++) wide.rttRow(round * 400 + site, row);
      }) / 400_000,
    );
  }
  return [
    ["one by one", spread(single)],
    ["by rows", spread(byRow)],
    ["ratio", spread(single.map((microseconds, round) => microseconds / byRow[round]!))],
  ];
}

function cpuMicroseconds(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** Eight pages at a time for each of twelve crawlers. */
async function cpuPerPageMs(page: (index: number) => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await inParallel(96, pagesPerRound, page);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / pagesPerRound;
}

async function inParallel(
  workers: number,
  total: number,
  work: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < total) await work(next++);
  };
  await Promise.all(Array.from({ length: workers }, worker));
}

async function plainPage(port: number): Promise<void> {
  await exchange(connect(port, "127.0.0.1"), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
}

/** How much later than the model says its last byte arrived, ms. */
async function worldPage({ proxyUrlOf }: RunningWorld, index: number): Promise<number> {
  const crawler = index % world.crawlers.length;
  const site = world.sites[index % world.sites.length]!;
  const startMs = performance.now();
  const socket = connect(Number(new URL(proxyUrlOf(crawler)).port), "127.0.0.1");
  socket.write(`CONNECT ${site.address}:80 HTTP/1.1\r\n\r\n`);
  await new Promise((resolve) => socket.once("data", resolve));
  const bytes = await exchange(
    socket,
    `GET / HTTP/1.1\r\nHost: ${site.host}\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n`,
  );
  const rttMs = world.rttMs(crawler, site.address)!;
  return bytes.lastByteAtMs - startMs - downloadTimeMs({ ...site, rttMs, bodyBytes: bytes.count });
}

function exchange(socket: Socket, request: string): Promise<{ count: number; lastByteAtMs: number }> {
  return new Promise((resolve, reject) => {
    let count = 0;
    let lastByteAtMs = 0;
    socket.on("data", (chunk: Buffer) => {
      count += chunk.length;
      lastByteAtMs = performance.now();
    });
    socket.on("error", reject);
    socket.on("close", () => resolve({ count, lastByteAtMs }));
    socket.write(request);
  });
}

function at(values: readonly number[], share: number): string {
  return values.toSorted((a, b) => a - b)[Math.floor(share * values.length)]!.toFixed(2);
}

function spread(values: readonly number[]): string {
  return `${at(values, 0.5)} (${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)})`;
}

function print(title: string, rows: readonly (readonly (string | number)[])[]): void {
  process.stdout.write(`\n${title}\n${rows.map(([name, value]) => `  ${name}: ${value}`).join("\n")}\n`);
}

/**
 * Admitted sessions that turn hostile, and connections that never become one: each is refused with a reason or disconnected,
 * reported as an incident where somebody is at fault, while a healthy crawler goes on.
 */
import { connect } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { EdgeIncident } from "#coordinator/run/gateway/gateway-settings";
import { asCrawlerId } from "#core/ids";
import type { CrawlerMessage } from "#protocol/messages";
import { generatedResults } from "../protocol/generated-results.ts";
import { makeGate } from "../support/gate.ts";
import { until } from "../support/until.ts";
import { type LoopbackGateway, startGateway } from "./gateway-on-loopback.ts";
import { RawCrawler } from "./raw-crawler.ts";
import { knownBy, SealingCrawler, testIdentity } from "./sealing-crawler.ts";

const identity = testIdentity();
const pages = generatedResults({ count: 12, hosts: 1, seed: 5 });
const amber = asCrawlerId(1);
const failed = { type: "failed", method: "connect", reason: "" } as const;

let world: LoopbackGateway;
let healthy: RawCrawler;
let incidents: EdgeIncident[];
let shipped: number;

beforeEach(async () => {
  incidents = [];
  shipped = 0;
  world = await startGateway({
    zlibSync: null,
    settings: { inflatedBytesPerSecond: 2 * 1024 * 1024, helloTimeoutMs: 250, resultCredits: 400 },
    handlers: {
      ...knownBy("amber", identity.publicKey),
      onIncident: (incident) => incidents.push(incident),
    },
  });
  healthy = await RawCrawler.arrive(world.url, "elder");
  await shipOne();
});
afterEach(async () => {
  await shipOne();
  expect(world.seen.leaves.filter(({ crawlerId }) => crawlerId === 5)).toEqual([]);
  await world.close();
});

/** The healthy crawler ships a result and gets its acknowledgement. */
async function shipOne(): Promise<void> {
  const page = pages[shipped++]!;
  await healthy.send(page);
  expect(await healthy.next("coordinator:acknowledge")).toMatchObject({ sequence: page.sequence });
}

const arrive = async () => await SealingCrawler.arrive(world.url, "amber", identity);
const kinds = () => incidents.map(({ crawlerId, kind }) => [crawlerId, kind]);

test("frames that are replayed", async () => {
  const crawler = await arrive();
  const frames: Buffer[] = [];
  const sendBytes = crawler.raw.sendBytes.bind(crawler.raw);
  crawler.raw.sendBytes = (bytes) => {
    frames.push(bytes);
    sendBytes(bytes);
  };
  await crawler.ship(pages[0]!, pages[1]!);
  await crawler.seal(1, 2);
  await crawler.raw.next("coordinator:acknowledge");
  for (const frame of [...frames]) sendBytes(frame);

  await crawler.raw.next("coordinator:refuse");
  expect(world.seen.committed.get(amber)).toBe(2);
  expect(kinds()).toEqual([[1, "bad-message"]]);
});

test("more short messages than are read in a second", async () => {
  const crawler = await arrive();
  const report = { type: "crawler:probe-report", requestId: 1, outcome: failed } as const;
  const frames: Buffer[] = [];
  const sendBytes = crawler.raw.sendBytes.bind(crawler.raw);
  crawler.raw.sendBytes = (bytes) => void frames.push(bytes);
  for (let said = 0; said < 700; said += 1) await crawler.say(report);
  crawler.raw.sendBytes = sendBytes;
  // In one turn of the event loop, so that they fall within a second.
  for (const frame of frames) sendBytes(frame);

  await until(() => world.gateway.sessionOf(amber)?.connection.isHeld === true, 5000);
  await shipOne();
  await crawler.say({ type: "crawler:ready", freeHosts: 1 });
  await until(() => world.seen.messages.length === 1, 5000);
});

test("a flood of pings", async () => {
  const crawler = await arrive();
  for (let sent = 0; sent < 60; sent += 1) crawler.raw.socket.ping();

  expect(await crawler.raw.next("coordinator:refuse")).toMatchObject({
    code: "too-much",
    reason: "more than 50 pings and pongs in a second",
  });
  expect(kinds()).toEqual([[1, "flood"]]);
});

test("a message in pieces that never end", async () => {
  const crawler = await arrive();
  for (let sent = 0; sent < 2000; sent += 1) {
    crawler.raw.socket.send(Buffer.alloc(1), { binary: true, fin: false });
  }

  expect((await crawler.raw.closed).code).toBe(1008);
});

test("a frame that no WebSocket has", async () => {
  const crawler = await arrive();
  const { _socket: socket } = crawler.raw.socket as unknown as { _socket: { write(bytes: Buffer): void } };
  socket.write(Buffer.from([0xf3, 0x80, 1, 2, 3, 4]));

  expect((await crawler.raw.closed).code).toBe(1002);
});

test("a hello that comes byte by byte", async () => {
  const upgrade = [
    "GET /crawler HTTP/1.1",
    "Host: localhost",
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "\r\n",
  ].join("\r\n");
  const socket = connect(world.port, "127.0.0.1");
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.write(upgrade);
  // The head of a frame of 60,000 bytes, followed by single bytes.
  socket.write(Buffer.from([0x82, 0xfe, 0xea, 0x60, 0, 0, 0, 0]));
  const drip = setInterval(() => socket.write("x"), 10);
  await closed;
  clearInterval(drip);

  expect(world.gateway.counts().connections).toBe(1);
});

test("a few bytes that refer to megabytes sent before, sealed, for a coordinator that is busy", async () => {
  const gate = makeGate();
  const busy = await startGateway({
    zlibSync: null,
    settings: { resultCredits: 400 },
    handlers: { ...knownBy("amber", identity.publicKey), onResults: () => gate.opened },
  });
  const crawler = await SealingCrawler.arrive(busy.url, "amber", identity);
  for (const message of referring(120)) {
    await crawler.ship(message);
    await crawler.seal(message.sequence, message.sequence);
  }

  await until(() => busy.gateway.sessionOf(amber)?.connection.isHeld === true, 5000);
  expect(busy.gateway.sessionOf(amber)?.waitingMessages).toBeLessThan(60);
  gate.open();
  crawler.raw.disconnect();
  await busy.close();
});

test("a message with a number below zero", async () => {
  const crawler = await arrive();
  await crawler.say(heartbeat({ fetchedBytes: -1 }));

  expect(await crawler.raw.next("coordinator:refuse")).toMatchObject({ code: "bad-message" });
  expect(kinds()).toEqual([[1, "bad-message"]]);
});

test("invalid results are read fifty a second, and end no session", async () => {
  const crawler = await arrive();
  const { leaseId, result } = pages[0]!;
  const bad = { type: "crawler:result", leaseId, result: { ...result, page: null, bodyBytes: -1 } } as const;
  for (let sequence = 1; sequence <= 120; sequence++) await crawler.ship({ ...bad, sequence });
  await crawler.seal(1, 120);

  await until(() => world.gateway.sessionOf(amber)?.connection.isHeld === true, 5000);
  await until(() => world.seen.committed.get(amber) === 120, 10_000);
  expect(kinds()).toEqual([]);
});

test("heartbeats with the largest numbers are accepted", async () => {
  const crawler = await arrive();
  const most = Number.MAX_SAFE_INTEGER;
  await crawler.say(heartbeat({ openHosts: most, pages: most, fetchedBytes: most, shippedBytes: most }));

  await until(() => world.seen.messages.length === 1, 5000);
});

test("a crawler that does not read what it is sent", async () => {
  const crawler = await arrive();
  crawler.raw.socket.pause();
  const urls = Array.from({ length: 1000 }, (_, n) => ({
    ...{ url: `http://a.example/${n}-${"x".repeat(90)}`, etag: null, lastModified: null },
  }));
  const lease = { host: "a.example", addresses: [], expiresInSeconds: 60, waitMs: 0, urls };
  const leases = [{ leaseId: "1", ...lease }];
  const tasks = { type: "coordinator:tasks", leases, askAgainMs: 50, reason: "" } as const;
  let sent = 0;
  while (sent < 1000 && world.gateway.send(amber, tasks)) sent += 1;

  expect(sent).toBeLessThan(1000);
  await until(() => world.seen.leaves.some(({ code }) => code === "does-not-read"), 5000);
});

test("a message that never ends", async () => {
  const brief = await startGateway({ zlibSync: null, settings: { heartbeatMs: 16 } });
  const crawler = await RawCrawler.arrive(brief.url, "amber");
  const drip = setInterval(() => crawler.socket.send(Buffer.alloc(400), { binary: true, fin: false }), 1);
  await crawler.closed;
  clearInterval(drip);

  expect(brief.seen.leaves[0]?.code).toBe("vanished");
  await brief.close();
});

function heartbeat(changes: object): CrawlerMessage {
  const none = {
    openHosts: 0,
    spooledResults: 0,
    pages: 0,
    fetchedBytes: 0,
    shippedBytes: 0,
    holdingBack: [],
  };
  return { type: "crawler:heartbeat", ...none, ...changes } as CrawlerMessage;
}

/** Pages with the same two thousand links. */
function referring(count: number): ReturnType<typeof generatedResults> {
  const [first] = generatedResults({ count: 1, hosts: 1, seed: 6 });
  const { result } = first!;
  const links = Array.from({ length: 2000 }, (_, n) => ({
    url: new URL(`/${n}-${"x".repeat(150)}`, result.url).href,
    anchor: "y".repeat(60),
    nofollow: false,
  }));
  const page = { ...result.page!, links };
  return Array.from({ length: count }, (_, n) => ({
    ...first!,
    sequence: n + 1,
    result: { ...result, page },
  }));
}

/** The gateway over real sockets on loopback, with honest crawlers. */
import { expect, test, vi } from "vitest";
import { asCrawlerId } from "#core/ids";
import type { CrawlerHeartbeat } from "#protocol/messages";
import { loadZlibSync } from "#protocol/zlib-sync-inflater";
import { generatedResults } from "../protocol/generated-results.ts";
import { makeGate } from "../support/gate.ts";
import { admitted, helloOf, startGateway } from "./gateway-on-loopback.ts";
import { RawCrawler } from "./raw-crawler.ts";

const zlibSync = await loadZlibSync();
const start = (options: Partial<Parameters<typeof startGateway>[0]> = {}) =>
  startGateway({ zlibSync, ...options });

const heartbeat: CrawlerHeartbeat = {
  type: "crawler:heartbeat",
  openHosts: 1,
  spooledResults: 0,
  pages: 3,
  fetchedBytes: 1000,
  shippedBytes: 50,
  holdingBack: [],
};
const target = {
  host: "site.example",
  address: "192.0.2.1",
  port: 443,
  secure: true,
  method: "connect",
  tries: 2,
  deadlineMs: 20,
} as const;

test("a crawler with name and key is welcomed, and is online until it leaves", async () => {
  const { gateway, url, seen } = await start();
  const crawler = await RawCrawler.connect(url);

  await crawler.send(helloOf("birch"));
  const welcome = await crawler.next("coordinator:welcome");
  const onlineThen = gateway.online();
  await crawler.send({ type: "crawler:goodbye", code: "stops", reason: "upgrade" });
  await crawler.closed;
  await vi.waitFor(() =>
    expect(seen.leaves).toEqual([
      { crawlerId: 2, code: "stops", reason: "its host stopped it", forGood: false },
    ]),
  );

  expect(welcome).toMatchObject({
    protocolVersion: 7,
    crawlerId: 2,
    acknowledgedSequence: 0,
    heartbeatSeconds: 10,
  });
  expect(onlineThen).toEqual([2]);
  expect(gateway.online()).toEqual([]);
  expect(seen.arrivals.map((arrival) => arrival.remoteAddress)).toEqual(["127.0.0.1"]);
});

test("messages reach the handler in order, one at a time, with their size on the wire", async () => {
  let atOnce = 0;
  let mostAtOnce = 0;
  const pages: number[] = [];
  const { url } = await start({
    handlers: {
      async onMessage(_, message, { wireBytes, inflatedBytes }) {
        atOnce += 1;
        mostAtOnce = Math.max(mostAtOnce, atOnce);
        await new Promise(setImmediate);
        if (message.type === "crawler:heartbeat") pages.push(message.pages);
        expect(wireBytes).toBeLessThan(inflatedBytes);
        atOnce -= 1;
      },
    },
  });
  const crawler = await RawCrawler.arrive(url, "amber");

  const sent = Array.from({ length: 40 }, (_, index) => index);
  for (const index of sent) await crawler.send({ ...heartbeat, pages: index });
  await vi.waitFor(() => expect(pages.length).toBe(40));

  expect(pages).toEqual(sent);
  expect(mostAtOnce).toBe(1);
});

test("results are acknowledged after the handler has committed them, not before", async () => {
  const commit = makeGate();
  const asked = makeGate();
  const { url } = await start({
    handlers: {
      onResults() {
        asked.open();
        return commit.opened;
      },
    },
  });
  const crawler = await RawCrawler.arrive(url, "amber");
  const [result] = generatedResults({ count: 1, hosts: 1, seed: 1 });
  if (result) await crawler.send(result);
  await asked.opened;
  await roundTrip(crawler);

  const before = [...crawler.received];
  commit.open();
  const acknowledge = await crawler.next("coordinator:acknowledge");

  expect(before).toEqual([]);
  expect(acknowledge.sequence).toBe(1);
});

test("results that follow each other are handed over in batches, and acknowledged by the last", async () => {
  const first = makeGate();
  const sizes: number[] = [];
  const { url, seen } = await start({
    settings: { batchResults: 30, lingerMs: 0 },
    handlers: {
      async onResults({ results, crawlerId }) {
        sizes.push(results.length);
        if (sizes.length === 1) await first.opened;
        seen.committed.set(crawlerId, results.at(-1)?.sequence ?? 0);
      },
    },
  });
  const crawler = await RawCrawler.arrive(url, "amber");
  for (const result of generatedResults({ count: 100, hosts: 2, seed: 2 })) await crawler.send(result);
  await roundTrip(crawler);

  first.open();
  await vi.waitFor(() => expect(seen.committed.get(asCrawlerId(1))).toBe(100));

  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(100);
  expect(Math.max(...sizes)).toBe(30);
  expect(sizes.length).toBeLessThanOrEqual(6);
});

test("messages between results keep their place", async () => {
  const order: string[] = [];
  const { url } = await start({
    settings: { lingerMs: 10_000, batchResults: 1000 },
    handlers: {
      async onResults({ results }) {
        order.push(`results ${results.map((result) => result.sequence).join(",")}`);
      },
      async onMessage(_, message) {
        order.push(message.type);
      },
    },
  });
  const crawler = await RawCrawler.arrive(url, "amber");
  const [one, two, three] = generatedResults({ count: 3, hosts: 1, seed: 3 });
  if (!one || !two || !three) throw new Error("three were asked for");

  for (const message of [one, two, heartbeat, three, heartbeat]) await crawler.send(message);
  await vi.waitFor(() => expect(order.length).toBe(4));

  expect(order).toEqual(["results 1,2", "crawler:heartbeat", "results 3", "crawler:heartbeat"]);
});

test("when results cannot be stored the session ends without an acknowledgement, and a new one resends", async () => {
  let healthy = false;
  const { url, seen } = await start({
    handlers: {
      async onResults({ crawlerId, results }) {
        if (!healthy) throw new Error("the database is away");
        seen.committed.set(crawlerId, results.at(-1)?.sequence ?? 0);
      },
    },
  });
  const results = generatedResults({ count: 3, hosts: 1, seed: 4 });
  const crawler = await RawCrawler.arrive(url, "amber");

  for (const result of results) await crawler.send(result);
  const refuse = await crawler.next("coordinator:refuse");
  await crawler.closed;
  healthy = true;
  const again = await RawCrawler.connect(url);
  await again.send(helloOf("amber"));
  const welcome = await again.next("coordinator:welcome");
  for (const result of results) await again.send(result);
  await vi.waitFor(() => expect(seen.committed.get(asCrawlerId(1))).toBe(3));

  expect(refuse).toMatchObject({ code: "internal-error", retry: true });
  expect(crawler.received).toEqual([]);
  expect(welcome.acknowledgedSequence).toBe(0);
});

test("a second session of a crawler replaces the first, which gets the reason and leaves before the second arrives", async () => {
  const { gateway, url, seen } = await start();
  const first = await RawCrawler.arrive(url, "amber");

  const second = await RawCrawler.arrive(url, "amber");
  const refuse = await first.next("coordinator:refuse");
  await first.closed;

  expect(refuse).toMatchObject({ code: "replaced", retry: false });
  expect(seen.leaves.length).toBe(1);
  expect(seen.arrivals.length).toBe(2);
  expect(gateway.online()).toEqual([1]);
  await roundTrip(second);
});

test("the successor is welcomed with what its predecessor's last commit stored", async () => {
  const commit = makeGate();
  const asked = makeGate();
  const { url, seen } = await start({
    handlers: {
      async onResults({ crawlerId, results }) {
        asked.open();
        await commit.opened;
        seen.committed.set(crawlerId, results.at(-1)?.sequence ?? 0);
      },
    },
  });
  const first = await RawCrawler.arrive(url, "amber");
  const [result] = generatedResults({ count: 1, hosts: 1, seed: 5 });
  if (result) await first.send(result);
  await asked.opened;

  const second = await RawCrawler.connect(url);
  await second.send(helloOf("amber"));
  await first.next("coordinator:refuse");
  commit.open();
  const welcome = await second.next("coordinator:welcome");

  expect(welcome.acknowledgedSequence).toBe(1);
});

test("a second session replaces the first even while the first is still arriving", async () => {
  const gate = makeGate();
  let hellos = 0;
  const { gateway, url, seen } = await start({
    handlers: {
      async admit() {
        hellos += 1;
        return admitted(1);
      },
      async onArrive(arrival) {
        seen.arrivals.push(arrival);
        await gate.opened;
        return { acknowledgedSequence: 0 };
      },
    },
  });
  const first = await RawCrawler.connect(url);
  await first.send(helloOf("amber"));
  await vi.waitFor(() => expect(seen.arrivals.length).toBe(1));
  const second = await RawCrawler.connect(url);
  await second.send(helloOf("amber"));
  await vi.waitFor(() => expect(hellos).toBe(2));

  gate.open();
  const refuse = await first.next("coordinator:refuse");
  await second.next("coordinator:welcome");

  expect(refuse.code).toBe("replaced");
  expect([seen.arrivals.length, seen.leaves.length]).toEqual([2, 1]);
  expect(gateway.online()).toEqual([1]);
});

test("a probe resolves with the crawler's report", async () => {
  const { gateway, url } = await start();
  const crawler = await RawCrawler.arrive(url, "amber");

  const outcome = gateway.probe(asCrawlerId(1), { ...target, deadlineMs: 10_000 });
  const { requestId, address } = await crawler.next("coordinator:probe");
  const measured = { type: "measured", method: "connect", rttMs: 12.5, tries: 2 } as const;
  await crawler.send({ type: "crawler:probe-report", requestId, outcome: measured });

  expect(await outcome).toEqual(measured);
  expect(address).toBe("192.0.2.1");
});

test("a probe without an answer, or of an absent crawler, fails with a reason", async () => {
  const { gateway, url } = await start({ settings: { probeGraceMs: 10 } });
  const crawler = await RawCrawler.arrive(url, "amber");

  const silent = await gateway.probe(asCrawlerId(1), target);
  const leaving = gateway.probe(asCrawlerId(1), { ...target, deadlineMs: 60_000 });
  crawler.disconnect();
  const absent = await gateway.probe(asCrawlerId(4), target);

  expect(silent).toEqual({
    ...{ type: "failed", code: "unreported", method: "connect" },
    reason: "the crawler did not report within 30 ms",
  });
  expect(await leaving).toMatchObject({
    type: "failed",
    reason: expect.stringContaining("the crawler left"),
  });
  expect(absent).toEqual({
    ...{ type: "failed", code: "unreported", method: "connect" },
    reason: "the crawler is not connected",
  });
});

test("a crawler cannot answer another one's probe", async () => {
  const { gateway, url } = await start();
  const asked = await RawCrawler.arrive(url, "amber");
  const liar = await RawCrawler.arrive(url, "birch");

  const outcome = gateway.probe(asCrawlerId(1), { ...target, deadlineMs: 10_000 });
  const { requestId } = await asked.next("coordinator:probe");
  const report = (rttMs: number) =>
    ({
      type: "crawler:probe-report",
      requestId,
      outcome: { type: "measured", method: "connect", rttMs, tries: 1 },
    }) as const;
  await liar.send(report(1));
  await roundTrip(liar);
  await asked.send(report(50));

  expect(await outcome).toMatchObject({ rttMs: 50 });
});

test("closing the gateway asks every crawler to come back later", async () => {
  const { gateway, url, seen } = await start();
  const crawler = await RawCrawler.arrive(url, "amber");

  await gateway.close();
  const refuse = await crawler.next("coordinator:refuse");

  expect(refuse).toMatchObject({ code: "shutting-down", retry: true });
  expect(seen.leaves.length).toBe(1);
  await expect(RawCrawler.connect(url)).rejects.toThrow("503");
});

/** Resolves when the gateway has read everything sent before, as its pong shows. */
async function roundTrip(crawler: RawCrawler): Promise<void> {
  const pong = new Promise((resolve) => crawler.socket.once("pong", resolve));
  crawler.socket.ping();
  await pong;
}

test("a departure that the database did not take is recorded later, unless the crawler has come back", async () => {
  const leaves: string[] = [];
  let isAway = true;
  const { gateway, url } = await start({
    handlers: {
      async onLeave(crawlerId, { reason }) {
        if (isAway) throw new Error("the database is away");
        leaves.push(`${crawlerId} ${reason}`);
      },
    },
  });
  const [staying, returning] = [await RawCrawler.arrive(url, "amber"), await RawCrawler.arrive(url, "birch")];
  for (const crawler of [staying, returning])
    await crawler.send({ type: "crawler:goodbye", reason: "upgrade" });
  await vi.waitFor(() => expect(gateway.online()).toEqual([]));
  await RawCrawler.arrive(url, "birch");
  isAway = false;

  await vi.waitFor(() => expect(leaves).toEqual(["1 upgrade"]), 10_000);

  expect(gateway.online()).toEqual([2]);
});

test("work for every connected crawler precedes the departure of one that leaves meanwhile", async () => {
  const done: string[] = [];
  const { gateway, url } = await start({
    handlers: { onLeave: async (crawlerId) => void done.push(`${crawlerId} left`) },
  });
  const crawler = await RawCrawler.arrive(url, "amber");
  const gate = makeGate();

  const work = gateway.forEachConnected(async (crawlerId) => {
    await gate.opened;
    done.push(`${crawlerId} taken back`);
  });
  await crawler.send({ type: "crawler:goodbye", reason: "upgrade" });
  await vi.waitFor(() => expect(gateway.online()).toEqual([]));
  gate.open();
  await work;
  await vi.waitFor(() => expect(done).toHaveLength(2));

  expect(done).toEqual(["1 taken back", "1 left"]);
});

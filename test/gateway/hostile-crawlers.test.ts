/** Rude, broken and hostile clients: each is refused with a reason or disconnected, while a healthy crawler keeps working. */
import { connect } from "node:net";
import { constants, deflateRawSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { GatewaySettings } from "#coordinator/run/gateway/gateway-settings";
import { asCrawlerId } from "#core/ids";
import { seededRandom } from "#core/random";
import { maxHelloBytes, maxMessageBytes } from "#protocol/codec";
import { joinFrame } from "#protocol/packed/message-frames";
import { loadZlibSync } from "#protocol/zlib-sync-inflater";
import { generatedResults } from "../protocol/generated-results.ts";
import { packedJson } from "../protocol/packed-json.ts";
import { makeGate } from "../support/gate.ts";
import { helloOf, keyOf, type LoopbackGateway, revokedName, startGateway } from "./gateway-on-loopback.ts";
import { RawCrawler } from "./raw-crawler.ts";

const zlibSync = await loadZlibSync();
const settings: Partial<GatewaySettings> = {
  resultCredits: 20,
  limits: { connections: 60, connectionsPerAddress: 50, failuresPerAddressAndMinute: 30 },
};

describe("a healthy crawler continues undisturbed beside", () => {
  let world: LoopbackGateway;
  let healthy: RawCrawler;
  let shipped = 0;
  const pages = generatedResults({ count: 30, hosts: 2, seed: 9 });

  beforeEach(async () => {
    world = await startGateway({ zlibSync, settings });
    healthy = await RawCrawler.arrive(world.url, "elder");
    shipped = 0;
    await shipOne();
  });
  afterEach(async () => {
    await shipOne();
    expect(world.gateway.online()).toContain(5);
    expect(world.seen.leaves.filter((leave) => leave.crawlerId === 5)).toEqual([]);
    await world.close();
  });

  /** The healthy crawler ships a result and gets its acknowledgement. */
  async function shipOne(): Promise<void> {
    const page = pages[shipped];
    if (!page) throw new Error("no page is left");
    shipped += 1;
    await healthy.send(page);
    expect(await healthy.next("coordinator:acknowledge")).toMatchObject({ sequence: shipped });
  }

  /** Sends as a welcomed crawler and returns the refusal and the close. */
  async function refusalAfter(send: (crawler: RawCrawler) => unknown) {
    const crawler = await RawCrawler.arrive(world.url, "amber");
    await send(crawler);
    const refuse = await crawler.next("coordinator:refuse");
    const { code } = await crawler.closed;
    return { ...refuse, closeCode: code };
  }

  const noSpeech = { type: "crawler:hello", protocolVersions: [8, 9], novel: true };
  const neverMessage = "the first message must be crawler:hello";
  test.each<[string, (crawler: RawCrawler) => unknown, object]>([
    [
      "a wrong key",
      (crawler) => crawler.send(helloOf("amber", { key: keyOf("birch") })),
      { code: "wrong-key", retry: false },
    ],
    ["a revoked key", (crawler) => crawler.send(helloOf(revokedName)), { code: "revoked", retry: false }],
    [
      "a protocol version that nobody here speaks, even in a hello of an unknown form",
      (crawler) => crawler.sendText(JSON.stringify(noSpeech)),
      {
        code: "wrong-version",
        reason: "the crawler speaks protocol 8, 9, the coordinator 7, 6, 4: update the coordinator",
        retry: false,
      },
    ],
    [
      "garbage bytes in place of a hello",
      (crawler) => crawler.sendBytes(Buffer.from("GET / HTTP/1.1\r\n\r\n")),
      { code: "bad-message" },
    ],
    [
      "a text frame",
      (crawler) => crawler.socket.send(JSON.stringify(helloOf("amber"))),
      { code: "bad-message", reason: "a text frame; messages are binary" },
    ],
    [
      "a hello with a wrong field, which the answer names without repeating the key",
      (crawler) => crawler.send(helloOf("amber", { key: "x".repeat(500) })),
      { reason: expect.stringMatching(/^crawler:hello: key: (?!.*xx)/) },
    ],
    [
      "a message before the hello",
      (crawler) => crawler.send({ type: "crawler:ready", freeHosts: 1 }),
      { reason: `crawler:ready: ${neverMessage}` },
    ],
    [
      "a bomb before the hello",
      (crawler) => crawler.sendBytes(bomb(50_000_000)),
      { reason: `a message is longer than ${maxHelloBytes} bytes when inflated` },
    ],
  ])("%s", async (_what, send, refusal) => {
    const crawler = await RawCrawler.connect(world.url);
    await send(crawler);

    expect(await crawler.next("coordinator:refuse")).toMatchObject(refusal);
    expect((await crawler.closed).code).toBe(1008);
    expect(world.seen.arrivals.length).toBe(1);
  });

  test.each<[string, (crawler: RawCrawler) => unknown, string | RegExp]>([
    ["a second hello", (crawler) => crawler.send(helloOf("amber")), "crawler:hello: a second one"],
    [
      "a frame that makes no sense",
      (crawler) => crawler.sendBytes(Buffer.alloc(300, 0xff)),
      "a packed number is too large",
    ],
    ["text that is not JSON", (crawler) => crawler.sendBytes(jsonFrame("{")), /not JSON/],
    [
      "text that is not UTF-8",
      (crawler) => crawler.sendBytes(jsonFrame(Buffer.from([0x22, 0xff, 0x22]))),
      "a message is not UTF-8",
    ],
    ["a list", (crawler) => crawler.sendBytes(jsonFrame("[1]")), /^a message of no known type: /],
    [
      "a coordinator's message",
      (crawler) => crawler.sendBytes(jsonFrame('{"type":"coordinator:welcome"}')),
      /^coordinator:welcome: type: /,
    ],
    [
      "a number out of bounds",
      (crawler) => crawler.send({ type: "crawler:ready", freeHosts: 0 }),
      /^crawler:ready: freeHosts: /,
    ],
    [
      "JSON that is nested very deeply",
      (crawler) => crawler.sendBytes(jsonFrame("[".repeat(4_000_000))),
      "a message is nested deeper than 16",
    ],
  ])("%s in the middle of a session", async (_what, send, reason) => {
    const refusal = await refusalAfter(send);

    expect(refusal).toMatchObject({ code: "bad-message", closeCode: 1008 });
    expect(refusal.reason).toEqual(typeof reason === "string" ? reason : expect.stringMatching(reason));
    await vi.waitFor(() => expect(world.seen.leaves[0]?.reason).toMatch(/^refused \(bad-message\)/));
  });

  test("a frame larger than any message", async () => {
    const crawler = await RawCrawler.arrive(world.url, "amber");
    crawler.sendBytes(Buffer.alloc(maxMessageBytes + 1));

    expect((await crawler.closed).code).toBe(1009);
  });

  test("a stranger's frame that never becomes whole is not kept", async () => {
    const crawler = await RawCrawler.connect(world.url);
    crawler.sendBytes(Buffer.alloc(4_000_000));

    await crawler.closed;
    expect(crawler.received).toEqual([]);
  });

  test("results beyond the credits", async () => {
    const gate = makeGate();
    const slow = await startGateway({
      zlibSync,
      settings,
      handlers: { onResults: () => gate.opened },
    });
    const crawler = await RawCrawler.arrive(slow.url, "amber");
    for (const result of generatedResults({ count: 21, hosts: 1, seed: 1 })) await crawler.send(result);

    expect(await crawler.next("coordinator:refuse")).toMatchObject({
      code: "too-much",
      reason: "21 results without acknowledgement, 20 are allowed",
      retry: true,
    });
    gate.open();
    await slow.close();
  });

  test("a gap in the sequence, and a step back", async () => {
    const [one, two, three] = pages;
    if (!one || !two || !three) throw new Error("three were asked for");
    const gap = await refusalAfter(async (crawler) => {
      for (const result of [one, three]) await crawler.send(result);
    });
    const back = await refusalAfter(async (crawler) => {
      for (const result of [two, one]) await crawler.send(result);
    });

    expect(gap.reason).toBe("crawler:result: sequence 3 came, 2 was due");
    expect(back.reason).toBe("crawler:result: sequence 1 came, 3 was due");
  });

  test("random bytes on one connection after the other, until the address is refused", async () => {
    const random = seededRandom(10);
    let turnedAway = 0;
    for (let at = 0; at < 40; at += 1) {
      try {
        const crawler = await RawCrawler.connect(world.url);
        crawler.sendBytes(Buffer.from(Array.from({ length: 1 + random() * 400 }, () => random() * 256)));
        await crawler.closed;
      } catch (error) {
        expect(String(error)).toContain("429");
        turnedAway += 1;
      }
    }

    expect(turnedAway).toBe(10);
  });

  test("more connections than one address may have", async () => {
    const crowd = await Promise.allSettled(Array.from({ length: 60 }, () => RawCrawler.connect(world.url)));
    const admitted = crowd.flatMap((attempt) => (attempt.status === "fulfilled" ? [attempt.value] : []));
    await shipOne();
    for (const crawler of admitted) crawler.disconnect();
    await vi.waitFor(() => expect(world.gateway.counts().connections).toBe(1));

    expect(admitted.length).toBe(49);
  });

  test("a flood of valid messages that the handler is too slow for", async () => {
    const gate = makeGate();
    const slow = await startGateway({ zlibSync, handlers: { onMessage: () => gate.opened } });
    const crawler = await RawCrawler.arrive(slow.url, "amber");
    const bulky = { type: "crawler:lease-end", leaseId: "1", reason: "r".repeat(500) } as const;
    let sent = 0;
    while (!slow.gateway.sessionOf(asCrawlerId(1))?.connection.isHeld && sent < 20_000) {
      await crawler.send(bulky);
      sent += 1;
      if (sent % 100 === 0) await new Promise(setImmediate);
    }
    const session = slow.gateway.sessionOf(asCrawlerId(1))!;

    expect(session.connection.isHeld).toBe(true);
    expect(session.waitingMessages).toBeLessThan(5000);
    gate.open();
    await vi.waitFor(() => expect([session.connection.isHeld, session.waitingMessages]).toEqual([false, 0]));
    await slow.close();
  });

  test("more inflated bytes in a second than the coordinator has time for", async () => {
    const slow = await startGateway({ zlibSync, settings: { inflatedBytesPerSecond: 2_000_000 } });
    const crawler = await RawCrawler.arrive(slow.url, "amber");
    const bulky = { type: "crawler:lease-end", leaseId: "1", reason: "r".repeat(500) } as const;
    for (let sent = 0; sent < 500; sent += 1) await crawler.send(bulky);

    await vi.waitFor(() => expect(slow.gateway.sessionOf(asCrawlerId(1))?.connection.isHeld).toBe(true));
    await vi.waitFor(() => expect(slow.seen.messages.length).toBe(500), { timeout: 10_000 });
    await slow.close();
  });

  test("HTTP upgrades elsewhere, and half a handshake", async () => {
    await expect(RawCrawler.connect(world.url.replace("/crawler", "/elsewhere"))).rejects.toThrow("404");
    const half = connect(world.port, "127.0.0.1");
    half.write("GET /crawler HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    const answer = await new Promise<string>((resolve) =>
      half.once("data", (data) => resolve(data.toString())),
    );
    half.destroy();

    expect(answer).toMatch(/^HTTP\/1.1 400 /);
  });
});

test("a connection without a hello is refused when its time is over", async () => {
  const world = await startGateway({ zlibSync: null, settings: { helloTimeoutMs: 30 } });
  const crawler = await RawCrawler.connect(world.url);

  expect(await crawler.next("coordinator:refuse")).toMatchObject({
    reason: "no hello within 30 ms",
    retry: true,
  });
  await crawler.closed;
  await world.close();
});

test("an error while a crawler arrives refuses that crawler alone, and it may come back", async () => {
  let healthy = false;
  const world = await startGateway({
    zlibSync: null,
    handlers: {
      async onArrive() {
        if (!healthy) throw new Error("the database is away");
        return { acknowledgedSequence: 7 };
      },
    },
  });
  const early = await RawCrawler.connect(world.url);
  await early.send(helloOf("amber"));
  const refuse = await early.next("coordinator:refuse");
  healthy = true;
  const late = await RawCrawler.connect(world.url);
  await late.send(helloOf("amber"));
  const welcome = await late.next("coordinator:welcome");

  expect(refuse).toMatchObject({ code: "internal-error", retry: true });
  expect(welcome.acknowledgedSequence).toBe(7);
  await world.close();
});

test.each([
  ["node:zlib", null],
  ["zlib-sync", zlibSync],
])(
  "inflating with %s, a bomb and a stream that is corrupt or ended end the session",
  async (_name, native) => {
    const world = await startGateway({ zlibSync: native });
    for (const [bytes, reason] of [
      [bomb(100_000_000), `a message is longer than ${maxMessageBytes} bytes when inflated`],
      [Buffer.alloc(300, 0xff), "the deflate stream is corrupt"],
      [deflateRawSync("{}"), "the deflate stream has ended"],
    ] as const) {
      const crawler = await RawCrawler.arrive(world.url, "amber");
      crawler.sendBytes(joinFrame(Buffer.alloc(0), bytes));

      const refuse = await crawler.next("coordinator:refuse");
      expect(refuse).toMatchObject({ code: "bad-message", reason: expect.stringContaining(reason) });
    }
  },
);

/** Text in place of a packed message's JSON. */
function jsonFrame(json: Buffer | string): Buffer {
  const { numbers, text } = packedJson(json);
  return joinFrame(numbers, flushed(text));
}

/** One message of a stream that no honest crawler sends. */
function flushed(content: Buffer | string): Buffer {
  return deflateRawSync(content, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4);
}

/** At most 1/1000 of it travels. */
function bomb(bytes: number): Buffer {
  return flushed(Buffer.alloc(bytes));
}

/** The crawler's link against the real gateway and against misbehaving servers. */
import { readFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { WebSocketServer } from "ws";
import { ConfigError } from "#core/errors";
import { asCrawlerId } from "#core/ids";
import { CoordinatorLink, type LinkSettings, type OutgoingResult } from "#crawler/link/coordinator-link";
import type { CoordinatorRoute } from "#crawler/net/coordinator-socket";
import type {
  CoordinatorMessage,
  CoordinatorRefuse,
  CoordinatorWelcome,
} from "#protocol/coordinator-messages";
import { challengeHeader } from "#protocol/identity";
import { packResult } from "#protocol/packed/message-frames";
import { helloOf, keyOf, type LoopbackGateway, startGateway } from "../../gateway/gateway-on-loopback.ts";
import { generatedResults } from "../../protocol/generated-results.ts";
import { atEnd } from "../../support/at-end.ts";
import { makeGate } from "../../support/gate.ts";
import { onLoopback } from "../support/loopback.ts";
import { closedPort } from "../support/origin.ts";

const trusting = (trust: Partial<CoordinatorRoute>): CoordinatorRoute => ({
  certificatePin: null,
  proxy: null,
  timeoutMs: 5000,
  ...trust,
});

interface Heard {
  readonly welcomes: CoordinatorWelcome[];
  readonly messages: CoordinatorMessage[];
  readonly downs: string[];
  readonly stops: { reason: string; refused: CoordinatorRefuse | null }[];
  rooms: number;
}

async function start(
  options: Omit<Parameters<typeof startGateway>[0], "zlibSync"> = {},
): Promise<LoopbackGateway> {
  return startGateway({ zlibSync: null, ...options });
}

function makeLink(url: string, changes: Partial<LinkSettings> = {}): { link: CoordinatorLink; heard: Heard } {
  const heard: Heard = { welcomes: [], messages: [], downs: [], stops: [], rooms: 0 };
  const link = new CoordinatorLink({
    url,
    hello: () => helloOf("amber"),
    heartbeat: () => ({
      type: "crawler:heartbeat",
      openHosts: 0,
      spooledResults: 0,
      pages: 0,
      fetchedBytes: 0,
      shippedBytes: 0,
      holdingBack: [],
    }),
    handlers: {
      onWelcome: (welcome) => heard.welcomes.push(welcome),
      onMessage: (message) => heard.messages.push(message),
      onRoom: () => {
        heard.rooms += 1;
      },
      onDown: (reason) => heard.downs.push(reason),
      onStopped: (reason, refused) => heard.stops.push({ reason, refused }),
    },
    log: { info() {}, warn() {} },
    random: () => 0,
    backOff: { firstMs: 10, mostMs: 40 },
    ...changes,
  });
  atEnd(() => link.stop({ reason: "the test is over" }));
  return { link, heard };
}

async function welcomed(options: Parameters<typeof start>[0] = {}, changes: Partial<LinkSettings> = {}) {
  const world = await start(options);
  const made = makeLink(world.url, changes);
  made.link.start();
  await vi.waitFor(() => expect(made.heard.welcomes.length).toBe(1), 10_000);
  return { ...world, ...made };
}

/** Returns why the first attempt failed. */
async function downReason(url: string, changes: Partial<LinkSettings> = {}): Promise<string> {
  const { link, heard } = makeLink(url, changes);
  link.start();
  await vi.waitFor(() => expect(heard.downs.length).toBeGreaterThan(0));
  await link.stop({ reason: "seen" });
  return heard.downs[0]!;
}

/** Records how long the link waits before each attempt. */
function waitingLog() {
  const waits: number[] = [];
  return {
    waits,
    log: { info() {}, warn: (fields: object) => waits.push((fields as { waitMs: number }).waitMs) },
  };
}

function outgoing(count: number): OutgoingResult[] {
  return generatedResults({ count, hosts: 2, seed: 11 }).map(({ sequence, leaseId, result }) => ({
    sequence,
    packed: packResult(leaseId, result),
  }));
}

describe("a session", () => {
  test("starts with a welcome, carries messages both ways, and ends with a goodbye", async () => {
    const { link, heard, gateway, seen } = await welcomed();
    link.send({ type: "crawler:ready", freeHosts: 3 });
    await vi.waitFor(() => expect(seen.messages.length).toBe(1));
    gateway.send(asCrawlerId(1), {
      type: "coordinator:tasks",
      leases: [],
      askAgainMs: 5,
      reason: "nothing is due",
    });
    await vi.waitFor(() => expect(heard.messages.length).toBe(1));
    await link.stop({ reason: "upgrade" });
    await vi.waitFor(() => expect(seen.leaves.length).toBe(1));

    expect(seen.messages[0]?.message).toEqual({ type: "crawler:ready", freeHosts: 3 });
    expect(heard.messages[0]).toMatchObject({ type: "coordinator:tasks", reason: "nothing is due" });
    expect(seen.leaves[0]?.reason).toBe("upgrade");
    expect(heard.stops).toEqual([{ reason: "upgrade", refused: null }]);
    expect(heard.downs).toEqual([]);
    expect(link.isUp).toBe(false);
  });

  test("that is stopped still gets its acknowledgements", async () => {
    const gate = makeGate();
    const { link, heard, seen } = await welcomed({
      settings: { lingerMs: 0 },
      handlers: { onResults: () => gate.opened },
    });

    for (const result of outgoing(3)) link.sendResult(result);
    const stopped = link.stop({ reason: "upgrade" });
    gate.open();
    await stopped;

    expect(heard.messages.at(-1)).toEqual({ type: "coordinator:acknowledge", sequence: 3 });
    await vi.waitFor(() => expect(seen.leaves[0]?.reason).toBe("upgrade"));
  });

  test("that is stopped before its welcome says goodbye after it", async () => {
    const gate = makeGate();
    let arrived = false;
    const { url, seen } = await start({
      handlers: {
        async onArrive() {
          arrived = true;
          await gate.opened;
          return { acknowledgedSequence: 0 };
        },
      },
    });
    const { link } = makeLink(url, { hello: () => helloOf("amber") });
    link.start();
    await vi.waitFor(() => expect(arrived).toBe(true));

    const stopped = link.stop({ reason: "upgrade" });
    gate.open();
    await stopped;

    await vi.waitFor(() => expect(seen.leaves[0]?.reason).toBe("upgrade"));
  });

  test("sends heartbeats by itself", async () => {
    const { seen } = await welcomed({ settings: { heartbeatMs: 1000 } });

    await vi.waitFor(() => expect(seen.messages.length).toBeGreaterThan(0), { timeout: 5000 });

    expect(seen.messages[0]?.message.type).toBe("crawler:heartbeat");
  });
});

describe("results", () => {
  test("are accepted up to the credits, then refused until an acknowledgement makes room", async () => {
    const gate = makeGate();
    const { link, heard } = await welcomed({
      settings: { resultCredits: 5, lingerMs: 0 },
      handlers: { onResults: () => gate.opened },
    });

    const taken = outgoing(10).map((result) => result.sequence > 6 || link.sendResult(result));
    gate.open();
    await vi.waitFor(() => expect(heard.rooms).toBeGreaterThan(0));

    expect(taken.slice(0, 6)).toEqual([true, true, true, true, true, false]);
    expect(link.sendResult(outgoing(6)[5] as OutgoingResult)).toBe(true);
  });

  test("stop at pace 0 and continue when it is raised", async () => {
    const { link, heard, gateway, seen } = await welcomed();
    const [first] = outgoing(1) as [OutgoingResult];

    gateway.send(asCrawlerId(1), { type: "coordinator:pace", resultCredits: 0, reason: "the disk is full" });
    await vi.waitFor(() => expect(heard.messages.length).toBe(1));
    const taken = link.sendResult(first);
    gateway.send(asCrawlerId(1), { type: "coordinator:pace", resultCredits: 10, reason: "" });
    await vi.waitFor(() => expect(heard.rooms).toBe(1));
    link.sendResult(first);
    await vi.waitFor(() => expect(seen.batches.length).toBe(1));

    expect(taken).toBe(false);
  });

  test("must count up by one", async () => {
    const { link } = await welcomed();
    const [one, two, three] = outgoing(3) as [OutgoingResult, OutgoingResult, OutgoingResult];

    link.sendResult(one);

    expect(() => link.sendResult(three)).toThrow("result 3 cannot follow result 1");
    expect(link.sendResult(two)).toBe(true);
  });

  test("without acknowledgement are sent again in the next session and count once", async () => {
    let failing = true;
    const stored: number[] = [];
    const { link, heard, seen } = await welcomed({
      handlers: {
        async onResults({ results, crawlerId }) {
          if (failing) throw new Error("the database is away");
          const before = seen.committed.get(crawlerId) ?? 0;
          stored.push(...results.map((result) => result.sequence).filter((sequence) => sequence > before));
          seen.committed.set(crawlerId, results.at(-1)?.sequence ?? before);
        },
      },
    });
    for (const result of outgoing(4)) link.sendResult(result);
    await vi.waitFor(() => expect(heard.downs.length).toBe(1));
    expect(heard.messages).toEqual([]);
    failing = false;
    await vi.waitFor(() => expect(heard.welcomes.length).toBe(2));
    const acknowledged = heard.welcomes[1]?.acknowledgedSequence ?? -1;
    for (const result of outgoing(4)) if (result.sequence > acknowledged) link.sendResult(result);
    await vi.waitFor(() => expect(heard.messages.at(-1)).toMatchObject({ sequence: 4 }));

    expect(heard.downs[0]).toMatch(/internal-error/);
    expect(stored).toEqual([1, 2, 3, 4]);
  });

  test("and other messages are refused while the link is down", async () => {
    const { link } = makeLink("ws://127.0.0.1:9/crawler");

    expect(link.sendResult(outgoing(1)[0] as OutgoingResult)).toBe(false);
    expect(link.send({ type: "crawler:ready", freeHosts: 1 })).toBe(false);
  });
});

describe("a time to come back", () => {
  /** The minimum and maximum wait after the first attempt, over the range of jitter. */
  const waitsFor = async (url: string) => {
    const { waits, log } = waitingLog();
    for (const chance of [0, 0.999]) await downReason(url, { random: () => chance, log });
    return waits;
  };

  test("in a refusal is respected, with jitter", async () => {
    const refuse = { code: "internal-error", reason: "many wait", retry: true, retryAfterMs: 4000 } as const;
    const { url } = await start({ handlers: { admit: async () => ({ refuse }) } });

    expect(await waitsFor(url)).toEqual([4000, 4400]);
  });

  test("in an HTTP answer is respected, with the answer's words as reason", async () => {
    const server = createHttpServer((_request, response) => response.end());
    server.on("upgrade", (_request, socket) => {
      socket.end("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 9\r\n\r\nmany wait");
    });
    const url = `ws://127.0.0.1:${(await onLoopback(server)).port}/crawler`;

    expect(await downReason(url)).toBe("the connection was refused (HTTP 503): many wait");
    expect(await waitsFor(url)).toEqual([7000, 7699]);
  });
});

describe("after a loss or refusal", () => {
  const lost = { code: "internal-error", reason: "lost", retry: true } as const;

  test("the link returns to a restarted coordinator", async () => {
    const { link, heard, close, port } = await welcomed();

    await close();
    await vi.waitFor(() => expect(heard.downs.length).toBeGreaterThan(0));
    await start({ port });
    await vi.waitFor(() => expect(heard.welcomes.length).toBe(2));

    expect(heard.downs[0]).toBe("the coordinator refused (shutting-down): the coordinator is shutting down");
    expect(link.isUp).toBe(true);
  });

  test.each([
    { heartbeatMs: 10_000, backMs: [5, 10] },
    { heartbeatMs: 30_000, backMs: [5, 10_000] },
  ])(
    "crawlers with a heartbeat every $heartbeatMs ms return within $backMs ms",
    async ({ heartbeatMs, backMs }) => {
      const { waits, log } = waitingLog();
      for (const chance of [0, 0.999]) {
        const { link, heard, gateway } = await welcomed(
          { settings: { heartbeatMs } },
          { random: () => chance, log },
        );
        gateway.refuse(asCrawlerId(1), lost);
        await vi.waitFor(() => expect(heard.downs.length).toBe(1));
        await link.stop({ reason: "the wait is known" });
      }

      expect(waits.map((waitMs) => Math.round(waitMs / 5) * 5)).toEqual(backMs);
    },
  );

  test.each([
    { heartbeatMs: 10_000, first: [10, 20, 20, 20] },
    { heartbeatMs: 11_000, first: [510, 20, 40, 80] },
  ])(
    "retries are frequent for a while, with a heartbeat of $heartbeatMs ms: $first",
    async ({ heartbeatMs, first }) => {
      const { waits, log } = waitingLog();
      const backOff = { firstMs: 10, mostMs: 1000, soonMs: 20, soonForMs: 1000 };
      const { gateway, close } = await welcomed(
        { settings: { heartbeatMs } },
        { log, random: () => 1, backOff },
      );
      gateway.refuse(asCrawlerId(1), lost);
      await close();
      await vi.waitFor(() => expect(waits).toContain(80), { timeout: 5000 });

      expect(waits.slice(0, 4)).toEqual(first);
      expect(waits.slice(0, waits.indexOf(80) + 1).slice(-3)).toEqual([20, 40, 80]);
    },
  );

  test("waits double up to the maximum, with jitter", async () => {
    const { waits, log } = waitingLog();
    const randoms = [0, 1, 0.5, 0, 0, 0];
    const { link } = makeLink(await nowhere(), { log, random: () => randoms.shift() ?? 0 });

    link.start();
    await vi.waitFor(() => expect(waits.length).toBeGreaterThanOrEqual(5));

    expect(waits.slice(0, 5)).toEqual([5, 20, 30, 20, 20]);
  });

  test("a wrong key stops the link for good, with the coordinator's reason", async () => {
    const { url } = await start();
    const { link, heard } = makeLink(url, { hello: () => helloOf("amber", { key: keyOf("birch") }) });

    link.start();
    await vi.waitFor(() => expect(heard.stops.length).toBe(1));

    const reason = "refused for wrong-key";
    expect(heard.stops[0]).toEqual({
      reason: `the coordinator refused (wrong-key): ${reason}`,
      refused: { type: "coordinator:refuse", code: "wrong-key", reason, retry: false },
    });
    expect(heard.downs).toEqual([]);
  });

  test("stopping during a wait ends the wait", async () => {
    const { link, heard } = makeLink(await nowhere(), { backOff: { firstMs: 1e8, mostMs: 1e8 } });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    atEnd(async () => vi.useRealTimers());
    link.start();
    await vi.waitFor(() => expect(heard.downs.length).toBe(1));
    const waiting = vi.getTimerCount();

    await link.stop({ reason: "enough" });

    expect(heard.stops).toEqual([{ reason: "enough", refused: null }]);
    expect([waiting, vi.getTimerCount()]).toEqual([1, 0]);
  });
});

describe("over TLS", () => {
  const pem = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}`, import.meta.url));
  const tls = { cert: pem("loopback.cert.pem"), key: pem("loopback.key.pem") };

  test("a given certificate is trusted, and an untrusted coordinator never sees the key", async () => {
    const { url, seen } = await welcomed({ tls }, { route: trusting({ ca: tls.cert.toString() }) });
    const stranger = await start({ tls });

    expect(url).toMatch(/^wss:/);
    expect(seen.arrivals.length).toBe(1);
    expect(await downReason(stranger.url)).toMatch(/self-signed certificate/);
    expect(stranger.gateway.counts()).toEqual({ connections: 0, refusals: {} });
  });
});

describe("a misbehaving coordinator", () => {
  test("that never answers the upgrade is left", async () => {
    const { port } = await onLoopback(createServer((socket) => void socket.resume()));

    expect(await downReason(`ws://127.0.0.1:${port}/crawler`, { welcomeTimeoutMs: 30 })).toMatch(
      /nothing heard|timed out/,
    );
  });

  test.each([
    ["never welcomes", () => {}, /^nothing heard from the coordinator for 0\.5 s$/],
    ["sends text", (send: (data: string) => void) => send("{}"), /it is a text frame$/],
    [
      "sends garbage",
      (send: (data: Buffer | string) => void) => send(Buffer.alloc(100, 0xff)),
      /^on a message of the coordinator: the deflate stream is corrupt/,
    ],
  ])("that %s is left", async (_what, greet, words) => {
    expect(await downReason(await serverThat(greet), { welcomeTimeoutMs: 500 })).toMatch(words);
  });
});

test("a URL that would send the key unencrypted is refused at once", () => {
  expect(() => makeLink("ws://coordinator.example/crawler")).toThrow(ConfigError);
  expect(() => makeLink("ws://coordinator.example/crawler")).toThrow(/sends the key in the clear, use wss/);
  expect(() => makeLink("https://coordinator.example/")).toThrow(/is not a wss:\/\/ URL/);
  expect(() => makeLink("nonsense")).toThrow(/is not a wss:\/\/ URL/);
  expect(() => makeLink("ws://127.0.0.1.example/crawler")).toThrow(ConfigError);
  makeLink("wss://coordinator.example/crawler");
  makeLink("ws://[::1]:7411/crawler");
});

/** A WebSocket server with its own greeting. */
async function serverThat(greet: (send: (data: Buffer | string) => void) => void): Promise<string> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  server.on("headers", (headers) => void headers.push(`${challengeHeader}: ${"c".repeat(43)}`));
  server.on("connection", (socket) => greet((data) => socket.send(data)));
  await new Promise((resolve) => server.once("listening", resolve));
  atEnd(async () => {
    for (const client of server.clients) client.terminate();
    await new Promise((resolve) => server.close(resolve));
  });
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}/crawler`;
}

const nowhere = async () => `ws://127.0.0.1:${await closedPort()}/crawler`;

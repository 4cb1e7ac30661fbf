/** When a crawler counts as vanished: by missed heartbeats on a dead connection, and not because one was late. */
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { HeartbeatWatch } from "#coordinator/run/gateway/liveness";
import { type LoopbackGateway, startGateway } from "./gateway-on-loopback.ts";
import { RawCrawler } from "./raw-crawler.ts";

describe("three heartbeats", () => {
  let vanished: number;
  let beats: number;
  let bytesRead: number;
  let isHeld: boolean;
  let watch: HeartbeatWatch;

  beforeEach(() => {
    vi.useFakeTimers();
    [vanished, beats, bytesRead, isHeld] = [0, 0, 0, false];
    watch = new HeartbeatWatch({
      ...{ heartbeatMs: 1000, pingMs: 1000 },
      bytesRead: () => bytesRead,
      isHeld: () => isHeld,
      onPing: () => {
        beats += 1;
      },
      onVanished: () => {
        vanished += 1;
      },
    });
  });
  afterEach(() => {
    watch.stop();
    vi.useRealTimers();
  });

  test("that do not come are a departure, reported once, before the fourth is due", () => {
    vi.advanceTimersByTime(3250);
    expect(vanished).toBe(0);
    vi.advanceTimersByTime(250);
    expect(vanished).toBe(1);
    vi.advanceTimersByTime(10_000);

    expect([vanished, beats]).toEqual([1, 3]);
  });

  test("are counted from the last sign of life: a delay of two and a half intervals misses none", () => {
    for (let late = 0; late < 5; late += 1) {
      vi.advanceTimersByTime(2500);
      watch.heard();
    }

    expect(vanished).toBe(0);
  });

  test("do not count while we do not read, or while a long message is on its way", () => {
    isHeld = true;
    vi.advanceTimersByTime(10_000);
    isHeld = false;
    vi.advanceTimersByTime(3000);
    bytesRead += 4000;
    vi.advanceTimersByTime(3000);
    expect(vanished).toBe(0);

    vi.advanceTimersByTime(500);
    expect(vanished).toBe(1);
  });

  test("are not made up for by answers to our pings", () => {
    for (let second = 0; second < 4; second += 1) {
      bytesRead += 6;
      vi.advanceTimersByTime(1000);
    }

    expect(vanished).toBe(1);
  });
});

describe("a connection that goes dead without a FIN", () => {
  let world: LoopbackGateway;
  let proxy: Server;
  let isDead = false;
  const sockets = new Set<Socket>();
  const cleanups: (() => unknown)[] = [];

  beforeEach(async () => {
    isDead = false;
    world = await startGateway({ zlibSync: null, settings: { heartbeatMs: 100 } });
    proxy = createServer((near) => relay(near));
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) cleanup();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => proxy.close(resolve));
    await world.close();
  });

  function relay(near: Socket): void {
    const far = connect(world.port, "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {});
      from.on("data", (bytes) => void (isDead || to.write(bytes)));
      from.on("close", () => void (isDead || to.destroy()));
    }
  }

  const proxyUrl = () => `ws://127.0.0.1:${(proxy.address() as { port: number }).port}/crawler`;

  test("ends that crawler's session as vanished, while the others continue", async () => {
    const through = await RawCrawler.arrive(proxyUrl(), "amber");
    const direct = await RawCrawler.arrive(world.url, "birch");
    const beats = setInterval(() => {
      for (const crawler of [through, direct]) {
        // A heartbeat may be sent as the connection ends.
        crawler.send({ type: "crawler:ready", freeHosts: 1 }).catch(() => {});
      }
    }, 50);
    cleanups.push(
      () => clearInterval(beats),
      () => through.disconnect(),
    );
    await vi.waitFor(() => expect(world.seen.messages.length).toBeGreaterThan(6));
    expect(world.gateway.online()).toEqual([1, 2]);

    isDead = true;

    await vi.waitFor(() => expect(world.seen.leaves).toHaveLength(1), { timeout: 10_000 });
    expect(world.seen.leaves).toEqual([
      { crawlerId: 1, code: "vanished", reason: "three heartbeats did not come", forGood: false },
    ]);
    expect(world.gateway.online()).toEqual([2]);
  });
});

/** The gateway's limits on bytes, connections and turns, on a manual clock. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { defaultGatewaySettings } from "#coordinator/run/gateway/gateway-settings";
import { ByteBudget } from "#coordinator/run/gateway/liveness";
import { CrawlerSession } from "#coordinator/run/gateway/session";
import { ConnectionLimits } from "#coordinator/web/limits";
import { KeyedTurns, LoopTurns } from "#core/clock";
import type { CrawlerHello } from "#protocol/messages";
import { InflaterPool } from "#protocol/zlib-sync-inflater";
import { makeGate } from "../support/gate.ts";
import { helloOf } from "./gateway-on-loopback.ts";
import { RawCrawler } from "./raw-crawler.ts";

describe("the byte budget", () => {
  test("allows a second's worth at once; more has to wait", () => {
    let nowMs = 0;
    const budget = new ByteBudget(1000, () => nowMs);

    budget.spend(1000);
    expect(budget.waitMs()).toBeGreaterThan(0);
    nowMs = 1;
    expect(budget.waitMs()).toBe(0);
    budget.spend(2001);
    expect(budget.waitMs()).toBe(2001);
    nowMs = 2002;
    expect(budget.waitMs()).toBe(0);
  });

  test("saves unspent time for at most a second", () => {
    let nowMs = 0;
    const budget = new ByteBudget(1000, () => nowMs);

    nowMs = 3_600_000;
    budget.spend(1500);

    expect(budget.waitMs()).toBe(501);
  });
});

describe("the connection limits", () => {
  const settings = { connections: 4, connectionsPerAddress: 2, failuresPerAddressAndMinute: 2 };

  test("connections are limited per address and in total", () => {
    const limits = new ConnectionLimits(settings, () => 0);

    expect([limits.open("192.0.2.1"), limits.open("192.0.2.1")]).toEqual([null, null]);
    expect(limits.open("192.0.2.1")).toBe("192.0.2.1 has 2 connections already");
    expect([limits.open("192.0.2.2"), limits.open("192.0.2.3")]).toEqual([null, null]);
    expect(limits.open("192.0.2.4")).toBe("all 4 connections are taken");
    limits.close("192.0.2.1");
    expect(limits.open("192.0.2.1")).toBeNull();
  });

  test("an IPv6 address counts as its /64, a mapped one as its IPv4 address", () => {
    const limits = new ConnectionLimits(settings, () => 0);

    expect([limits.open("2001:db8:1:2::1"), limits.open("2001:db8:1:2:ffff::9")]).toEqual([null, null]);
    expect(limits.open("2001:db8:1:2::3")).toMatch(/has 2 connections already$/);
    expect(limits.open("2001:db8:1:3::1")).toBeNull();
    limits.close("2001:db8:1:3::1");
    for (const address of ["2001:db8:1:2::1", "2001:db8:1:2::1"]) limits.close(address);
    expect([limits.open("192.0.2.1"), limits.open("::ffff:192.0.2.1")]).toEqual([null, null]);
    expect(limits.open("::ffff:c000:201")).toBe("192.0.2.1 has 2 connections already");
  });

  test("an address that failed too often waits until a minute has passed", () => {
    let nowMs = 5;
    const limits = new ConnectionLimits(settings, () => nowMs);
    limits.countFailure("192.0.2.1");
    nowMs = 30_000;
    limits.countFailure("192.0.2.1");

    expect(limits.open("192.0.2.1")).toBe("too many failures from 192.0.2.1");
    expect(limits.open("192.0.2.2")).toBeNull();
    nowMs = 60_005;
    expect(limits.open("192.0.2.1")).toBeNull();
  });
});

describe("turns", () => {
  test("work of one key runs one after the other in order, of another beside it", async () => {
    const turns = new KeyedTurns<string>();
    const gate = makeGate();
    const order: string[] = [];
    const first = turns.take("a", async () => {
      await gate.opened;
      order.push("a1");
    });
    const second = turns.take("a", async () => void order.push("a2"));
    await turns.take("b", async () => void order.push("b1"));

    gate.open();
    await Promise.all([first, second]);

    expect(order).toEqual(["b1", "a1", "a2"]);
  });

  test("work that fails reports it to its caller, and the next turn still comes", async () => {
    const turns = new KeyedTurns<string>();
    let came = false;
    const failing = turns.take("a", () => Promise.reject(new Error("no")));
    const next = turns.take("a", async () => {
      came = true;
    });

    await expect(failing).rejects.toThrow("no");
    await next;
    await turns.allTaken();

    expect(came).toBe(true);
  });
});

describe("turns of the event loop", () => {
  const busyFor = (ms: number) => {
    const untilMs = performance.now() + ms;
    while (performance.now() < untilMs);
  };

  test("short work is done at once, long work leaves the rest to later turns, in order", async () => {
    let nowMs = 0;
    const turns = new LoopTurns(
      1,
      () => false,
      () => nowMs,
    );
    const done: string[] = [];
    for (const name of ["a", "b"]) turns.take(() => void done.push(name));
    expect(done).toEqual(["a", "b"]);

    for (const name of ["c", "d", "e"])
      turns.take(() => {
        nowMs += 2;
        done.push(name);
      });
    turns.take(() => void done.push("f"));
    expect([done.join(""), turns.waiting]).toEqual(["abc", 3]);
    await nextTurn();
    expect([done.join(""), turns.waiting]).toEqual(["abcd", 2]);
    while (turns.waiting > 0) await nextTurn();

    expect(done.join("")).toBe("abcdef");
  });

  test("a hello that arrived in time and is read late was not late", async () => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false });
    const strangers = new LoopTurns(1);
    const ended: string[] = [];
    const helloed = new Promise<CrawlerHello>((resolve) => {
      server.on("connection", (socket, { socket: stream }) => {
        const shared = {
          pool: new InflaterPool(null),
          strangers,
          remoteAddress: "127.0.0.1",
          tlsBinding: null,
        };
        const settings = { ...defaultGatewaySettings, ...shared, challenge: "", helloTimeoutMs: 500 };
        const none = async () => {};
        new CrawlerSession(socket, stream, settings, {
          onHello: (_, hello) => resolve(hello),
          ...{ onResults: none, onMessage: none, onProbeReport() {}, onFault() {} },
          onEnd: (_, { reason }) => void ended.push(reason),
        });
        // Earlier work fills a second, twice the limit of a hello, all at once.
        for (let others = 0; others < 200; others += 1) strangers.take(() => busyFor(5));
      });
    });
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const crawler = await RawCrawler.connect(`ws://127.0.0.1:${port}`);
    await crawler.send(helloOf("amber"));

    expect(await helloed).toMatchObject({ name: "amber" });
    expect(ended).toEqual([]);
    crawler.socket.terminate();
    server.close();
  });
});

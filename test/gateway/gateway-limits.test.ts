/** The gateway's bookkeeping of bytes, connections and turns, with a clock set by hand. */
import { describe, expect, test } from "vitest";
import { ByteBudget } from "#coordinator/gateway/liveness";
import { ConnectionLimits } from "#coordinator/web/limits";
import { hashCrawlerKey } from "#coordinator/web/secrets";
import { KeyedTurns } from "#core/clock";
import { makeGate } from "../support/gate.ts";

describe("the byte budget", () => {
  test("a second's worth may be spent at once, more has to be waited for", () => {
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

  test("time without spending is not saved up beyond a second", () => {
    let nowMs = 0;
    const budget = new ByteBudget(1000, () => nowMs);

    nowMs = 3_600_000;
    budget.spend(1500);

    expect(budget.waitMs()).toBe(501);
  });
});

describe("the connection limits", () => {
  const settings = { connections: 4, connectionsPerAddress: 2, failuresPerAddressAndMinute: 2 };

  test("one address may have so many connections, all together so many", () => {
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

  test("work that fails is told to whoever asked, and the next turn comes all the same", async () => {
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

test("a key is stored as its SHA-256 in hex", () => {
  // FIPS 180-4, the example "abc".
  expect(hashCrawlerKey("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});

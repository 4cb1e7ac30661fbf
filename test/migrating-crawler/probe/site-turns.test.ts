/** A site gets one request at a time, as its pace and robots.txt allow, pages and probes together. */
import { describe, expect, it } from "vitest";
import { RobotsCache } from "#crawler/fetch/robots";
import { SiteClient } from "#crawler/fetch/site-client";
import { HostGates } from "#crawler/limits/host-gate";
import { ProbeGate } from "#crawler/limits/probe-gate";
import { Connector } from "#crawler/net/connector";
import { type ProbeRequest, Prober } from "#crawler/probe/prober";
import { saysNothing } from "#protocol/messages";
import { atEnd } from "../../support/at-end.ts";
import { startRawOrigin } from "../support/origin.ts";
import { testConfig } from "../support/test-config.ts";

const floorMs = 200;
const ok = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const robots = "User-agent: *\nDisallow: /\n";
const bounds = () => ({ signal: new AbortController().signal, endsAtMs: Date.now() + 10_000 });

/** A site that records requests, and a crawler's prober with the gates and robots.txt of its pages. */
async function site({ silence = "" } = {}) {
  const asked: string[] = [];
  const origin = await startRawOrigin((socket, head) => {
    asked.push(head.split(" HTTP")[0] ?? "");
    socket.write(
      head.startsWith("GET /robots.txt")
        ? `HTTP/1.1 200 OK\r\ncontent-length: ${robots.length}\r\n\r\n${robots}`
        : ok,
    );
  });
  const config = testConfig({});
  const connector = new Connector(config);
  atEnd(() => connector.close());
  const gates = new HostGates({ floorMs, responseTimeFactor: 1 });
  const { timeouts } = config;
  const userAgent = () => "Nearcrawl/test";
  const cache = new RobotsCache({ connector, timeouts, userAgent, take: () => null });
  const prober = new Prober({
    ...{ connector, probeMethods: ["head", "connect"], userAgent },
    limits: {
      gate: new ProbeGate({ limits: () => ({ probesPerSecond: 50, concurrentHosts: 32 }), waitMs: () => 0 }),
      silence: () => silence,
      addBytes: () => {},
      isLeased: () => true,
      turn: async (target, withinMs) =>
        await gates.takeProbe(target, { ...bounds(), endsAtMs: Date.now() + withinMs }),
      mayHead: (name) => {
        const known = cache.known(name);
        return known?.type !== "known" || known.verdict("/").allowed;
      },
    },
  });
  await prober.start();
  const probe = async (deadlineMs: number, method: ProbeRequest["method"] = "head") =>
    await prober.probe({
      ...{ host: "127.0.0.1", address: "127.0.0.1", port: origin.port },
      ...{ secure: false, method, tries: 1, deadlineMs },
    });
  const client = () => {
    const made = new SiteClient({ origin: `http://127.0.0.1:${origin.port}`, connector, timeouts });
    atEnd(() => made.close());
    return made;
  };
  const page = async () => await gates.take({ host: "127.0.0.1", address: "127.0.0.1" }, bounds());
  return { asked, gates, cache, client, probe, page };
}

const answer = { status: 200, tookMs: 1, retryAfterSeconds: null };

describe("a probe", () => {
  it("waits for the page that is requested from its address", async () => {
    const { asked, probe, page } = await site();
    const turn = await page();
    const probed = probe(4000);

    await new Promise((resolve) => setTimeout(resolve, 300));
    const during = [...asked];
    turn?.end(answer, "127.0.0.1");

    expect(during).toEqual([]);
    expect(await probed).toMatchObject({ type: "measured", method: "head" });
    expect(asked).toEqual(["HEAD /"]);
  });

  it("is held back when the page takes longer than the probe may wait", async () => {
    const { asked, probe, page } = await site();
    await page();

    expect(await probe(400)).toMatchObject({
      type: "failed",
      reason: "held back by the crawler: the pages of this address leave it no turn in time",
    });
    expect(asked).toEqual([]);
  });

  it("is held back while the partner pauses the crawler", async () => {
    const { probe } = await site({ silence: "paused by its partner" });

    expect(saysNothing(await probe(2000))).toBe(true);
  });

  it("by HEAD counts as a request for the Crawl-delay", async () => {
    const { gates, probe } = await site();
    gates.crawlDelayAtLeast("127.0.0.1", 30);

    expect(await probe(2000)).toMatchObject({ type: "measured", method: "head" });

    expect(gates.waitMs("127.0.0.1", Date.now())).toBeGreaterThan(29_000);
  });

  it("connects instead of sending HEAD during a Crawl-delay", async () => {
    const { asked, gates, probe, page } = await site();
    gates.crawlDelayAtLeast("127.0.0.1", 30);
    (await page())?.end(answer, "127.0.0.1");

    const outcomes = [await probe(2000), await probe(2000), await probe(2000)];

    expect(outcomes).toMatchObject(Array(3).fill({ type: "measured", method: "connect" }));
    expect(asked).toEqual([]);
  });

  it("does not send HEAD when robots.txt forbids it", async () => {
    const { asked, cache, client, probe } = await site();
    await cache.of(client());

    expect(await probe(2000)).toMatchObject({ type: "measured", method: "connect" });
    expect(asked).toEqual(["GET /robots.txt"]);
  });
});

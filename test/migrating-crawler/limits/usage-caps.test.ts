/** Daily and monthly use, whatever the clock does and whenever the process is killed. */

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { seededRandom } from "#core/random";
import {
  bytesOfMonth,
  emptyLedger,
  onDay,
  UsageCaps,
  type UsageLedger,
  withUse,
} from "#crawler/limits/usage-caps";
import { type CrawlerLimits, limitsSchema } from "#crawler/settings/limits-config";
import type { Lease } from "#protocol/lease";
import { keyOf, type LoopbackGateway, startGateway } from "../../gateway/gateway-on-loopback.ts";
import { atEnd } from "../../support/at-end.ts";
import { builtProgram } from "../../support/built-command.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { type CountingRelay, startCountingRelay } from "../support/counting-relay.ts";
import { html, startOrigin } from "../support/origin.ts";
import { makeCertificate, startHttp2Origin } from "../support/secure-origin.ts";
import { sliceRunner } from "../support/slices.ts";

describe("the ledger", () => {
  let home: string;
  let now: Date;
  beforeEach(() => {
    home = temporaryFolder("nearcrawl-usage-");
    now = new Date("2026-11-22T12:00:00Z");
  });

  function capsOf(limits: Partial<CrawlerLimits>): UsageCaps {
    const all = limitsSchema.parse({ timeZone: "Europe/Athens", ...limits });
    return new UsageCaps({ limits: all, kept: { home, warn: () => {} }, now: () => now });
  }

  /** The ledger after these bytes on these days of 2026, in order. */
  function after(days: string): UsageLedger {
    return days.split(" ").reduce((ledger, entry) => {
      const [day = "", bytes] = entry.split("=");
      return withUse(onDay(ledger, day.length === 5 ? `2026-${day}` : day), 1, Number(bytes));
    }, emptyLedger);
  }

  it.each([
    ["11-21=100 11-22=30 11-24=5", 5, 135, "begins a day with nothing"],
    ["11-30=100 12-01=30", 30, 30, "begins a month with nothing"],
    ["11-30=100 2027-11-30=30", 30, 30, "begins the same month with nothing a year later"],
    ["11-21=100 11-22=30 11-21=1", 101, 101, "goes on with a day that the clock goes back to"],
    [
      "11-21=100 11-22=30 11-21=1 11-22=0",
      30,
      131,
      "takes over into the next day what was added to the month",
    ],
    ["11-21=100 11-22=30 2000-01-01=7", 37, 137, "gives nothing away to a clock that is set back"],
    ["11-21=100 11-22=30 2000-01-01=7 11-22=1", 38, 138, "counts what came in a wrong day to the right one"],
    ["11-22=30 2036-01-01=9 11-22=1 11-23=2", 2, 33, "outlives a clock that was years ahead"],
  ])("a ledger of %s has %i bytes today and %i in the month: it %s", (days, today, month) => {
    const ledger = after(days);

    expect([ledger.today.bytes, bytesOfMonth(ledger)]).toEqual([today, month]);
  });

  describe("the use on disk", () => {
    const onDisk = () => JSON.parse(readFileSync(join(home, "day-count.json"), "utf8"));

    it("is always ahead of the real use, by half a percent of the cap at most", () => {
      const caps = capsOf({ bytesPerDay: 1_000_000 });
      const random = seededRandom(7);
      let used = 0;

      const ahead = Array.from({ length: 200 }, () => {
        const bytes = Math.floor(random() * 400);
        caps.count(0, bytes);
        used += bytes;
        return onDisk().bytes - used;
      });

      expect(Math.min(...ahead)).toBeGreaterThanOrEqual(0);
      expect(Math.max(...ahead)).toBeLessThanOrEqual(5000);
    });

    it("is exact after an orderly stop", () => {
      const caps = capsOf({});
      caps.count(3, 777);

      caps.close();

      expect(onDisk()).toMatchObject({ pages: 3, bytes: 777 });
      expect(capsOf({ bytesPerDay: 1000, pagesPerDay: 5 }).leftPages()).toBe(2);
      expect(capsOf({ bytesPerDay: 1000 }).leftBytes("link")).toBe(223);
    });
  });

  describe("the day's and the month's bytes", () => {
    it("hold across kills: each costs half a percent of the cap, and none gives anything back", () => {
      const cap = 1_000_000;
      let carried = 0;

      for (let life = 0; life < 10; life++) {
        const caps = capsOf({ bytesPerDay: cap });
        for (let piece = 0; piece < 300 && caps.leftBytes("fetch") > 0; piece++) {
          caps.count(0, 500);
          carried += 500;
        }
      }

      expect(carried).toBeLessThanOrEqual(cap);
      expect(carried).toBeGreaterThan(0.93 * cap);
    });

    it("start over at midnight local time, and the month at its end", () => {
      const caps = capsOf({ bytesPerDay: 1000, bytesPerMonth: 1500 });
      const spentAt = (time: string) => {
        now = new Date(time);
        const left = caps.leftBytes("link");
        caps.count(0, left);
        return left;
      };

      const times = [
        "2026-10-30T20:00:00Z",
        "2026-10-30T22:00:00Z",
        "2026-10-31T21:59:59Z",
        "2026-10-31T22:00:00Z",
      ];

      expect(times.map(spentAt)).toEqual([1000, 500, 0, 1000]);
    });

    it("cannot be used again by setting the clock back", () => {
      const caps = capsOf({ bytesPerDay: 1000 });
      caps.count(0, 1000);

      now = new Date("2026-11-20T12:00:00Z");

      expect(caps.leftBytes("fetch")).toBeLessThanOrEqual(0);
      expect(caps.spent()).toBe("the day's 1000 bytes are used up");
    });
  });
});

// Compares the byte caps with what a relay counted outside: pages, headers, robots.txt and the link to the coordinator, across a kill of the process.

/** Incompressible text. */
const noise = randomBytes(20_000).toString("base64url");
const pageBytes = (path: string) => 2000 + ((Number(path.replace(/\D/g, "")) * 7919) % 12_000);

async function sites(): Promise<CountingRelay> {
  const origin = await startOrigin((request, response) => {
    if (request.url === "/robots.txt") return void response.writeHead(404).end();
    const { url } = request;
    html(response, `<title>${url}</title><p>${noise.slice(0, 300)}<!--${noise.slice(0, pageBytes(url!))}-->`);
  });
  return startCountingRelay(origin.port);
}

const pagesOf = (host: string, port: number, count: number) =>
  Array.from({ length: count }, (_, page) => `http://${host}.localhost:${port}/${page}`);

/** A coordinator that leases a new host for every free place. */
async function coordinator(port: number): Promise<LoopbackGateway> {
  let hosts = 0;
  const leaseOf = (): Lease => {
    const host = `h${++hosts}.localhost`;
    const urls = pagesOf(`h${hosts}`, port, 20).map((url) => ({ url, etag: null, lastModified: null }));
    return { leaseId: `${hosts}`, host, addresses: ["127.0.0.1"], expiresInSeconds: 300, waitMs: 0, urls };
  };
  const world: LoopbackGateway = await startGateway({
    zlibSync: null,
    handlers: {
      async onMessage(crawlerId, message, { wireBytes }) {
        world.seen.messages.push({ crawlerId, message, wireBytes });
        if (message.type !== "crawler:ready") return;
        const leases = Array.from({ length: Math.min(8, message.freeHosts) }, leaseOf);
        world.gateway.send(crawlerId, { type: "coordinator:tasks", leases, askAgainMs: 50, reason: "" });
      },
    },
  });
  return world;
}

describe("the day's bytes", () => {
  it("hold within 2 % of what the sockets carried, including the link, across a kill", {
    timeout: 120_000,
  }, async () => {
    const cap = 3_000_000;
    const [relay, home] = [await sites(), temporaryFolder("nearcrawl-caps-")];
    const world = await coordinator(relay.port);
    const link = await startCountingRelay(world.port);
    const settings = {
      coordinatorUrl: `ws://127.0.0.1:${link.port}/crawler`,
      ...{ key: keyOf("amber"), name: "amber", home, allowRanges: ["127.0.0.0/8"] },
      ...{ politenessFloorMs: 0, responseTimeFactor: 0, requestsPerAddress: 64 },
      limits: { bytesPerDay: cap, extractionThreads: 0, priority: 0, concurrentHosts: 8 },
    };
    writeFileSync(join(home, "settings.json"), JSON.stringify(settings));
    const carried = () => relay.carriedBytes() + link.carriedBytes();
    const first = await runCrawler(join(home, "settings.json"));
    await vi.waitFor(() => expect(carried()).toBeGreaterThan(0.4 * cap), wait);

    first.kill("SIGKILL");
    await once(first, "exit");
    const second = await runCrawler(join(home, "settings.json"));
    await vi.waitFor(() => expect(givenBack(world)).toContain("the day's 2.9 MiB are used up"), wait);
    second.kill("SIGTERM");
    await once(second, "exit");

    expect(carried()).toBeLessThan(1.02 * cap);
    // Bytes expected when the process was killed count even if they did not arrive.
    expect(carried()).toBeGreaterThan(0.94 * cap);
  });

  it("count TLS with its handshakes and HTTP/2 with its frames exactly", async () => {
    const certificate = makeCertificate("localhost");
    atEnd(() => certificate.remove());
    const secure = await startHttp2Origin(certificate, (_request, response) => {
      response.writeHead(200, { "content-type": "text/html" });
      response.end(`<p>${noise.slice(0, 20_000)}`);
    });
    const relay = await startCountingRelay(secure.port);
    const runner = sliceRunner({ certificateFile: certificate.file });

    const { results } = await runner.crawl([
      `https://localhost:${relay.port}/1`,
      `https://localhost:${relay.port}/2`,
    ]);
    await vi.waitFor(() => expect(countedBy(runner)).toBe(relay.carriedBytes()), wait);

    expect(results.map(({ outcome }) => outcome.type)).toEqual(["fetched", "fetched"]);
    expect(countedBy(runner)).toBeGreaterThan(42_000);
  });

  it("abort a page that exceeds them: it goes back, and is no failure", async () => {
    const relay = await sites();
    const runner = sliceRunner({ limits: { bytesPerDay: 100_000 } });

    const { results, ending } = await runner.crawl(pagesOf("a", relay.port, 20));

    expect(ending).toBe("the day's 97.7 KiB are used up");
    expect(results.every(({ outcome }) => outcome.type === "fetched")).toBe(true);
  });
});

describe("the bytes of a second", () => {
  it("never exceed the rate since the start, with many downloads at a time", {
    timeout: 30_000,
  }, async () => {
    const relay = await sites();
    const kilobytesPerSecond = 100;
    const runner = sliceRunner({ limits: { kilobytesPerSecond }, requestsPerAddress: 64, timeouts: patient });
    const startedMs = performance.now();

    await Promise.all(
      ["a", "b", "c", "d", "e", "f"].map((host) => runner.crawl(pagesOf(host, relay.port, 6))),
    );

    const allowedBytes = ((performance.now() - startedMs) / 1000) * kilobytesPerSecond * 1024;
    const burstBytes = 0.1 * kilobytesPerSecond * 1024;
    expect(relay.carriedBytes()).toBeLessThan(1.02 * allowedBytes + burstBytes);
    expect(relay.carriedBytes()).toBeGreaterThan(36 * 2000);
  });
});

const wait = { timeout: 40_000, interval: 20 };
const patient = { connectMs: 10_000, firstByteMs: 20_000, idleMs: 20_000, totalMs: 60_000 };

const countedBy = (runner: ReturnType<typeof sliceRunner>) => {
  runner.tools.governor.settle();
  return runner.tools.governor.usage(0).find(({ limit }) => limit === "bytesPerDay")?.used;
};

const givenBack = ({ seen }: LoopbackGateway) =>
  seen.messages.flatMap(({ message }) => (message.type === "crawler:lease-end" ? [message.reason] : []));

async function runCrawler(settings: string): Promise<ChildProcess> {
  const main = await builtProgram("migrating-crawler/main");
  const child = spawn(process.execPath, [main, settings], { stdio: "ignore" });
  atEnd(() => child.kill("SIGKILL"));
  return child;
}

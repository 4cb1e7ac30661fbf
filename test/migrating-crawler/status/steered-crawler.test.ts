import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { quietLog } from "#crawler/core/log";
import { startCrawler } from "#crawler/main";
import type { Resident } from "#crawler/resident-crawler";
import type { CrawlerConfig } from "#crawler/settings/config";
import { askCrawler } from "#crawler/status/control-server";
import { openStatus } from "#crawler/status/open-status";
import type { StatusReport } from "#crawler/status/status-report";
import type { Lease } from "#protocol/lease";
import type { LoopbackGateway } from "../../gateway/gateway-on-loopback.ts";
import { until } from "../../support/until.ts";
import { leaseOf, leasingGateway } from "../support/leasing-gateway.ts";
import { html, type Origin, startOrigin } from "../support/origin.ts";
import { type PartnerConsole, partnerConsole } from "../support/partner-console.ts";
import { testConfig } from "../support/test-config.ts";

let world: LoopbackGateway;
let origin: Origin;
let config: CrawlerConfig;
let crawler: Resident;
let partner: PartnerConsole;
let waiting: Lease[] = [];
let ended: Promise<void> | null = null;
/** Pending answers of slow pages. */
const held: (() => void)[] = [];

beforeAll(async () => {
  origin = await startOrigin(async (request, response) => {
    if (request.url === "/robots.txt") return void response.end("User-agent: *\nDisallow: /secret");
    if (request.url?.startsWith("/slow")) await new Promise<void>((resolve) => held.push(resolve));
    if (request.url === "/cut") return void request.socket.destroy();
    html(response, `<title>Amber</title><p>${"ships sail northwards ".repeat(400)}`);
  });
  waiting = [pagesOf("1", ["/", "/secret/a", "/cut", "/b"])];
  const userAgent = "Nearcrawl/0.1 (+https://crawl.example/about-crawler)";
  world = await leasingGateway(waiting, { settings: { userAgent } });
  config = testConfig({ coordinatorUrl: world.url, limits: { extractionThreads: 0 } });
  partner = partnerConsole({ defaultHome: config.home });
  crawler = await startCrawler(config, {
    onDrained: () => {
      ended = status.close().then(() => crawler.leave());
    },
  });
  const status = await openStatus({ config, crawler, log: quietLog });
  await until(() => crawler.report().work?.today.urls === 4, 60_000);
}, 90_000);
afterAll(async () => {
  await ended;
  await crawler.stop();
  await world.close();
  await origin.close();
});

const pagesOf = (leaseId: string, paths: readonly string[]) =>
  leaseOf(
    leaseId,
    paths.map((path) => origin.url + path),
  );

async function openSlowPage(leaseId: string): Promise<void> {
  waiting.push(pagesOf(leaseId, [`/slow/${leaseId}`]));
  await until(() => held.length === 1, 10_000);
}

function releasePages(): void {
  for (const release of held.splice(0)) release();
}

const run = (name: string, ...args: string[]) => partner.run(name, "--home", config.home, ...args);
const reportOf = async () => JSON.parse((await run("status", "--json")).text) as StatusReport;

describe("a crawler at work", () => {
  it("reports what it did, for whom, and what went wrong by blame", async () => {
    const report = await reportOf();

    expect(report).toMatchObject({
      statusVersion: 1,
      crawler: { name: "amber", id: 1, home: config.home, processId: process.pid, fingerprint: null },
      coordinator: {
        url: world.url,
        contactPage: "https://crawl.example/about-crawler",
        notConnectedSince: null,
        notConnectedBecause: "",
      },
      work: { today: { urls: 4, fetched: 2, refusedByRobots: 1, failed: 1 }, lastMinute: { urls: 4 } },
      errors: { today: { network: 1 }, latest: [{ blame: "network", host: "127.0.0.1" }] },
      versions: { node: process.versions.node, protocol: 7, dock: null, release: null },
      shipping: { pages: 2 },
    });
    expect(report.limits.find(({ limit }) => limit === "pagesPerDay")).toMatchObject({
      used: 4,
      cap: 1_000_000,
    });
    expect(report.coordinator.connectedSince).not.toBeNull();
  });

  it("prints the same as text, with exit code 0", async () => {
    const { code, text } = await run("status");

    expect(code).toBe(0);
    expect(text).toContain("4 URLs: 2 fetched, 1 forbidden by robots.txt, 1 failed");
    expect(text).toContain("Errors today: 0 of sites, 1 of the network");
  });

  it("pauses at once, with the reason, and continues when it is resumed", async () => {
    const paused = await run("pause", "--reason", "backup tonight");
    const report = await reportOf();
    const resumed = await run("resume");
    const after = await reportOf();

    expect(paused).toMatchObject({
      code: 0,
      text: expect.stringMatching(/^Paused: it contacts no site any more/),
    });
    expect(report).toMatchObject({
      state: "paused",
      words: "Paused: backup tonight.",
      pause: { reason: "backup tonight" },
    });
    expect(report.holdingBack[0]).toContain("backup tonight");
    expect(resumed).toEqual({ code: 0, text: "Resumed: the crawler goes on." });
    expect(after).toMatchObject({ state: "waiting", pause: null });
  });

  it("is controlled by POST only, and refuses unknown commands", async () => {
    const refused = await Promise.allSettled([
      askCrawler(config.home, { method: "GET", path: "/pause" }),
      askCrawler(config.home, { method: "POST", path: "/status.json" }),
      askCrawler(config.home, { method: "GET", path: "/" }),
    ]);

    expect(refused.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(crawler.report().pause).toBeNull();
  });

  it("drains at the host's request, which can be withdrawn while something is open", async () => {
    await openSlowPage("2");

    const asked = await run("drain", "--no-wait", "--json");
    const report = await reportOf();
    const resumed = await run("resume");
    releasePages();

    expect(asked).toMatchObject({ code: 0, text: expect.stringContaining("draining") });
    expect(report).toMatchObject({ state: "draining", work: { openHosts: 1 } });
    expect(report.words).toMatch(/^Draining, to leave for good: by hand\. 1 site is still open/);
    expect(resumed.code).toBe(0);
    expect((await reportOf()).drain).toBeNull();
    await until(() => crawler.report().work?.openHosts === 0, 5000);
  });

  it("finishes its open work, takes nothing new, ships all results, and then leaves permanently", async () => {
    await openSlowPage("3");

    const drained = run("drain", "--reason", "the machine goes away");
    await until(() => crawler.report().drain !== null, 5000);
    waiting.push(pagesOf("4", ["/never"]));
    releasePages();
    const { code, text } = await drained;

    expect(text).toContain("takes no new sites, finishes those that are open");
    expect(text).toContain("Draining, to leave for good: the machine goes away.");
    expect(text).toContain("Left: nothing of it waits any more");
    expect(code).toBe(0);
    await ended;
    const shipped = world.seen.batches.flatMap(({ results }) => results.map(({ result }) => result.url));
    expect(shipped).toContain(`${origin.url}/slow/3`);
    expect(origin.requests).not.toContain("GET /never");
    await until(() => world.seen.leaves.length === 1, 5000);
    expect(world.seen.leaves[0]).toMatchObject({ forGood: true });
  });

  it("is described from its files when it no longer runs, with exit code 3", async () => {
    const { code, text } = await run("status");
    const drain = await run("drain");
    const pause = await run("pause");

    expect(code).toBe(3);
    expect(text).toContain("No crawler runs in this folder. Start it: nearcrawl-crawler.mjs run");
    expect(text).toContain("Errors today: 0 of sites, 1 of the network");
    expect(text).toContain("its settings are not in this folder");
    expect(drain).toMatchObject({ code: 3, text: expect.stringContaining("leave") });
    expect(pause).toMatchObject({
      code: 0,
      text: expect.stringContaining("one that is started contacts no site"),
    });
    expect((await reportOf()).pause).toMatchObject({ reason: "by hand" });
  });

  it("is refused where no crawler has ever been", async () => {
    const elsewhere = await partner.run("status", "--home", "/nonexistent");

    expect(elsewhere).toMatchObject({ code: 2, text: expect.stringContaining("is no crawler's folder") });
  });
});

/** Settings that change while the crawler runs, from the file to the coordinator. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { type CrawlerLog, quietLog } from "#crawler/core/log";
import { changedConfig } from "#crawler/live-settings";
import { startCrawler } from "#crawler/main";
import type { Resident } from "#crawler/resident-crawler";
import type { CrawlerConfig } from "#crawler/settings/config";
import { settingsFileConfig, watchSettings } from "#crawler/settings/settings-file";
import type { LoopbackGateway } from "../gateway/gateway-on-loopback.ts";
import { atEnd } from "../support/at-end.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { leaseOf, leasingGateway } from "./support/leasing-gateway.ts";
import { html, startOrigin } from "./support/origin.ts";
import { testConfig } from "./support/test-config.ts";

const wait = { timeout: 15_000, interval: 20 };

const coordinator = (urls: readonly string[] = []) =>
  leasingGateway(urls.length === 0 ? [] : [leaseOf("7", urls)]);

/** A slow crawl of nine pages; resolves after the first one. */
async function slowCrawl() {
  const origin = await startOrigin((request, response) => {
    if (request.url === "/robots.txt") return void response.end("User-agent: *\nCrawl-delay: 1");
    html(response, "<p>page");
  });
  const world = await coordinator(Array.from({ length: 9 }, (_, page) => `${origin.url}/${page}`));
  const config = testConfig({ coordinatorUrl: world.url });
  const crawler = await run(config);
  await vi.waitFor(() => expect(origin.requests).toContain("GET /0"), wait);
  return { origin, world, config, crawler };
}

async function run(config: CrawlerConfig, log: CrawlerLog = quietLog): Promise<Resident> {
  const crawler = await startCrawler(config, { log });
  atEnd(() => crawler.stop());
  return crawler;
}

const leaseEnds = ({ seen }: LoopbackGateway) =>
  seen.messages.flatMap(({ message }) => (message.type === "crawler:lease-end" ? [message.reason] : []));

describe("changed settings", () => {
  it("are separated from those that need a restart; a new key is no change", () => {
    const now = testConfig({ home: "/tmp/one" });
    const next = testConfig({
      ...{ home: "/tmp/one", key: "another-key-of-amber", ipv6: true, denyDomains: ["example.org"] },
      limits: { pagesPerDay: 7, extractionThreads: 3 },
    });

    const { config, changed, needRestart, isTold } = changedConfig(now, next);

    expect(changed).toEqual(["denyDomains", "limits.pagesPerDay"]);
    expect(needRestart).toEqual(["ipv6", "limits.extractionThreads"]);
    expect(isTold).toBe(true);
    expect(config.limits).toMatchObject({ pagesPerDay: 7, extractionThreads: now.limits.extractionThreads });
    expect(changedConfig(now, { ...now }).isTold).toBe(false);
  });

  it("in the file apply within seconds and are reported to the coordinator; a faulty file changes nothing", async () => {
    const world = await coordinator();
    const folder = temporaryFolder("nearcrawl-live-");
    const file = join(folder, "settings.toml");
    writeFileSync(file, "[limits]\npagesPerDay = 100\n");
    const told: string[] = [];
    const error = (fields: object) => void told.push(String((fields as { error?: Error }).error?.message));
    const { coordinatorUrl, name, key } = testConfig({ coordinatorUrl: world.url });
    const read = () => settingsFileConfig(file, { coordinatorUrl, name, key, home: folder });
    const log = { ...quietLog, error };
    const crawler = await run(read(), log);
    const watching = watchSettings({
      file,
      read: () => ({ ...read(), limits: { ...read().limits, priority: 0 } }),
      crawler,
      log,
    });
    atEnd(() => watching.close());
    const pagesTold = () => world.seen.arrivals.map(({ hello }) => hello.limits.pagesPerDay);
    await vi.waitFor(() => expect(pagesTold()).toEqual([100]), wait);

    writeFileSync(file, "[limits]\npagesPerDay = 50\n");
    await vi.waitFor(() => expect(pagesTold()).toEqual([100, 50]), wait);
    writeFileSync(file, "[limits]\npagesPerDay = -3\n");
    await vi.waitFor(() => expect(told).toHaveLength(1), wait);

    expect(told[0]).toContain(`${file}:2: limits.pagesPerDay`);
    expect(crawler.usage().find(({ limit }) => limit === "pagesPerDay")?.cap).toBe(50);
  });

  it("that forbid a domain close its connections, and the rest of its lease goes back", async () => {
    const { origin, world, config, crawler } = await slowCrawl();

    crawler.change({ ...config, denyRanges: ["127.0.0.1"] });
    await vi.waitFor(() => expect(world.seen.arrivals).toHaveLength(2), wait);
    const asked = origin.requests.length;
    await vi.waitFor(() => expect(crawler.status().openHosts).toBe(0), wait);

    expect(origin.requests.length).toBe(asked);
    expect(world.seen.arrivals[1]?.hello.denies?.networks).toEqual(["127.0.0.1"]);
  });
});

describe("a pause", () => {
  it("stops the crawl until it is resumed, and its reason reaches the coordinator", async () => {
    const { world, crawler } = await slowCrawl();

    crawler.pause("the backup runs");
    await vi.waitFor(
      () => expect(leaseEnds(world)).toEqual([expect.stringContaining("the backup runs")]),
      wait,
    );

    expect(crawler.status().holdingBack.join()).toContain("the backup runs");
    crawler.resume();
    expect(crawler.status().holdingBack.join()).not.toContain("the backup runs");
  });
});

/** A running coordinator with releases: real sockets, a real database, supervisors that report. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { type RunningCoordinator, startCoordinator } from "#coordinator/main";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { createReleaseFleetStore } from "#coordinator/run/releases/fleet-store";
import { stageRelease } from "#coordinator/run/releases/move-stage";
import { createReleaseStore } from "#coordinator/run/releases/release-store";
import { fleetList } from "#coordinator/tell/fleet/fleet-reads";
import { hashCrawlerKey } from "#coordinator/web/secrets";
import { silentLog } from "#core/log";
import { keyOf } from "../gateway/gateway-on-loopback.ts";
import { RawCrawler } from "../gateway/raw-crawler.ts";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { publishedRelease } from "../support/releases.ts";
import { until } from "../support/until.ts";

const database = await forThisFile(testDatabase());
let coordinator: RunningCoordinator;
beforeAll(async () => {
  const config = readCoordinatorConfig({ listen: { port: 0 } });
  coordinator = await startCoordinator({ config, database, log: silentLog, version: "test" });
});
afterAll(async () => await coordinator?.stop());

test("a release is offered after the welcome, fetched, reported, and held when its crawlers return from it", async () => {
  const { pool } = database;
  const stores = { releases: createReleaseStore(pool), releaseFleet: createReleaseFleetStore(pool) };
  const staged = async () => (await stores.releases.list()).find(({ version }) => version === "1.1.0");
  const athens = await docked("athens");
  const oslo = await docked("oslo");
  await until(async () => (await stores.releaseFleet.docks()).length === 2, 10_000);
  const { digest } = await publishedRelease(pool, { version: "1.1.0", stage: "none" });

  await stageRelease({ version: "1.1.0", to: "one=athens", soakMinutes: 30 }, stores, new Date());
  const offer = await athens.next("coordinator:release");
  const bundle = await fetch(new URL(`/releases/${digest}`, coordinator.webUrl));
  await report(athens, "running", "");
  await until(async () => (await stores.releaseFleet.counts()).get("1.1.0")?.running === 1, 10_000);
  await report(athens, "returned", "it crashed");
  await oslo.next("coordinator:release");
  await report(oslo, "returned", "it hung");
  await until(async () => (await staged())?.stage === "none", 10_000);
  const gone = await fetch(new URL(`/releases/${digest}`, coordinator.webUrl));
  const metrics = await (await fetch(new URL("/metrics", coordinator.webUrl))).text();

  expect(offer).toEqual({ type: "coordinator:release", version: "1.1.0", digest });
  expect([bundle.status, gone.status]).toEqual([200, 404]);
  expect((await staged())?.stageWords).toBe("athens rolled back from it: it crashed, and 1 more of 2");
  expect(metrics).toContain('nearcrawl_release_crawlers{version="1.1.0",state="returned"} 2');
  expect((await fleetList(pool, new Date())).map(({ name, release }) => [name, release?.version])).toEqual([
    ["athens", "1.0.0"],
    ["oslo", "1.0.0"],
  ]);
  for (const crawler of [athens, oslo]) crawler.disconnect();
});

async function docked(name: string): Promise<RawCrawler> {
  await createCrawlerStore(database.pool).register({ name, keyHash: hashCrawlerKey(keyOf(name)) });
  const release = { version: "1.0.0", digest: "0".repeat(64), dockVersion: "1.0.0", policy: "follow" };
  const url = `${coordinator.webUrl.replace("http", "ws")}/crawler`;
  return await RawCrawler.arrive(url, name, { release });
}

async function report(crawler: RawCrawler, state: "running" | "returned", reason: string): Promise<void> {
  await crawler.send({ type: "crawler:release-report", version: "1.1.0", state, reason });
}

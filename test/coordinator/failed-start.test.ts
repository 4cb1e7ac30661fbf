/** Where a coordinator listens; one that cannot says so and leaves nothing running. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it, vi } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { startCoordinator } from "#coordinator/main";
import { silentLog } from "#core/log";
import { Timekeeper } from "#core/scheduler";
import { RawCrawler } from "../gateway/raw-crawler.ts";
import { testDatabase } from "../support/database.ts";
import { freePort } from "../support/free-port.ts";

afterEach(() => vi.restoreAllMocks());

it("gives up when it cannot listen, with the address in the message and no flow started", async () => {
  const every = vi.spyOn(Timekeeper.prototype, "every");
  const database = await testDatabase();
  // Of a network that this machine has no address in.
  const config = readCoordinatorConfig({ listen: { host: "192.0.2.1", port: 7411 }, behindProxy: true });

  await expect(startCoordinator({ config, database, log: silentLog, version: "test" })).rejects.toThrow(
    /listen: 192\.0\.2\.1:7411/,
  );
  await database.close();

  expect(every).not.toHaveBeenCalled();
});

it("stops listening when its address cannot be recorded, with no flow started", async () => {
  const every = vi.spyOn(Timekeeper.prototype, "every");
  const database = await testDatabase();
  const port = await freePort();
  const config = readCoordinatorConfig({ listen: { host: "127.0.0.1", port } });
  await database.pool.query("drop table coordinator_place");

  await expect(startCoordinator({ config, database, log: silentLog, version: "test" })).rejects.toThrow(
    /coordinator_place/,
  );
  await database.close();

  await expect(fetch(`http://127.0.0.1:${port}/health`)).rejects.toThrow("fetch failed");
  expect(every).not.toHaveBeenCalled();
});

it("takes the next port when the requested one is in use", async () => {
  const database = await testDatabase();
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as AddressInfo;
  const config = readCoordinatorConfig({ listen: { host: "127.0.0.1", port } });

  const coordinator = await startCoordinator({ config, database, log: silentLog, version: "test" });

  expect(Number(new URL(coordinator.webUrl).port)).toBeGreaterThan(port);
  await coordinator.stop();
  other.close();
  await database.close();
});

it("serves pages and no crawlers at the pages' own port, too, until it stops", async () => {
  const database = await testDatabase();
  const pagesPort = await freePort();
  const config = readCoordinatorConfig({ listen: { port: 0, pagesPort } });
  const pages = `http://127.0.0.1:${pagesPort}`;

  const coordinator = await startCoordinator({ config, database, log: silentLog, version: "test" });
  const health = [await fetch(`${coordinator.webUrl}/health`), await fetch(`${pages}/health`)];
  const crawler = RawCrawler.connect(`${pages.replace("http", "ws")}/crawler`);
  await expect(crawler).rejects.toThrow("404");
  const events = await fetch(`${pages}/events`);
  await coordinator.stop();
  await database.close();

  expect(health.map(({ status }) => status)).toEqual([200, 200]);
  expect(events.status).toBe(200);
  await expect(fetch(`${pages}/health`)).rejects.toThrow("fetch failed");
});

it("gives up when the pages' port is in use", async () => {
  const database = await testDatabase();
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port: pagesPort } = other.address() as AddressInfo;
  const config = readCoordinatorConfig({ listen: { port: 0, pagesPort } });

  await expect(startCoordinator({ config, database, log: silentLog, version: "test" })).rejects.toThrow(
    new RegExp(`listen.pagesPort: 127.0.0.1:${pagesPort}: .*EADDRINUSE`),
  );
  other.close();
  await database.close();
});

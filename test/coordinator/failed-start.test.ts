/** A coordinator that cannot listen says so and leaves nothing running. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it, vi } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { startCoordinator } from "#coordinator/main";
import { silentLog } from "#core/log";
import { Timekeeper } from "#core/scheduler";
import { testDatabase } from "../support/database.ts";

afterEach(() => vi.restoreAllMocks());

it("gives up when it cannot listen, with the address in the message and no flow set going", async () => {
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

it("stops listening when its place cannot be recorded, with no flow set going", async () => {
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

it("takes the next port when the one asked for is taken", async () => {
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

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

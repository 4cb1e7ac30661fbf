/** A coordinator that cannot listen says so and leaves nothing running. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { silentLog } from "#coordinator/log";
import { startCoordinator } from "#coordinator/main";
import { testDatabase } from "../support/database.ts";

it("gives up when it cannot listen, with the address in the message and no flow left running", async () => {
  const database = await testDatabase();
  const errors: object[] = [];
  // Of a network that this machine has no address in.
  const config = readCoordinatorConfig({ listen: { host: "192.0.2.1", port: 7411 }, behindProxy: true });
  const log = { ...silentLog, error: (fields: object) => errors.push(fields) };

  await expect(startCoordinator({ config, database, log, version: "test" })).rejects.toThrow(
    /listen: 192\.0\.2\.1:7411/,
  );
  await database.close();
  // Were a flow still turning, it would find its pool closed within half a second.
  await new Promise((resolve) => setTimeout(resolve, 700));

  expect(errors).toEqual([]);
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

/** All parts of a coordinator's pages over a test's database, with an empty memory unless one is given. */

import type { WebPart } from "#coordinator/ask/add-operations";
import { readCoordinatorConfig } from "#coordinator/config";
import { DatabaseWatch } from "#coordinator/database/database-watch";
import { CoordinatorState } from "#coordinator/place/delegation/state";
import { pagesOfRooms } from "#coordinator/room-pages";
import { createMetrics } from "#coordinator/tell/overview/metrics";
import { OwnHealth } from "#coordinator/tell/overview/own-health";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import { softwareVersion } from "#protocol/software-version";
import { engineOver } from "./search-engine.ts";
import { worldNow } from "./seed-world.ts";
import { liveState, testAccess, tinyResolver, webSettings } from "./web-server.ts";

export async function everyPart(
  database: Database,
  {
    state = new CoordinatorState(),
    room,
  }: { readonly state?: CoordinatorState; readonly room?: string } = {},
): Promise<readonly WebPart[]> {
  const clock = { now: () => new Date(), nowMs: () => performance.now() };
  const { userAgent, contact } = webSettings;
  const watch = new DatabaseWatch(database.url, clock);
  const parts = await pagesOfRooms(
    {
      config: readCoordinatorConfig({ userAgent, contact }),
      database,
      pool: database.pool,
      patientPool: database.pool,
      access: testAccess(database, () => worldNow),
      resolver: tinyResolver,
      live: () => liveState,
      health: new OwnHealth({ database: watch, ...clock }),
      metrics: createMetrics(),
      version: softwareVersion,
      log: silentLog,
      now: () => worldNow,
      registryHost: null,
      state,
      succession: async () => [],
      searchEngine: engineOver(database.pool),
    },
    room,
  );
  return [...parts, ({ app }) => app.addHook("onClose", async () => await watch.close())];
}

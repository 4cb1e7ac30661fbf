/** A coordinator as the end-to-end tests need it: on loopback, silent, and with the emulated Internet's names. */

import { readCoordinatorConfig } from "#coordinator/config";
import { type RunningCoordinator, startCoordinator } from "#coordinator/main";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import type { RunningWorld } from "#ops/world/main";
import { softwareVersion } from "#protocol/software-version";

export interface QuietCoordinator {
  readonly database: Database;
  readonly internet: RunningWorld;
  /** What the test is about. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Default: any free one. */
  readonly port?: number;
  readonly now?: () => Date;
  /** Of the journals beside the database; left out: none is kept. */
  readonly journalRoot?: string;
}

export async function startQuietCoordinator(given: QuietCoordinator): Promise<RunningCoordinator> {
  const { database, internet, settings, port = 0, now, journalRoot = null } = given;
  return await startCoordinator({
    database,
    log: silentLog,
    version: softwareVersion,
    journalRoot,
    ...(now && { now }),
    config: readCoordinatorConfig({
      listen: { host: "127.0.0.1", port },
      resolvers: [internet.dnsAddress],
      logLevel: "silent",
      ...settings,
    }),
  });
}

/** Where a crawler finds it. */
export const crawlerUrl = (webUrl: string): string => `${webUrl.replace("http", "ws")}/crawler`;

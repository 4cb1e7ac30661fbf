/** What a coordinator is started with. */

import type { Log } from "#core/log";
import type { Database } from "#db/connect";
import type { CoordinatorConfig } from "./config.ts";
import type { RegistryHost } from "./registry/facts.ts";

export interface CoordinatorOptions {
  readonly config: CoordinatorConfig;
  readonly database: Database;
  readonly log: Log;
  /** Of this software, shown on pages. */
  readonly version: string;
  /** Where the tree is kept between two starts; null: it is built from the database each time. */
  readonly snapshotFolder?: string | null;
  /** Runs the registry's jobs; left out: none can be started from the pages. */
  readonly registryHost?: RegistryHost | null;
  /** Sees to it that there is a release of the crawler: before it listens, and now and then. Left out: operators do. */
  readonly keepReleases?: (now: Date) => Promise<void>;
  /** The clock; the system's when it is left out. */
  readonly now?: () => Date;
}

/** The part of the pages about coordinators above and below this one, with its stores; and what children talk to. */
import type { CoordinatorConfig } from "../config.ts";
import { readCoordinatorPlace } from "../crawlers/coordinator-place-store.ts";
import { NewHostBudget } from "../frontier/budgets.ts";
import type { WebPart } from "../http-server.ts";
import { randomSecrets } from "../web/secrets.ts";
import type { WebPartOptions } from "../web-parts.ts";
import { createChildExchangeStore } from "./exchange-store.ts";
import { createCoordinatorStore } from "./related-store.ts";
import { coordinatorRoutes } from "./routes.ts";

export interface CoordinatorPartOptions
  extends Pick<WebPartOptions, "pool" | "database" | "metrics" | "version"> {
  readonly config: Pick<CoordinatorConfig, "scope" | "coordinators">;
  readonly now?: () => Date;
}

/** What children send is written over the coordinator's own connections, not the pages' impatient ones. */
export function coordinatorPart(options: CoordinatorPartOptions): WebPart {
  const { pool, database, metrics, version, config, now = () => new Date() } = options;
  return coordinatorRoutes({
    coordinators: createCoordinatorStore(pool),
    secrets: randomSecrets,
    hash: randomSecrets.hash,
    place: async () => await readCoordinatorPlace(pool),
    store: createChildExchangeStore(database.pool),
    scope: () => config.scope,
    newHosts: new NewHostBudget(() => config.coordinators.newHostsPerChildAndDay),
    onTaken: (taken) => metrics.coordinators.exchanged("child", taken),
    version,
    now,
  });
}

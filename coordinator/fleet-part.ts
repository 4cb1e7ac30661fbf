/** The pages' part about the fleet, with its stores. */
import type { Pool } from "pg";
import { invitingCoordinator } from "./inviting-coordinator.ts";
import { randomSecrets } from "./net/crawler-key.ts";
import type { FleetPorts } from "./net/fleet-ports.ts";
import { fleetRoutes } from "./net/fleet-routes.ts";
import type { WebPart } from "./net/http-server.ts";
import { createComplaintStore } from "./postgres/complaint-store.ts";
import { readCoordinatorPlace } from "./postgres/coordinator-place.ts";
import { grantBudget } from "./postgres/crawler-budget.ts";
import { createCrawlerStore } from "./postgres/crawler-store.ts";
import { restoreTrust } from "./postgres/distrust-writes.ts";
import { createDomainSetStore } from "./postgres/domain-sets/domain-set-store.ts";
import { createFleetKeys } from "./postgres/fleet-keys.ts";
import { createFleetReads } from "./postgres/fleet-reads.ts";
import { createFrontierStore } from "./postgres/frontier-store.ts";
import { createIncidentStore } from "./postgres/incident-store.ts";
import { createInvitationStore } from "./postgres/invitation-store.ts";
import { createMoveStore } from "./postgres/move-store.ts";
import { createOptOutStore } from "./postgres/opt-out-store.ts";
import { createReleaseFleetStore } from "./postgres/release-fleet-store.ts";
import { createReleaseStore } from "./postgres/release-store.ts";
import { createReports } from "./postgres/reports/reports.ts";
import { createSignInLinkStore } from "./postgres/sign-in-link-store.ts";

/** `now` is the clock of figures that are kept a while. */
export function fleetPart(pool: Pool, now: () => Date = () => new Date()): WebPart {
  return fleetRoutes(fleetPorts(pool, now));
}

function fleetPorts(pool: Pool, now: () => Date): FleetPorts {
  const nowMs = () => performance.now();
  return {
    reads: createFleetReads(pool, now, nowMs),
    overview: createReports(pool, nowMs),
    crawlers: createCrawlerStore(pool),
    keys: createFleetKeys(pool),
    frontier: createFrontierStore(pool),
    invitations: createInvitationStore(pool),
    incidents: createIncidentStore(pool),
    moves: createMoveStore(pool),
    releases: createReleaseStore(pool),
    releaseFleet: createReleaseFleetStore(pool),
    optOuts: createOptOutStore(pool),
    complaints: createComplaintStore(pool),
    links: createSignInLinkStore(pool),
    domainSets: createDomainSetStore(pool),
    grantBudget: async (name, change) => await grantBudget(pool, name, change),
    restoreTrust: async (name, at) => await restoreTrust(pool, name, at),
    coordinator: async () => await invitingCoordinator(pool),
    webUrl: async () => (await readCoordinatorPlace(pool))?.webUrl ?? null,
    secrets: randomSecrets,
  };
}

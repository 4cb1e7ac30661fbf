/** The fleet: everything that operators and partners see and do, as pages and under /api/. */

import type { Pool } from "pg";
import { createSignInLinkStore } from "../access/session-store.ts";
import { addPartnerSignIn } from "../access/sign-in-routes.ts";
import { grantBudget } from "../crawlers/control-store.ts";
import { readCoordinatorPlace } from "../crawlers/coordinator-presence-store.ts";
import { createCrawlerStore } from "../crawlers/crawler-store.ts";
import { createFleetKeys } from "../crawlers/identity-store.ts";
import { createInvitationStore } from "../crawlers/invitation-store.ts";
import { createMoveStore } from "../crawlers/move-store.ts";
import { createDomainSetStore } from "../domain-sets/domain-set-store.ts";
import { createFrontierStore } from "../frontier/frontier-store.ts";
import { invitingCoordinator } from "../inviting-coordinator.ts";
import { createComplaintStore } from "../opt-outs/complaint-store.ts";
import { createOptOutMarks } from "../opt-outs/mark-writes.ts";
import { addWishRoutes } from "../opt-outs/routes.ts";
import { createOptOutStore } from "../opt-outs/store.ts";
import { createIncidentStore } from "../overview/incident-store.ts";
import { createReleaseFleetStore } from "../releases/fleet-store.ts";
import { createReleaseStore } from "../releases/release-store.ts";
import { addVersionRoutes } from "../releases/routes.ts";
import { restoreTrust } from "../trust/distrust-writes.ts";
import type { WebPart } from "../web/actions.ts";
import { randomSecrets } from "../web/secrets.ts";
import { createReports } from "../who/reads.ts";
import { createFleetReads } from "./crawler-reads.ts";
import { addCrawlerActions, addCrawlerRoutes } from "./crawler-routes.ts";
import type { FleetPorts } from "./fleet-ports.ts";
import { addInvitationRoutes } from "./invitation-routes.ts";
import { readInvitationProgress } from "./invitation-step-reads.ts";
import { addFleetLists } from "./list-routes.ts";

function fleetRoutes(ports: FleetPorts): WebPart {
  return ({ views, actions }) => {
    addFleetLists(views, ports);
    addInvitationRoutes(views, actions, ports);
    addCrawlerRoutes(views, ports);
    addCrawlerActions(actions, ports);
    addPartnerSignIn(actions, ports);
    addVersionRoutes(views, actions, ports);
    addWishRoutes(views, actions, ports);
  };
}

// The pages' part about the fleet, with its stores.

/** `now` is the clock of figures that are kept a while. */
export function fleetPart(
  { pool, succession }: { readonly pool: Pool; readonly succession: FleetPorts["succession"] },
  now: () => Date = () => new Date(),
): WebPart {
  return fleetRoutes({ ...fleetPorts(pool, now), succession });
}

function fleetPorts(pool: Pool, now: () => Date): Omit<FleetPorts, "succession"> {
  const nowMs = () => performance.now();
  return {
    reads: createFleetReads(pool, now, nowMs),
    overview: createReports(pool, nowMs),
    crawlers: createCrawlerStore(pool),
    keys: createFleetKeys(pool),
    frontier: createFrontierStore(pool),
    invitations: createInvitationStore(pool),
    invitationProgress: async (number, at) => await readInvitationProgress(pool, number, at),
    incidents: createIncidentStore(pool),
    moves: createMoveStore(pool),
    releases: createReleaseStore(pool),
    releaseFleet: createReleaseFleetStore(pool),
    optOuts: createOptOutStore(pool),
    marks: createOptOutMarks(pool),
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

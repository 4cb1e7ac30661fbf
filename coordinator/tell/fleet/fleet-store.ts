/** The stores and reads behind the fleet's pages, API and actions. */

import type { Pool } from "pg";
import type { CrawlerId } from "#core/ids";
import type { TimeRange } from "#core/time-range";
import { createFrontierStore } from "../../crawl/frontier/frontier-store.ts";
import { restoreTrust } from "../../crawl/trust/distrust-writes.ts";
import { readsOver } from "../../database/cached-read.ts";
import type { HeirLine } from "../../place/balance/hand-overs.ts";
import { grantBudget } from "../../place/crawlers/control-store.ts";
import { readCoordinatorPlace } from "../../place/crawlers/coordinator-place-store.ts";
import { createCrawlerStore } from "../../place/crawlers/crawler-store.ts";
import { createFleetKeys } from "../../place/crawlers/identity-store.ts";
import { createInvitationStore } from "../../place/crawlers/invitation-store.ts";
import { createMoveStore } from "../../place/crawlers/move-store.ts";
import { createDomainSetStore } from "../../place/domain-sets/domain-set-store.ts";
import type { InvitingCoordinator } from "../../run/access/invitations.ts";
import { createSignInLinkStore } from "../../run/access/session-store.ts";
import { createComplaintStore } from "../../run/opt-outs/complaint-store.ts";
import { createOptOutMarks } from "../../run/opt-outs/mark-writes.ts";
import { createOptOutStore } from "../../run/opt-outs/store.ts";
import { createReleaseFleetStore } from "../../run/releases/fleet-store.ts";
import { createReleaseStore } from "../../run/releases/release-store.ts";
import type { ChartHistory } from "../../web/chart-history.ts";
import { randomSecrets } from "../../web/secrets.ts";
import type { FleetLine } from "./fleet-api.ts";
import { createFleetLines, createFleetReads } from "./fleet-reads.ts";
import { createIncidentStore } from "./incident-store.ts";
import { readInvitationProgress as invitationProgress } from "./invitation-step-reads.ts";

interface FleetCharts {
  charts(page: "trust" | "failures", range: TimeRange): Promise<ChartHistory>;
  crawlerCharts(of: Pick<FleetLine, "crawlerId" | "name">, range: TimeRange): Promise<ChartHistory>;
}

export type FleetPorts = ReturnType<typeof fleetStores> & {
  readonly past: FleetCharts;
  /** The crawlers that would get its subnets now. */
  readonly succession: (crawlerId: CrawlerId) => Promise<readonly HeirLine[]>;
  /** What invitations pin. Throws a UsageError when partners could not reach the coordinator. */
  readonly coordinator: () => Promise<InvitingCoordinator>;
};

/** `now` is the clock of cached figures. */
export function fleetStores(pool: Pool, now: () => Date) {
  const nowMs = () => performance.now();
  return {
    ...readsOver(pool, { invitationProgress, grantBudget, restoreTrust }),
    reads: createFleetReads(pool, now, nowMs),
    lines: createFleetLines(pool, nowMs),
    crawlers: createCrawlerStore(pool),
    keys: createFleetKeys(pool),
    frontier: createFrontierStore(pool),
    invitations: createInvitationStore(pool),
    incidents: createIncidentStore(pool),
    moves: createMoveStore(pool),
    releases: createReleaseStore(pool),
    releaseFleet: createReleaseFleetStore(pool),
    optOuts: createOptOutStore(pool),
    marks: createOptOutMarks(pool),
    complaints: createComplaintStore(pool),
    links: createSignInLinkStore(pool),
    domainSets: createDomainSetStore(pool),
    /** The public address of the pages, or null until a coordinator has stated it. */
    webUrl: async () => (await readCoordinatorPlace(pool))?.webUrl ?? null,
    secrets: randomSecrets,
  };
}

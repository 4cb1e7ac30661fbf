/** What the operators' API works with, over one pool of connections. */
import type { Pool } from "pg";
import { invitingCoordinator } from "./inviting-coordinator.ts";
import { randomSecrets } from "./net/crawler-key.ts";
import type { OperatorApiPorts } from "./net/operator-api.ts";
import { createCrawlerStore } from "./postgres/crawler-store.ts";
import { createFleetKeys } from "./postgres/fleet-keys.ts";
import { createFrontierStore } from "./postgres/frontier-store.ts";
import { createInvitationStore } from "./postgres/invitation-store.ts";
import { createOperatorTokenStore } from "./postgres/operator-token-store.ts";

export function operatorApiPorts(pool: Pool): Omit<OperatorApiPorts, "version" | "log"> {
  return {
    tokens: createOperatorTokenStore(pool),
    invitations: createInvitationStore(pool),
    keys: createFleetKeys(pool),
    crawlers: createCrawlerStore(pool),
    frontier: createFrontierStore(pool),
    coordinator: async () => await invitingCoordinator(pool),
    secrets: randomSecrets,
    now: () => new Date(),
  };
}

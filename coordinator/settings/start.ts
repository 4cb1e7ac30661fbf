/** The coordinator's settings as operators change them while it runs: read first, followed from its start to its end. */
import type { Pool } from "pg";
import { systemClock } from "#core/clock";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import type { CoordinatorConfig } from "../config.ts";
import { createCrawlerStore } from "../crawlers/crawler-store.ts";
import { createDelegationStore } from "../delegation/store.ts";
import { liveConfig, policiesOf } from "../live-config.ts";
import { createRecrawlPlanStore } from "../recrawl/plan-store.ts";
import type { RoomOptions } from "../start-web.ts";
import type { WebPart } from "../web/actions.ts";
import { FollowedPolicies } from "./current-settings.ts";
import { createPolicySamples } from "./preview/sample-reads.ts";
import type { PreviewPorts } from "./preview/types.ts";
import { policyRoutes } from "./routes.ts";
import { createPolicyStore } from "./settings-store.ts";

export interface PolicyDuties {
  /** The file's settings with the policies in force. */
  readonly config: CoordinatorConfig;
  /** Follows what is changed from now on, and says what this coordinator's file holds. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export async function policyDuties(ports: {
  readonly pool: Pool;
  readonly config: CoordinatorConfig;
  readonly timekeeper: Pick<Timekeeper, "retime">;
  readonly log: Log;
  readonly now: () => Date;
}): Promise<PolicyDuties> {
  const { pool, config, timekeeper, log, now } = ports;
  const store = createPolicyStore(pool);
  const file = policiesOf(config);
  const policies = new FollowedPolicies({ store, log, onChange: () => timekeeper.retime() }, file);
  await policies.read();
  return {
    config: liveConfig(config, policies),
    start: async () => {
      await policies.start();
      await store.stateFile(file, now());
    },
    stop: async () => await policies.stop(),
  };
}

// The pages' part about policies, with its stores.

export function policyPart({ pool, log }: Pick<RoomOptions, "pool" | "log">): WebPart {
  return policyRoutes({ ...previewPorts(pool, log), store: createPolicyStore(pool) });
}

/** What a preview reads with, here and in the command. */
export function previewPorts(pool: Pool, log: Log, now: () => Date = () => new Date()): PreviewPorts {
  return {
    samples: createPolicySamples(pool, now),
    crawlers: createCrawlerStore(pool),
    delegations: createDelegationStore(pool),
    recrawlPlan: async () => await createRecrawlPlanStore(pool).latest(),
    clock: systemClock,
    log,
    now,
  };
}

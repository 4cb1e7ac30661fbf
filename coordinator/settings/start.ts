/** The coordinator's settings as operators change them while it runs: read first, followed from its start to its end. */
import type { Pool } from "pg";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import type { CoordinatorConfig } from "../config.ts";
import { liveConfig, policiesOf } from "../live-config.ts";
import { FollowedPolicies } from "./in-force.ts";
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

/** The coordinator's settings as operators change them: read first, then followed from start to end. */

import { isDeepStrictEqual } from "node:util";
import type { Pool } from "pg";
import { systemClock } from "#core/clock";
import type { Log } from "#core/log";
import type { Timekeeper } from "#core/scheduler";
import { addOperations, type WebPart } from "../../ask/add-operations.ts";
import { createCrawlerStore } from "../../place/crawlers/crawler-store.ts";
import {
  type KnownPolicies,
  knownPolicies,
  liveConfig,
  type PoliciesInForce,
  type PreviewPorts,
  policiesOf,
} from "./change.ts";
import { sampledRounds } from "./preview/round-sample-reads.ts";
import type { PolicySettings } from "./schema.ts";
import { policyOperations } from "./settings-ask.ts";
import { createPolicyStore, type PolicyStore } from "./settings-store.ts";

interface PolicyDuties<Config> {
  /** The file's settings with the policies in force. */
  readonly config: Config;
  /** Follows changes from now on, and records the values in this coordinator's file. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export async function policyDuties<Config extends PolicySettings>(ports: {
  readonly pool: Pool;
  readonly config: Config;
  readonly timekeeper: Pick<Timekeeper, "retime">;
  readonly log: Log;
  readonly now: () => Date;
}): Promise<PolicyDuties<Config>> {
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

// The policy pages with their stores.

export function policyPart({ pool, log }: { readonly pool: Pool; readonly log: Log }): WebPart {
  const ports = { ...previewPorts(pool, log), store: createPolicyStore(pool) };
  return addOperations(policyOperations, { ...ports, previews: { underWay: 0 } });
}

/** The data sources of a preview. The command uses them, too. */
export const previewPorts = (pool: Pool, log: Log): PreviewPorts => ({
  samples: async (most) => await sampledRounds(pool, most),
  crawlers: createCrawlerStore(pool),
  clock: systemClock,
  log,
});

// Keeps the policies in force in a running coordinator: reads them at its start and after every change. While the
// database does not answer, the known ones stay in force.

interface FollowPorts {
  readonly store: Pick<PolicyStore, "read" | "onChange">;
  readonly log: Log;
  /** Called when other policies are in force. */
  readonly onChange: () => void;
}

class FollowedPolicies implements PoliciesInForce {
  readonly #ports: FollowPorts;
  readonly #file: PolicySettings;
  #settings: PolicySettings;
  #turn: Promise<void> = Promise.resolve();
  #notices: { stop(): Promise<void> } | null = null;

  /** `file` has the values that apply where operators changed nothing. */
  constructor(ports: FollowPorts, file: PolicySettings) {
    this.#ports = ports;
    this.#file = file;
    this.#settings = file;
  }

  get settings(): PolicySettings {
    return this.#settings;
  }

  /** Rejects if the database cannot be reached. Bad rows are reported and ignored. */
  async read(): Promise<void> {
    const { store, log, onChange } = this.#ports;
    const known = knownPolicies(await store.read(), this.#file);
    for (const fault of known.ignored) log.warn({ fault }, "a stored policy is ignored");
    if (isDeepStrictEqual(known.settings, this.#settings)) return;
    this.#settings = known.settings;
    log.info({ version: known.version, changed: changedValues(known) }, "policies are in force");
    onChange();
  }

  /** Starts following, beginning with changes since the last read. */
  async start(): Promise<void> {
    this.#notices = await this.#ports.store.onChange(() => this.#readSoon());
    await this.read();
  }

  async stop(): Promise<void> {
    await this.#notices?.stop();
    await this.#turn;
  }

  /** Reads run one after the other, so that an older answer never replaces a newer one. */
  #readSoon(): void {
    const { log } = this.#ports;
    this.#turn = this.#turn
      .then(async () => await this.read())
      .catch((error: unknown) => {
        log.error({ error }, "policies changed, but could not be read; the next change reads them again");
      });
  }
}

function changedValues({ changed }: KnownPolicies): Record<string, unknown> {
  return Object.fromEntries([...changed].map(([name, { value }]) => [name, value]));
}

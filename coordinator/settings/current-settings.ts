/**
 * The policies in force in a running coordinator: read at its start, and again whenever somebody changes them. Where
 * the database does not answer, what was known stays in force.
 */

import { isDeepStrictEqual } from "node:util";
import type { Log } from "#core/log";
import { type KnownPolicies, knownPolicies, type PoliciesInForce, type PolicyStore } from "./change.ts";
import type { PolicySettings } from "./schema.ts";

export interface FollowPorts {
  readonly store: Pick<PolicyStore, "read" | "onChange">;
  readonly log: Log;
  /** Other policies are in force now. */
  readonly onChange: () => void;
}

export class FollowedPolicies implements PoliciesInForce {
  readonly #ports: FollowPorts;
  readonly #file: PolicySettings;
  #settings: PolicySettings;
  #turn: Promise<void> = Promise.resolve();
  #notices: { stop(): Promise<void> } | null = null;

  /** `file`: what holds where nobody has changed anything. */
  constructor(ports: FollowPorts, file: PolicySettings) {
    this.#ports = ports;
    this.#file = file;
    this.#settings = file;
  }

  get settings(): PolicySettings {
    return this.#settings;
  }

  /** Rejects when the database cannot be reached; bad rows are told and ignored. */
  async read(): Promise<void> {
    const { store, log, onChange } = this.#ports;
    const known = knownPolicies(await store.read(), this.#file);
    for (const fault of known.ignored) log.warn({ fault }, "a stored policy is ignored");
    if (isDeepStrictEqual(known.settings, this.#settings)) return;
    this.#settings = known.settings;
    log.info({ version: known.version, changed: changedValues(known) }, "policies are in force");
    onChange();
  }

  /** From now on; what was changed since the last reading is read first. */
  async start(): Promise<void> {
    this.#notices = await this.#ports.store.onChange(() => this.#readSoon());
    await this.read();
  }

  async stop(): Promise<void> {
    await this.#notices?.stop();
    await this.#turn;
  }

  /** One after the other, so that an older answer never follows a newer one. */
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

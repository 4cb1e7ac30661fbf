/**
 * Settings that follow the policies in force. Whoever reads a setting when it is needed follows by itself; whoever
 * keeps its settings from the start is given an object that always reads as they are now.
 */

import type { CoordinatorConfig } from "./config.ts";
import type { PoliciesInForce } from "./settings/change.ts";
import type { PolicySettings } from "./settings/schema.ts";

/** The file's settings, with the sections of the policies as they are in force whenever they are read. */
export function liveConfig(config: CoordinatorConfig, policies: PoliciesInForce): CoordinatorConfig {
  return readAnew((name) => Reflect.get(name in policies.settings ? policies.settings : config, name));
}

/** Each property is read from `now()` when it is asked for. */
export function following<Settings extends object>(now: () => Settings): Settings {
  return readAnew((name) => now()[name as keyof Settings]);
}

/** A copy would stay as it was when it was made, so there is none. */
function readAnew<Settings extends object>(read: (name: string | symbol) => unknown): Settings {
  return new Proxy({} as Settings, {
    get: (_, name) => read(name),
    ownKeys: () => {
      throw new Error("settings that follow the policies are read when they are needed, and never copied");
    },
  });
}

/** The policies of a file, which are in force where nobody has changed any. */
export function policiesOf(config: CoordinatorConfig): PolicySettings {
  const { delegation, probe, balance, recalibration, recrawl, scope, trust, lease, frontier } = config;
  const { changes, retention, pace } = config;
  return {
    ...{ delegation, probe, balance, recalibration, recrawl, scope, trust, lease, frontier },
    ...{ changes, retention, pace },
  };
}

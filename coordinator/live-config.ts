/**
 * Settings that follow the policies in force. Whoever reads a setting when it is needed follows by itself; whoever
 * keeps its settings from the start is given an object that always reads as they are now.
 */

import type { CoordinatorConfig } from "./config.ts";
import type { PoliciesInForce } from "./settings/change.ts";
import type { PolicySettings } from "./settings/schema.ts";

/** The file's settings, with the sections of the policies as they are in force whenever they are read. */
export function liveConfig(config: CoordinatorConfig, policies: PoliciesInForce): CoordinatorConfig {
  const live: CoordinatorConfig = { ...config };
  for (const section of Object.keys(policies.settings) as (keyof PolicySettings)[]) {
    Object.defineProperty(live, section, { get: () => policies.settings[section] });
  }
  return Object.freeze(live);
}

/** Each property is read from `now()` when it is asked for. A copy (`{ ...it }`) is of the moment when it is made. */
export function following<Settings extends object>(now: () => Settings): Settings {
  const followed = {};
  for (const name of Object.keys(now()) as (keyof Settings)[]) {
    Object.defineProperty(followed, name, { enumerable: true, get: () => now()[name] });
  }
  return Object.freeze(followed) as Settings;
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

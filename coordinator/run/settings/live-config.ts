/** The coordinator's settings, in which the policies always have their current values. */
import { readAnew } from "../../core/live-settings.ts";
import type { PoliciesInForce } from "./change.ts";
import { type PolicySettings, policySections } from "./schema.ts";

/** Combines the file's settings with the policies in force at each read. */
export function liveConfig<Config extends PolicySettings>(config: Config, policies: PoliciesInForce): Config {
  return readAnew((name) => Reflect.get(name in policies.settings ? policies.settings : config, name));
}

/** The policies of a file, which hold where no operator changed them. */
export function policiesOf(config: PolicySettings): PolicySettings {
  const sections = Object.keys(policySections) as (keyof PolicySettings)[];
  return Object.fromEntries(sections.map((name) => [name, config[name]])) as unknown as PolicySettings;
}

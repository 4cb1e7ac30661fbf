/** The coordinator's settings, with those that operators change while it runs as they are whenever they are read. */
import { readAnew } from "../../core/live-settings.ts";
import type { PoliciesInForce } from "./change.ts";
import { type PolicySettings, policySections } from "./schema.ts";

/** The file's settings, with the sections of the policies as they are in force whenever they are read. */
export function liveConfig<Config extends PolicySettings>(config: Config, policies: PoliciesInForce): Config {
  return readAnew((name) => Reflect.get(name in policies.settings ? policies.settings : config, name));
}

/** The policies of a file, which are in force where nobody has changed any. */
export function policiesOf(config: PolicySettings): PolicySettings {
  const sections = Object.keys(policySections) as (keyof PolicySettings)[];
  return Object.fromEntries(sections.map((name) => [name, config[name]])) as unknown as PolicySettings;
}

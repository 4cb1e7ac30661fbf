/**
 * What is stored, checked: a row that names no policy, or whose value is out of bounds, is left out and told, and the
 * file's value holds. Whatever stands in the database, there is always a full set of policies.
 */
import { isPolicyName, type PolicyValue } from "./catalogue.ts";
import type { PolicyName } from "./descriptions.ts";
import type { StoredPolicies } from "./policy-ports.ts";
import { valueFault, withChanges } from "./policy-values.ts";
import { type PolicySettings, policySections } from "./schema.ts";

export interface ChangedSetting {
  readonly value: PolicyValue;
  readonly changedAt: Date;
  readonly changedBy: string;
}

export interface KnownPolicies {
  readonly version: number;
  /** The file's values, or the defaults where no coordinator has stated any. */
  readonly file: PolicySettings;
  readonly changed: ReadonlyMap<PolicyName, ChangedSetting>;
  /** What is in force. */
  readonly settings: PolicySettings;
  /** Rows that are ignored, each in a sentence. */
  readonly ignored: readonly string[];
}

/** `file` left out: as the coordinator that started last has stated it. */
export function knownPolicies(
  stored: StoredPolicies,
  file: PolicySettings = statedFile(stored.file),
): KnownPolicies {
  const changed = new Map<PolicyName, ChangedSetting>();
  const ignored: string[] = [];
  for (const { name, value, ...by } of stored.settings) {
    const fault = isPolicyName(name) ? valueFault(name, value) : `${name}: there is no such policy`;
    if (fault === null) changed.set(name as PolicyName, { value: value as PolicyValue, ...by });
    else ignored.push(fault);
  }
  const values = new Map([...changed].map(([name, { value }]) => [name, value]));
  return { version: stored.version, file, changed, settings: withChanges(file, values), ignored };
}

/** Section by section, so that a field of another release costs no more than its section. */
function statedFile(file: unknown): PolicySettings {
  const stated = typeof file === "object" && file !== null ? (file as Record<string, unknown>) : {};
  const sections = Object.entries(policySections).map(([name, schema]) => {
    const checked = schema.safeParse(stated[name] ?? {});
    return [name, checked.success ? checked.data : schema.parse({})];
  });
  return Object.fromEntries(sections) as PolicySettings;
}

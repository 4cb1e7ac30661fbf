/**
 * An operator changes policies: what was asked is weighed (is each value possible, do they fit together, has anybody
 * else changed something meanwhile), and saved as one version that can be taken back.
 */
import { isPolicyName, type PolicyValue } from "./catalogue.ts";
import { contradictionsIn } from "./contradictions.ts";
import type { PolicyName } from "./descriptions.ts";
import { type KnownPolicies, knownPolicies } from "./known-policies.ts";
import type { ChangedPolicy, PolicyStore, PolicyVersion } from "./policy-ports.ts";
import { valueFault, valueIn, valueText, withChanges } from "./policy-values.ts";
import type { PolicyStep } from "./preview/preview.ts";

export interface AskedPolicies {
  /** By name; null: back to the file's value. */
  readonly values: Readonly<Record<string, PolicyValue | null>>;
  /** What this version changed goes back to what it was before; `values` win. Null: no version is taken back. */
  readonly takeBack: number | null;
  /** What the asker has seen; null: whatever is there now. */
  readonly basedOn: number | null;
}

export interface ChangeFault {
  readonly type: "fault";
  readonly status: 404 | 409 | 422;
  readonly words: string;
}

export interface WeighedChange {
  readonly type: "weighed";
  readonly basedOn: number;
  readonly takesBack: number | null;
  readonly changes: readonly ChangedPolicy[];
  /** In force before and after, in words for each change. */
  readonly step: PolicyStep;
  readonly known: KnownPolicies;
}

export async function weighPolicies(
  asked: AskedPolicies,
  store: Pick<PolicyStore, "read" | "version">,
): Promise<WeighedChange | ChangeFault> {
  const known = knownPolicies(await store.read());
  if (asked.basedOn !== null && asked.basedOn !== known.version) return await meanwhile(known, store);
  const taken = asked.takeBack === null ? null : await store.version(asked.takeBack);
  if (asked.takeBack !== null && taken === null) {
    return { type: "fault", status: 404, words: `There is no version ${asked.takeBack} of the policies.` };
  }
  const values = { ...formerValues(taken), ...asked.values };
  const faults = Object.entries(values).flatMap(([name, value]) => faultOf(name, value) ?? []);
  if (faults.length > 0) return impossible(faults);
  const changes = changesOf(values as Readonly<Record<PolicyName, PolicyValue | null>>, known);
  if (changes.length === 0) {
    return { type: "fault", status: 422, words: "Nothing would change: these values are in force already." };
  }
  const names = new Set(changes.map(({ name }) => name));
  const after = withChanges(
    known.settings,
    new Map(changes.map(({ name, after: value }) => [name, value ?? valueIn(known.file, name)])),
  );
  const contradictions = contradictionsIn(after, names);
  if (contradictions.length > 0) return impossible(contradictions);
  const step = { before: known.settings, after, names };
  return { type: "weighed", basedOn: known.version, takesBack: asked.takeBack, changes, step, known };
}

/** Null: somebody else was faster. */
export async function savePolicies(
  { changes, takesBack, basedOn }: WeighedChange,
  by: { readonly name: string; readonly words: string; readonly now: Date },
  store: Pick<PolicyStore, "save" | "read" | "version">,
): Promise<number | ChangeFault> {
  const version = { changedAt: by.now, changedBy: by.name, words: by.words, takesBack, changes };
  const saved = await store.save(version, basedOn);
  return saved ?? (await meanwhile(knownPolicies(await store.read()), store));
}

/** `λ, what a probe must save: 2 ms → 0.5 ms`, of what was and will be in force. */
export function changeWords({ changes, step }: Pick<WeighedChange, "changes" | "step">): string[] {
  return changes.map(({ name }) => {
    const [before, after] = [valueIn(step.before, name), valueIn(step.after, name)];
    return `${name}: ${valueText(name, before)} → ${valueText(name, after)}`;
  });
}

/** By name, for the audit log. */
export function valuesOf(
  { changes, step }: Pick<WeighedChange, "changes" | "step">,
  when: "before" | "after",
): Record<string, PolicyValue> {
  return Object.fromEntries(changes.map(({ name }) => [name, valueIn(step[when], name)]));
}

function formerValues(taken: PolicyVersion | null): Record<string, PolicyValue | null> {
  return Object.fromEntries((taken?.changes ?? []).map(({ name, before }) => [name, before]));
}

function faultOf(name: string, value: PolicyValue | null): string | null {
  if (!isPolicyName(name)) return `${name.slice(0, 60)}: there is no such policy`;
  return value === null ? null : valueFault(name, value);
}

/** A value that the file has anyway is the file's: a later change of the file then holds. */
function changesOf(
  values: Readonly<Record<PolicyName, PolicyValue | null>>,
  { changed, file, settings }: KnownPolicies,
): ChangedPolicy[] {
  return (Object.entries(values) as [PolicyName, PolicyValue | null][]).flatMap(([name, value]) => {
    const before = changed.get(name)?.value ?? null;
    if (value !== null && value === valueIn(settings, name)) return [];
    const after = value === valueIn(file, name) ? null : value;
    return before === after ? [] : [{ name, before, after }];
  });
}

const impossible = (faults: readonly string[]): ChangeFault => ({
  type: "fault",
  status: 422,
  words: `${faults.slice(0, 10).join(". ")}. Nothing was changed.`,
});

async function meanwhile(
  { version }: KnownPolicies,
  store: Pick<PolicyStore, "version">,
): Promise<ChangeFault> {
  const latest = await store.version(version);
  const who = latest === null ? "Somebody" : latest.changedBy;
  const what = latest?.changes.map(({ name }) => name).join(", ") ?? "the policies";
  return {
    type: "fault",
    status: 409,
    words: `${who} has changed ${what} meanwhile (version ${version}). Look at the policies as they are now, and preview again.`,
  };
}

/** The policies as they are shown to people and programs: value, default, bounds, who changed what, and the past. */
import { type PolicyDefinition, policyGroups, setAtStart, valueIn } from "./catalogue.ts";
import { changeWords, type KnownPolicies, knownPolicies, valuesOf, type WeighedChange } from "./change.ts";
import type { PoliciesAnswer, PolicyEffect, PreviewAnswer, ShownPolicy } from "./settings-api.ts";
import type { PolicyStore } from "./settings-store.ts";

/** Versions that are shown. */
const shownVersions = 50;

export async function policiesAnswer(
  store: Pick<PolicyStore, "read" | "history">,
  versions: number = shownVersions,
): Promise<PoliciesAnswer> {
  const [stored, history] = [await store.read(), await store.history(versions)];
  const known = knownPolicies(stored);
  return {
    version: known.version,
    groups: policyGroups.map(({ name, title, policies }) => ({
      ...{ name, title },
      policies: policies.map((policy) => shownPolicy(policy, known)),
    })),
    setAtStart,
    history: history.map((version) => ({ ...version, changedAt: version.changedAt.toISOString() })),
    ignored: known.ignored,
  };
}

export interface PolicySearch {
  /** Words that all have to stand in its name, title, help or group; empty: any. */
  readonly text: string;
  /** Its value differs from the default. */
  readonly changedOnly: boolean;
  readonly basicOnly: boolean;
}

/** Without what was not asked for; a group that has nothing left is left out. */
export function searchedPolicies(answer: PoliciesAnswer, search: PolicySearch): PoliciesAnswer {
  const words = search.text.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = answer.groups.map((group) => ({
    ...group,
    policies: group.policies.filter((policy) => {
      const text = `${policy.name} ${policy.title} ${policy.help} ${group.title}`.toLowerCase();
      const isAsked = words.every((word) => text.includes(word));
      return isAsked && (policy.basic || !search.basicOnly) && (isChanged(policy) || !search.changedOnly);
    }),
  }));
  return { ...answer, groups: groups.filter(({ policies }) => policies.length > 0) };
}

export const isChanged = ({ value, default: usual }: ShownPolicy): boolean => value !== usual;

/** For whoever may not read the audit log: what was changed, and not the names of the people who did. */
export function withoutNames(answer: PoliciesAnswer): PoliciesAnswer {
  const unnamed = <Changed extends { readonly changedBy: string | null }>(one: Changed): Changed =>
    one.changedBy === null ? one : { ...one, changedBy: "an operator" };
  return {
    ...answer,
    groups: answer.groups.map((group) => ({ ...group, policies: group.policies.map(unnamed) })),
    history: answer.history.map(unnamed),
  };
}

function shownPolicy(policy: PolicyDefinition, { settings, file, changed }: KnownPolicies): ShownPolicy {
  const { group: _group, ...shown } = policy;
  const change = changed.get(policy.name);
  return {
    ...shown,
    value: valueIn(settings, policy.name),
    fileValue: valueIn(file, policy.name),
    changedAt: change?.changedAt.toISOString() ?? null,
    changedBy: change?.changedBy ?? null,
  };
}

export function previewAnswer(weighed: WeighedChange, effects: readonly PolicyEffect[]): PreviewAnswer {
  const { basedOn, takesBack, changes, step } = weighed;
  return {
    basedOn,
    takesBack,
    changes: changes.map(({ name, after }) => ({
      name,
      before: valueIn(step.before, name),
      after: valueIn(step.after, name),
      toFile: after === null,
    })),
    effects,
  };
}

/** What the audit log is told of a change. */
export function auditedChange(weighed: WeighedChange, words: string) {
  const [first, ...more] = weighed.changes;
  const taken = weighed.takesBack === null ? "" : `reverts version ${weighed.takesBack}: `;
  const why = words === "" ? "" : `; ${words}`;
  return {
    action: "policy-changed",
    target: more.length === 0 ? first!.name : null,
    words: `${taken}${changeWords(weighed).join("; ")}${why}`,
    before: valuesOf(weighed, "before"),
    after: valuesOf(weighed, "after"),
  };
}

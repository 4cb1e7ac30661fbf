/** Policies as they are typed, and as a terminal shows them: all of them as a table, one alone with its help. */

import {
  isPolicyName,
  type PolicyValue,
  policyOf,
  rangeText,
  unknownPolicy,
  valueFromText,
  valueText,
} from "#coordinator/settings/catalogue";
import type { PolicyName } from "#coordinator/settings/schema";
import type { PoliciesAnswer, ShownPolicy } from "#coordinator/settings/settings-api";
import { UsageError } from "#core/errors";
import { printable } from "#core/terminal-text";
import { formatTable } from "./output.ts";

/** `name=value`; without a value, back to the file's. */
export function valuesIn(given: readonly string[]): Record<string, PolicyValue | null> {
  return Object.fromEntries(
    given.map((one) => {
      const at = one.indexOf("=");
      if (at < 1) throw new UsageError(`${one}: write NAME=VALUE, such as delegation.lambdaMs=0.5`);
      const [name, text] = [one.slice(0, at), one.slice(at + 1)];
      if (!isPolicyName(name)) throw new UsageError(`${unknownPolicy(name)}: nearcrawl policy show`);
      return [name, text === "" ? null : valueFromText(name, text)];
    }),
  );
}

export function groupedPolicies(
  { groups, version, ignored }: PoliciesAnswer,
  options: { readonly q?: unknown },
): string {
  const all = groups.flatMap(({ policies }) => policies);
  const named = all.find(({ name }) => name === options.q);
  if (named !== undefined) return policyText(named);
  const table = formatTable(
    [{ title: "policy" }, { title: "in force" }, { title: "default" }, { title: "changed by" }],
    all.map((one) => [
      one.name,
      spoken(one.name, one.value),
      spoken(one.name, one.default),
      changedText(one),
    ]),
  );
  const faults = ignored.map((fault) => `ignored: ${printable(fault, 300)}`);
  const changes = version === 0 ? "nothing has been changed" : `version ${version}`;
  return [table, "", ...faults, `${changes} (nearcrawl policy show NAME says what one does)`].join("\n");
}

function policyText(policy: ShownPolicy): string {
  const { name, title, help, value, fileValue, origin } = policy;
  return [
    `${title}\n${help}\n`,
    `in force    ${spoken(name, value)}`,
    `file        ${spoken(name, fileValue)}`,
    `default     ${spoken(name, policy.default)} (${origin})`,
    `may be      ${rangeText(policyOf(name as PolicyName))}`,
    `changed     ${changedText(policy) || "by nobody"}`,
  ].join("\n");
}

const changedText = ({ changedBy, changedAt }: ShownPolicy) =>
  changedBy === null ? "" : `${printable(changedBy, 60)}, ${changedAt!.slice(0, 16).replace("T", " ")}`;

const spoken = (name: string, value: PolicyValue) => valueText(name as PolicyName, value);

/** Policies, their history, and what a change would come to, as text for a terminal. */
import type { PoliciesAnswer, PreviewAnswer, ShownPolicy, ShownVersion } from "#coordinator/settings/answer";
import { type PolicyValue, policyOf, rangeText, valueText } from "#coordinator/settings/catalogue";
import type { PolicyName } from "#coordinator/settings/descriptions";
import { differenceText, figureText } from "#coordinator/settings/page";
import type { PolicyEffect } from "#coordinator/settings/preview/types";
import { formatTable } from "./output.ts";
import { printable } from "./printable.ts";

const mostWords = 300;

export function policiesText({ groups, version, ignored }: PoliciesAnswer): string {
  const rows = groups.flatMap(({ policies }) => policies).map(policyRow);
  const table = formatTable(
    [{ title: "policy" }, { title: "in force" }, { title: "default" }, { title: "changed by" }],
    rows,
  );
  const faults = ignored.map((fault) => `ignored: ${printable(fault, mostWords)}`);
  const changes = version === 0 ? "nobody has changed anything" : `version ${version}`;
  return [table, "", ...faults, `${changes} (nearcrawl policy show NAME tells what one does)`].join("\n");
}

function policyRow({ name, value, default: usual, changedBy, changedAt }: ShownPolicy): string[] {
  const who = changedBy === null ? "" : `${printable(changedBy, 60)}, ${minute(changedAt!)}`;
  return [name, spoken(name, value), spoken(name, usual), who];
}

export function policyText(policy: ShownPolicy): string {
  const { name, title, help, value, fileValue, origin, changedBy, changedAt } = policy;
  return [
    title,
    help,
    "",
    `in force    ${spoken(name, value)}`,
    `file        ${spoken(name, fileValue)}`,
    `default     ${spoken(name, policy.default)} (${origin})`,
    `may be      ${rangeText(policyOf(name as PolicyName))}`,
    `changed     ${changedBy === null ? "by nobody" : `by ${printable(changedBy, 60)}, ${minute(changedAt!)}`}`,
  ].join("\n");
}

export function historyText(history: readonly ShownVersion[]): string {
  if (history.length === 0) return "no policy has been changed yet: nearcrawl policy set NAME=VALUE";
  return formatTable(
    [
      { title: "version", align: "right" },
      { title: "when (UTC)" },
      { title: "who" },
      { title: "what" },
      { title: "why" },
    ],
    history.map(({ version, changedAt, changedBy, words, takesBack, changes }) => [
      String(version),
      minute(changedAt),
      printable(changedBy, 60),
      changes
        .map(({ name, before, after }) => `${name}: ${spokenOr(name, before)} → ${spokenOr(name, after)}`)
        .join("; "),
      [takesBack === null ? "" : `takes back ${takesBack}`, printable(words, mostWords)]
        .filter((part) => part !== "")
        .join(": "),
    ]),
  );
}

export function previewText({ changes, effects }: PreviewAnswer): string {
  const lines = changes.map(
    ({ name, before, after, toFile }) =>
      `${name}: ${spoken(name, before)} → ${spoken(name, after)}${toFile ? " (the file's value)" : ""}`,
  );
  return [...lines, ...effects.map(effectText), "\nnothing is saved: nearcrawl policy set …"].join("\n");
}

function effectText({ title, figures, basis, limits }: PolicyEffect): string {
  const table = formatTable(
    [
      { title },
      { title: "now", align: "right" },
      { title: "then", align: "right" },
      { title: "difference", align: "right" },
    ],
    figures.map(({ words, unit, before, after }) => [
      words,
      figureText(before, unit),
      figureText(after, unit),
      differenceText(before === null || after === null ? null : after - before, unit),
    ]),
  );
  return ["", figures.length === 0 ? title : table, basis, ...limits.map((limit) => `- ${limit}`)].join("\n");
}

const spoken = (name: string, value: PolicyValue) => valueText(name as PolicyName, value);
const spokenOr = (name: PolicyName, value: PolicyValue | null) =>
  value === null ? "the file's value" : valueText(name, value);
const minute = (iso: string) => iso.slice(0, 16).replace("T", " ");

/** Policies as people type them: the arguments of `nearcrawl policy` and the form's fields. */
import { UsageError } from "#core/errors";
import type { Command } from "../../ask/operation.ts";
import { isPolicyName, type PolicyValue, unknownPolicy, valueFromText } from "./catalogue.ts";

export const policyCommands = {
  read: [
    {
      ...{ name: "policy show", takes: "q", part: "in-force" },
      says: "every policy, or those with a word in name, title or help: what is in force, the default, and who changed it",
      group: {
        says: "settings of the fleet's behaviour; a change takes effect at once in every running coordinator",
        help: `

Examples:
  nearcrawl policy show --show basic
  nearcrawl policy show delegation.lambdaMs
  nearcrawl policy preview delegation.lambdaMs=0.5
  nearcrawl policy set delegation.lambdaMs=0.5 --why 'news sites'
  nearcrawl policy reset delegation.lambdaMs
  nearcrawl policy take-back 3`,
      },
    },
    {
      ...{ name: "policy history", without: "q show", part: "history" },
      says: "who changed what, when and why, the latest first",
    },
  ],
  preview: [
    {
      ...{ name: "policy preview", takes: "name=value..." },
      says: "preview the effect of a change, computed from the crawl so far; nothing is saved",
      body: (words) => ({ values: valuesIn(words) }),
    },
  ],
  change: [
    {
      ...{ name: "policy set", takes: "name=value...", named: { words: "why" } },
      says: "change policies; all of them or none. NAME= alone: back to the file's value",
      body: (words, { why = "" }) => ({ values: valuesIn(words), basedOn: null, words: why }),
    },
    {
      ...{ name: "policy reset", takes: "name...", named: { words: "why" } },
      says: "back to the value of the coordinator's file, or the default where it has none",
      body: (words, { why = "" }) => ({
        ...{ values: Object.fromEntries(words.map((name) => [name, null])), basedOn: null, words: why },
      }),
    },
    {
      ...{ name: "policy take-back", takes: "version", named: { words: "why" } },
      says: "revert what a version changed",
      body: ([taken], { why = "" }) => ({ values: {}, takeBack: Number(taken), basedOn: null, words: why }),
    },
  ],
} satisfies Readonly<Record<string, readonly Command[]>>;

/** Parses `name=value` arguments; a name without a value resets to the file's. */
function valuesIn(given: readonly string[]): Record<string, PolicyValue | null> {
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

/** Parses fields named by policy; `back` and `back:NAME` reset to the file's value. */
export function formBody(fields: Readonly<Record<string, string>>) {
  const values: Record<string, PolicyValue | null> = {};
  const back = fields.back;
  for (const [field, text] of Object.entries(fields)) {
    if (back === undefined && isPolicyName(field)) values[field] = valueFromText(field, text);
    if (field.startsWith("back:")) values[field.slice("back:".length)] = null;
  }
  if (back !== undefined) values[back] = null;
  return {
    values,
    basedOn: wholeNumber(fields["based-on"]),
    takeBack: fields["take-back"] === undefined ? null : wholeNumber(fields["take-back"]),
  };
}

/** Other text is left to the body's schema to reject. */
const wholeNumber = (text: string | undefined) => (/^\d{1,10}$/.test(text ?? "") ? Number(text) : -1);

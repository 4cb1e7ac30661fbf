/** Policies as values: read from settings, put over them, checked by the one schema, and spoken. */
import { type PolicyDefinition, type PolicyKind, type PolicyValue, policyOf, schemaOf } from "./catalogue.ts";
import type { PolicyName } from "./descriptions.ts";
import type { PolicySettings } from "./schema.ts";

/** Over the file's values, by name. */
export type PolicyChanges = ReadonlyMap<PolicyName, PolicyValue>;

export function valueIn(settings: PolicySettings, name: PolicyName): PolicyValue {
  let at: unknown = settings;
  for (const key of name.split(".")) at = (at as Record<string, unknown>)[key];
  return at as PolicyValue;
}

/** The settings with these values in place of theirs; what has not changed is the same object. */
export function withChanges(settings: PolicySettings, changes: PolicyChanges): PolicySettings {
  let changed: unknown = settings;
  for (const [name, value] of changes) changed = withValue(changed, name.split("."), value);
  return changed as PolicySettings;
}

function withValue(at: unknown, [key, ...rest]: readonly string[], value: PolicyValue): unknown {
  if (key === undefined) return value;
  const record = at as Readonly<Record<string, unknown>>;
  return Object.freeze({ ...record, [key]: withValue(record[key], rest, value) });
}

/** Null: it is good. Otherwise why not, with the value. */
export function valueFault(name: PolicyName, value: unknown): string | null {
  const checked = schemaOf(name).safeParse(value);
  if (checked.success) return null;
  return `${name}: ${shown(value)} is not ${rangeText(policyOf(name))}`;
}

/** Of what a person typed; a text where it means nothing. */
export function valueFromText(name: PolicyName, text: string): PolicyValue {
  const { kind } = policyOf(name);
  const trimmed = text.trim();
  if (kind.type === "yes-no") return yesNo[trimmed.toLowerCase()] ?? trimmed;
  if (kind.type === "choice") return trimmed;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed) ? Number(trimmed) : trimmed;
}

const yesNo: Readonly<Record<string, boolean>> = { yes: true, true: true, no: false, false: false };

/** `a number from 0 to 1000`, `one of nearest, random`. */
export function rangeText({ kind }: PolicyDefinition): string {
  if (kind.type === "yes-no") return "yes or no";
  if (kind.type === "choice") return `one of ${kind.options.join(", ")}`;
  const what = kind.whole ? "a whole number" : "a number";
  if (kind.above) return `${what} above ${kind.least}, ${numberText(kind.most)} at most`;
  return `${what} from ${numberText(kind.least)} to ${numberText(kind.most)}`;
}

/** `0 to 1,000`, `above 0, to 86,400`. */
export function shortRange({ above, least, most }: Extract<PolicyKind, { type: "number" }>): string {
  const from = above ? `above ${numberText(least)},` : numberText(least);
  return `${from} to ${numberText(most)}`;
}

/** `2 ms`, `0.01 of its pages`, `yes`. */
export function valueText(name: PolicyName, value: PolicyValue): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  const { unit } = policyOf(name);
  return unit === null ? numberText(value) : `${numberText(value)} ${unit}`;
}

const grouped = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 6 });

function numberText(value: number): string {
  return grouped.format(value);
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

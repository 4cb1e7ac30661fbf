/** Every policy with its texts, bounds and default; and the settings that cannot change at run time, with where they are set. */
import { z } from "zod";
import { UsageError } from "#core/errors";
import type { Command } from "../../ask/operation.ts";
import { type PolicyWords, policiesIn } from "../../core/policy.ts";
import { type PolicyName, type PolicySectionName, type PolicySettings, policySections } from "./schema.ts";

export type PolicyValue = number | string | boolean;

export type PolicyKind =
  | {
      readonly type: "number";
      readonly whole: boolean;
      readonly least: number;
      /** Whether the value must be above `least` rather than at least that. */
      readonly above: boolean;
      readonly most: number;
    }
  | { readonly type: "choice"; readonly options: readonly string[] }
  | { readonly type: "yes-no" };

export interface PolicyDefinition extends Omit<PolicyWords, "replayed" | "basic"> {
  readonly name: PolicyName;
  readonly group: PolicySectionName;
  /** Whether it is one of the dozen policies that are usually changed. */
  readonly basic: boolean;
  readonly kind: PolicyKind;
  readonly default: PolicyValue;
}

interface PolicyGroup {
  readonly name: PolicySectionName;
  readonly title: string;
  readonly policies: readonly PolicyDefinition[];
}

const groupTitles: Readonly<Record<PolicySectionName, string>> = {
  delegation: "Delegation",
  probe: "Probes and their pace",
  balance: "Balance",
  recalibration: "Recalibration",
  recrawl: "Recrawl",
  scope: "Scope",
  trust: "Trust",
  lease: "Leases",
  frontier: "Order of the frontier",
  changes: "Change feed",
  retention: "Retention",
  pace: "Pace of crawlers",
};

const sections = Object.entries(groupTitles).map(([key, title]) => {
  const name = key as PolicySectionName;
  const section = policySections[name];
  return { name, title, defaults: { [name]: section.parse({}) }, settings: policiesIn(section, name) };
});

const settingOf = new Map(
  sections.flatMap(({ settings }) => settings.map((setting) => [setting.name as PolicyName, setting])),
);

/** The schema of the value without a default, so that a missing value is invalid. */
const schemaOf = (name: PolicyName): z.ZodType => settingOf.get(name)!.schema;

/** Whether a preview replays the latest rounds to show the effect of this policy. */
export const isReplayed = (name: PolicyName): boolean => settingOf.get(name)!.replayed === true;

function kindOf(schema: z.ZodType): PolicyKind {
  const json = z.toJSONSchema(schema) as {
    readonly type?: string;
    readonly enum?: readonly string[];
    readonly minimum?: number;
    readonly exclusiveMinimum?: number;
    readonly maximum?: number;
  };
  if (json.enum) return { type: "choice", options: json.enum };
  if (json.type === "boolean") return { type: "yes-no" };
  const least = json.minimum ?? json.exclusiveMinimum ?? 0;
  const above = json.exclusiveMinimum !== undefined;
  return { type: "number", whole: json.type === "integer", least, above, most: json.maximum! };
}

function valueAt(settings: unknown, name: string): PolicyValue {
  let at = settings;
  for (const key of name.split(".")) at = (at as Record<string, unknown>)[key];
  return at as PolicyValue;
}

export const policyGroups: readonly PolicyGroup[] = sections.map(
  ({ name: group, title, defaults, settings }) => ({
    name: group,
    title,
    policies: settings.map(({ name, schema, title, help, unit, origin, basic = false }) => ({
      ...{ name: name as PolicyName, group, title, help, unit, origin, basic },
      kind: kindOf(schema),
      default: valueAt(defaults, name),
    })),
  }),
);

const definitions = new Map(
  policyGroups.flatMap(({ policies }) => policies).map((definition) => [definition.name, definition]),
);

export const policyNamesInOrder: readonly PolicyName[] = [...definitions.keys()];

export function policyOf(name: PolicyName): PolicyDefinition {
  return definitions.get(name)!;
}

export function isPolicyName(name: string): name is PolicyName {
  return definitions.has(name as PolicyName);
}

/**
 * Settings that are read once, at the start, from the coordinator's file (`nearcrawl coordinator --config FILE`). The
 * name of a section stands for all of its settings.
 */
export const setAtStart: readonly { readonly names: readonly string[]; readonly why: string }[] = [
  {
    names: [
      ...["delegation.thresholdMs", "delegation.concurrentRounds", "delegation.getFirstFromUrls"],
      ...["probe.tries", "probe.deadlineMs", "probe.pace.perCrawlerAtOnce", "probe.pace.atOnce"],
      ...["balance.everySeconds", "balance.movesPerPass"],
      ...["recalibration.slowerThanFactor", "recalibration.timesInARow", "recalibration.everySeconds"],
      ...["recrawl.groups", "recrawl.encourageRate", "recrawl.smallestMultiple", "recrawl.biggestMultiple"],
      ...["recrawl.visitsPerChange", "recrawl.usualChangesPerDay", "recrawl.everySeconds"],
      ...["trust.newcomerShare", "trust.threshold"],
      ...["lease.seconds", "lease.urlsPerHost", "lease.hostsPerRequest"],
      ...["frontier.worthShare", "frontier.linkTypeChecks", "pace.everySeconds"],
    ],
    why: "they suit every fleet that was measured, and nobody turns them while it runs",
  },
  {
    names: ["listen", "tls", "behindProxy", "publicUrl"],
    why: "ports are opened once",
  },
  {
    names: ["delegation.seed", "delegation.settleSeconds", "delegation.expectedCrawlers"],
    why: "they govern the first minutes after a start",
  },
  {
    names: ["allowSpecialPurpose", "resolvers"],
    why: "results of the old value would mix with those of the new",
  },
  {
    names: ["heartbeatSeconds", "departureSeconds", "userAgent", "contact", "signRequests", "signingKeyDays"],
    why: "crawlers receive them as they connect",
  },
  {
    names: ["lease.addressRestSeconds"],
    why: "addresses that rest now keep the old value",
  },
  {
    names: [
      "trust.newcomerPages",
      "trust.watchedShare",
      "trust.watchedPages",
      "trust.slotSeconds",
      "trust.alteredShare",
      "trust.refetchPages",
    ],
    why: "the threshold was tuned together with them (test/bench/results/trust.md)",
  },
  {
    names: ["parent", "coordinators"],
    why: "ownership is agreed with the parent at the first exchange",
  },
  {
    names: ["domainSets"],
    why: "hosts outside would otherwise come and go with every change; crawlers' own sets can be changed at any time",
  },
  { names: ["alerts"], why: "its secrets are read once, from files and the environment" },
  { names: ["access.anonymous"], why: "access without a sign-in should not change casually" },
  { names: ["registry"], why: "it governs what this machine may read and run" },
  {
    names: ["search"],
    why: "it depends on the memory of the coordinator's machine",
  },
  {
    names: ["backup", "databaseGigabytes"],
    why: "they depend on the database's machine",
  },
  { names: ["finer.everySeconds", "accuracy.subnetsPerHour", "logLevel"], why: "they are not urgent" },
];

/** Says why a name is no policy: there is none of that name, or it is a setting that is read at the start. */
export function unknownPolicy(name: string): string {
  const isInFile = setAtStart.some(({ names }) =>
    names.some((known) => name === known || name.startsWith(`${known}.`)),
  );
  const why = isInFile ? "it is read at the start, from the coordinator's file" : "there is no such policy";
  return `${name.slice(0, 60)}: ${why}`;
}

// Policies as values: read from settings, applied to them, validated by the schema, and formatted.

type PolicyChanges = ReadonlyMap<PolicyName, PolicyValue>;

export const valueIn = (settings: PolicySettings, name: PolicyName): PolicyValue => valueAt(settings, name);

/** Returns the settings with these values. A section that does not change is the same object. */
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

/** Returns null if the value is valid, otherwise why not, quoting it. */
export function valueFault(name: PolicyName, value: unknown): string | null {
  const checked = schemaOf(name).safeParse(value);
  if (checked.success) return null;
  return `${name}: ${shown(value)} is not ${rangeText(policyOf(name))}`;
}

/** Parses typed text. Returns the text itself if it cannot be parsed. */
export function valueFromText(name: PolicyName, text: string): PolicyValue {
  const { kind } = policyOf(name);
  const trimmed = text.trim();
  if (kind.type === "yes-no") return yesNo[trimmed.toLowerCase()] ?? trimmed;
  if (kind.type === "choice") return trimmed;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed) ? Number(trimmed) : trimmed;
}

const yesNo: Readonly<Record<string, boolean>> = { yes: true, true: true, no: false, false: false };

export function rangeText({ kind }: PolicyDefinition): string {
  if (kind.type === "yes-no") return "yes or no";
  if (kind.type === "choice") return `one of ${kind.options.join(", ")}`;
  const what = kind.whole ? "a whole number" : "a number";
  if (kind.above) return `${what} above ${kind.least}, ${numberText(kind.most)} at most`;
  return `${what} from ${numberText(kind.least)} to ${numberText(kind.most)}`;
}

export function shortRange({ above, least, most }: Extract<PolicyKind, { type: "number" }>): string {
  const from = above ? `above ${numberText(least)},` : numberText(least);
  return `${from} to ${numberText(most)}`;
}

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

/** Parses `name=value` arguments. A name alone resets the policy to the file's value. */
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

/** Parses fields named after policies. `back` and `back:NAME` reset to the file's value. */
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

/** Returns -1 for any other text, which the body's schema rejects. */
const wholeNumber = (text: string | undefined) => (/^\d{1,10}$/.test(text ?? "") ? Number(text) : -1);

/**
 * A change of policies by an operator. It is checked (is each value possible, do they fit together, has somebody else
 * changed something meanwhile) and saved as one version, which can be undone.
 */

import type { AlarmClock } from "#core/clock";
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import { readAnew } from "../../core/policy.ts";
import { priorityLimitsFault } from "../../crawl/recrawl/priority-groups.ts";
import type { CrawlerStore } from "../../place/crawlers/crawler-store.ts";
import type { Placement } from "../../place/delegation/placement.ts";
import {
  isPolicyName,
  type PolicyValue,
  unknownPolicy,
  valueFault,
  valueIn,
  valueText,
  withChanges,
} from "./catalogue.ts";
import { type PolicyName, type PolicySettings, policySections } from "./schema.ts";
import type { ChangedPolicy, PolicyStore, PolicyVersion, StoredPolicies } from "./settings-store.ts";

interface AskedPolicies {
  /** Values by policy name. `null` resets to the file's value. */
  readonly values: Readonly<Record<string, PolicyValue | null>>;
  /** Undoes this version's changes, except where `values` say otherwise. `null` undoes no version. */
  readonly takeBack: number | null;
  /** The version on which the asker based the change. `null` means the current one. */
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
  /** The settings before and after, with a text for each change. */
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
    return { type: "fault", status: 422, words: "Nothing would change: these values are already in force." };
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

/** Returns the new version, or a fault if somebody else saved first. */
export async function savePolicies(
  { changes, takesBack, basedOn }: WeighedChange,
  by: { readonly name: string; readonly words: string; readonly now: Date },
  store: Pick<PolicyStore, "save" | "read" | "version">,
): Promise<number | ChangeFault> {
  const version = { changedAt: by.now, changedBy: by.name, words: by.words, takesBack, changes };
  const saved = await store.save(version, basedOn);
  return saved ?? (await meanwhile(knownPolicies(await store.read()), store));
}

/** Lists the changes, for example `Probe threshold (λ): 2 ms → 0.5 ms`. */
export function changeWords({ changes, step }: Pick<WeighedChange, "changes" | "step">): string[] {
  return changes.map(({ name }) => {
    const [before, after] = [valueIn(step.before, name), valueIn(step.after, name)];
    return `${name}: ${valueText(name, before)} → ${valueText(name, after)}`;
  });
}

/** Values by policy name, for the audit log. */
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
  if (!isPolicyName(name)) return unknownPolicy(name);
  return value === null ? null : valueFault(name, value);
}

/** If a value equals the file's, stores a reset instead, so that later changes of the file apply. */
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
    words: `${who} has changed ${what} in the meantime (version ${version}). Check the current policies and preview again.`,
  };
}

// Validates stored policies. A row with an unknown name or a value out of bounds is ignored and reported, and the
// file's value applies. The result is always a full set of policies.

interface ChangedSetting {
  readonly value: PolicyValue;
  readonly changedAt: Date;
  readonly changedBy: string;
}

export interface KnownPolicies {
  readonly version: number;
  /** The file's values, or the defaults if no coordinator has stated any. */
  readonly file: PolicySettings;
  readonly changed: ReadonlyMap<PolicyName, ChangedSetting>;
  readonly settings: PolicySettings;
  readonly ignored: readonly string[];
}

/** `file`: the file's values. Default: those that the coordinator that started last has stated. */
export function knownPolicies(
  stored: StoredPolicies,
  file: PolicySettings = statedFile(stored.file),
): KnownPolicies {
  const changed = new Map<PolicyName, ChangedSetting>();
  const ignored: string[] = [];
  for (const { name, value, ...by } of stored.settings) {
    const fault = isPolicyName(name)
      ? valueFault(name, value)
      : `${unknownPolicy(name)}; ${JSON.stringify(value)} was stored`;
    if (fault === null) changed.set(name as PolicyName, { value: value as PolicyValue, ...by });
    else ignored.push(fault);
  }
  const values = new Map([...changed].map(([name, { value }]) => [name, value]));
  return { version: stored.version, file, changed, settings: withChanges(file, values), ignored };
}

/** Parses section by section, so that an unknown field of another release invalidates only its section. */
function statedFile(file: unknown): PolicySettings {
  const stated = typeof file === "object" && file !== null ? (file as Record<string, unknown>) : {};
  const sections = Object.entries(policySections).map(([name, schema]) => {
    const checked = schema.safeParse(stated[name] ?? {});
    return [name, checked.success ? checked.data : schema.parse({})];
  });
  return Object.fromEntries(sections) as PolicySettings;
}

// Policies that operators change while coordinators run: what is in force, what is stored, and who changed it when.

/** The file's values with the operators' changes. Read it again for each use. */
export interface PoliciesInForce {
  readonly settings: PolicySettings;
}

// Policies that are valid one by one, but impossible or without effect together.

interface Rule {
  /** The settings that the rule is about. Those that are no policies have the file's value. */
  readonly names: readonly string[];
  /** Returns what is wrong, quoting the values, or null. */
  readonly fault: (settings: PolicySettings) => string | null;
}

/** How long crawlers wait between two requests to a host by default (migrating-crawler/settings/config.ts). */
const politenessSeconds = 1;

const recrawlRules: readonly Rule[] = [
  {
    names: ["recrawl.smallestMultiple", "recrawl.biggestMultiple"],
    fault: ({ recrawl }) => {
      const fault = priorityLimitsFault(recrawl);
      return fault && `recrawl.biggestMultiple: ${fault}`;
    },
  },
  {
    names: ["recrawl.shortestHours", "recrawl.longestDays"],
    fault: ({ recrawl: { shortestHours, longestDays } }) =>
      shortestHours > longestDays * 24
        ? `recrawl.shortestHours: no page may be fetched again within ${shortestHours} h are over, and ` +
          `each has to be after ${longestDays * 24} h (recrawl.longestDays: ${longestDays})`
        : null,
  },
  {
    names: ["recrawl.shortestHours", "lease.seconds"],
    fault: ({ recrawl: { shortestHours }, lease }) =>
      shortestHours * 3600 < lease.seconds
        ? `recrawl.shortestHours: pages could be due again after ${shortestHours * 3600} s, before the lease on them ends (lease.seconds: ${lease.seconds} s)`
        : null,
  },
  {
    names: ["recrawl.strategy", "recrawl.total", "recrawl.intervalHours", "recrawl.longestDays"],
    fault: ({ recrawl: { strategy, total, intervalHours, longestDays } }) =>
      strategy === "optimal" && total === "interval" && intervalHours > longestDays * 24
        ? `recrawl.intervalHours: fetches for one every ${intervalHours} h are less than what ` +
          `recrawl.longestDays (${longestDays * 24} h) asks for every page, so that nothing is left to ` +
          "divide"
        : null,
  },
  {
    names: ["recrawl.strategy", "recrawl.total"],
    fault: ({ recrawl: { strategy, total } }) =>
      total === "capacity" && strategy !== "optimal"
        ? `recrawl.total: capacity has no effect under recrawl.strategy ${strategy}; only optimal divides a total`
        : null,
  },
];

const rules: readonly Rule[] = [
  {
    names: ["lease.seconds", "lease.urlsPerHost"],
    fault: ({ lease }) =>
      lease.seconds < lease.urlsPerHost * politenessSeconds
        ? `lease.seconds: a crawler leaves ${politenessSeconds} s between two URLs of a host, so ` +
          `${lease.urlsPerHost} of them (lease.urlsPerHost) take longer than a lease of ` +
          `${lease.seconds} s`
        : null,
  },
  {
    names: ["recrawl.intervalHours", "lease.seconds"],
    fault: ({ recrawl, lease }) =>
      recrawl.intervalHours * 3600 < lease.seconds
        ? `recrawl.intervalHours: pages would be due again after ${recrawl.intervalHours * 3600} s, ` +
          `before the lease on them ends (lease.seconds: ${lease.seconds} s)`
        : null,
  },
  ...recrawlRules,
  {
    names: ["frontier.linkTypeChecks", "lease.seconds", "lease.urlsPerHost"],
    fault: ({ frontier, lease }) =>
      frontier.linkTypeChecks > 0 &&
      lease.seconds < lease.urlsPerHost * (1 + frontier.linkTypeChecks) * politenessSeconds
        ? `frontier.linkTypeChecks: ${lease.urlsPerHost} URLs (lease.urlsPerHost) with ` +
          `${frontier.linkTypeChecks} checks each take ` +
          `${lease.urlsPerHost * (1 + frontier.linkTypeChecks) * politenessSeconds} s at ` +
          `${politenessSeconds} s between two requests, longer than a lease of ${lease.seconds} s ` +
          "(lease.seconds)"
        : null,
  },
  {
    names: ["trust.share", "trust.newcomerShare"],
    fault: ({ trust }) =>
      trust.newcomerShare < trust.share
        ? `trust.newcomerShare: ${trust.newcomerShare} is less than what is fetched twice of ` +
          `established crawlers (trust.share: ${trust.share}); the larger one counts`
        : null,
  },
  {
    names: ["scope.admitNewHosts", "scope.newHostsPerCrawlerAndDay"],
    fault: ({ scope }) =>
      scope.admitNewHosts && scope.newHostsPerCrawlerAndDay === 0
        ? "scope.newHostsPerCrawlerAndDay: new hosts are admitted (scope.admitNewHosts: yes), and none a day"
        : null,
  },
  {
    names: ["delegation.policy", "delegation.thresholdMs", "probe.deadlineMs"],
    fault: ({ delegation, probe }) =>
      delegation.policy === "ipmicra" && delegation.thresholdMs > probe.deadlineMs
        ? `delegation.thresholdMs: a probe has failed after ${probe.deadlineMs} ms (probe.deadlineMs), ` +
          `so the first answer would always do at ${delegation.thresholdMs} ms`
        : null,
  },
  {
    names: ["pace.slowDownUnder", "pace.hurryUpOver"],
    fault: ({ pace }) =>
      pace.slowDownUnder >= pace.hurryUpOver
        ? `pace.slowDownUnder: with ${pace.slowDownUnder} host slices and pace.hurryUpOver: ` +
          `${pace.hurryUpOver}, a crawler would be told to slow down and to hurry up at once`
        : null,
  },
  within("perCrawlerAtOnce", "atOnce"),
  within("perCrawlerPerSecond", "perSecond"),
  within("perNetworkPerSecond", "perSecond"),
  within("perTargetPerSecond", "perNetworkPerSecond"),
];

type Pace = keyof PolicySettings["probe"]["pace"];

function within(part: Pace, whole: Pace): Rule {
  return {
    names: [`probe.pace.${part}`, `probe.pace.${whole}`],
    fault: ({ probe: { pace } }) =>
      pace[part] > pace[whole]
        ? `probe.pace.${part}: ${pace[part]} can never be reached, since probe.pace.${whole} is ${pace[whole]}`
        : null,
  };
}

/** Checks only rules about one of these policies, so that an old contradiction elsewhere does not block the change. */
export function contradictionsIn(settings: PolicySettings, touched: Iterable<string>): string[] {
  const names = new Set<string>(touched);
  return rules
    .filter((rule) => rule.names.some((name) => names.has(name)))
    .flatMap(({ fault }) => fault(settings) ?? []);
}

/** Combines the file's settings with the policies in force, at each read. */
export function liveConfig<Config extends PolicySettings>(config: Config, policies: PoliciesInForce): Config {
  return readAnew((name) => Reflect.get(name in policies.settings ? policies.settings : config, name));
}

/** The policies in a file, which apply where operators have changed nothing. */
export function policiesOf(config: PolicySettings): PolicySettings {
  const sections = Object.keys(policySections) as (keyof PolicySettings)[];
  return Object.fromEntries(sections.map((name) => [name, config[name]])) as unknown as PolicySettings;
}

export interface SampledRounds {
  readonly crawlers: readonly { readonly crawlerId: CrawlerId; readonly placement: Placement }[];
  /** The latest round of each subnet, oldest first. */
  readonly rounds: readonly (PastRound & {
    readonly crawlerId: CrawlerId;
    /** How many probes the round took. */
    readonly paidProbes: number;
  })[];
}

export interface PreviewPorts {
  /** Returns the latest rounds, at most `most`. */
  readonly samples: (most: number) => Promise<SampledRounds>;
  readonly crawlers: Pick<CrawlerStore, "rtts">;
  readonly clock: AlarmClock;
  readonly log: Log;
}

export interface PolicyStep {
  readonly before: PolicySettings;
  readonly after: PolicySettings;
  readonly names: ReadonlySet<PolicyName>;
}

export interface PastRound {
  readonly placement: Placement;
  /** RTTs that the probed crawlers reported, in ms; null if there was no answer. */
  readonly rttsMs: ReadonlyMap<CrawlerId, number | null>;
}

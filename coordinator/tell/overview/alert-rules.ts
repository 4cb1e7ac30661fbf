/**
 * What operators are told. Each rule has its name, how bad it is and where to look; from where on it finds something, what it
 * says, what to do, and the rest of its section of the runbook. Page, command, metrics, Prometheus' rules, mail and
 * ops/runbook/alerts.md derive from this list.
 */
import {
  type AlertFacts,
  type AlertMute,
  type AlertReads,
  type AlertSeverity,
  alertSeverities,
  type OwnFacts,
} from "./alert-facts.ts";
import { type AlertRule, type Finding, inOneLine } from "./alert-rule.ts";
import { ownRules } from "./alerts-of-coordinator.ts";
import { crawlRules } from "./alerts-of-crawl.ts";
import { crawlerRules } from "./alerts-of-crawlers.ts";
import { dataRules } from "./alerts-of-data.ts";

export const alertRules = [...ownRules, ...dataRules, ...crawlerRules, ...crawlRules] as const;

export type AlertName = (typeof alertRules)[number]["name"];

export const alertNames: readonly AlertName[] = alertRules.map(({ name }) => name);

/** Of those that a coordinator knows of itself. */
export const ownAlertNames: ReadonlySet<AlertName> = new Set(ownRules.map(({ name }) => name));

/** Every rule with what it looks for in words, the critical first. */
export const listedRules = bySeverity(alertRules);

/** What operators are told now, the critical first; without what is muted, and what somebody has acknowledged. */
export function alertsOf(facts: AlertFacts): Alert[] {
  return foundAlerts(facts).flatMap(({ alert, acknowledged }) => (acknowledged === null ? [alert] : []));
}

/** What somebody is at, as long as it names nothing else. */
function acknowledgedAlertsOf(facts: AlertFacts) {
  return foundAlerts(facts).flatMap(({ alert, acknowledged }) => {
    if (acknowledged === null) return [];
    const { by, at, note } = acknowledged;
    return [{ ...alert, by, at, note }];
  });
}

export type Alert = FoundAlert["alert"];
export type AlertList = Awaited<ReturnType<typeof showAlerts>>;

type FoundAlert = NonNullable<ReturnType<typeof foundBy>>;

/** What all rules find, the critical first; without what is muted. */
export function foundAlerts(facts: AlertFacts): FoundAlert[] {
  const found = alertRules.flatMap((rule) => foundBy(rule, facts) ?? []);
  return alertSeverities.flatMap((severity) => found.filter(({ alert }) => alert.severity === severity));
}

/** All that is known where the database cannot be asked: what a coordinator knows of itself. `mutes`: as last known. */
export function ownAlertsOf(own: OwnFacts, nowMs: number, mutes: readonly AlertMute[] = []): Alert[] {
  const facts = { ...nothingKnown, nowMs, own, mutes };
  return bySeverity(ownRules.flatMap((rule) => foundBy(rule, facts)?.alert ?? []));
}

/** No rule about the crawl finds anything in it; those are not asked. */
const nothingKnown: AlertFacts = {
  nowMs: 0,
  crawlers: [],
  queue: { p95Seconds: null, unplacedSeconds: null },
  linkOutbox: { effects: 0, ageSeconds: 0 },
  hour: { fetches: 0, failures: { target: 0, network: 0, crawler: 0, us: 0 } },
  day: { fetchedBytes: 0, shippedBytes: 0 },
  figuresAtMs: null,
  registryAppliedMs: null,
  incidents: [],
  openInvitations: 0,
  releases: [],
  statedUntilMs: null,
  databaseMs: 0,
  accuracy: { samples: 0, share: null },
};

/** What nobody is told of until an hour that somebody named, and who that was. */
export function mutedAlertsOf(facts: AlertFacts) {
  return (facts.mutes ?? []).flatMap((mute) => {
    const rule = alertRules.find(({ name }) => name === mute.name);
    const alert = rule === undefined ? undefined : foundBy(rule, { ...facts, mutes: [] })?.alert;
    if (alert === undefined) return [];
    const { until, reason, mutedBy, target } = mute;
    const told = { until: until.toISOString(), reason, mutedBy, mutedTarget: target };
    return [{ ...alert, ...told }];
  });
}

/** Without the targets that are muted; null: nothing is left, or all of the rule is muted. */
function unmuted(finding: Finding, ruleName: string, { mutes = [], nowMs }: AlertFacts): Finding | null {
  const holding = mutes.filter(({ name, until }) => name === ruleName && until.getTime() > nowMs);
  if (holding.some(({ target }) => target === null)) return null;
  const silent = new Set(holding.map(({ target }) => target));
  const { targets } = finding;
  if (targets === undefined || silent.size === 0) return finding;
  // Some say how many times in brackets: `copied-folder (3)`.
  const left = targets.filter((target) => !silent.has(bareTarget(target)));
  return left.length === 0 ? null : { ...finding, targets: left };
}

/** `copied-folder (3)` is `copied-folder`. */
export const bareTarget = (target: string): string => target.replace(/ \(.*$/s, "").slice(0, 200);

/** That are noted; the rest is a number. */
const mostTargets = 1000;

/** The critical first, and otherwise as they were. */
function bySeverity<One extends { readonly severity: AlertSeverity }>(all: readonly One[]): One[] {
  return alertSeverities.flatMap((severity) => all.filter((one) => one.severity === severity));
}

function foundBy(rule: AlertRule & { readonly name: AlertName }, facts: AlertFacts) {
  const found = rule.find(facts, rule.threshold ?? 0) ?? null;
  const finding = found && unmuted(typeof found === "string" ? { words: found } : found, rule.name, facts);
  if (finding === null || finding === "") return null;
  const { name, severity, link } = rule;
  const { words, targets } = finding;
  const noted = facts.noted?.find((one) => one.name === name);
  const bare = [...new Set((targets ?? []).map(bareTarget))].slice(0, mostTargets);
  const alert = {
    ...{ name, severity, link, advice: inOneLine(finding.advice ?? rule.advice ?? "") },
    words: targets === undefined ? words : `${words}: ${listOf(targets)}.`,
    targets: (targets ?? []).slice(0, namedTargets) as readonly string[],
    count: targets?.length ?? 1,
    since: noted?.beganAt.toISOString() ?? null,
    toldAt: noted?.toldAt?.toISOString() ?? null,
  };
  const acknowledged = noted?.acknowledged ?? null;
  const isCovered = acknowledged !== null && bare.every((target) => acknowledged.targets.includes(target));
  // Targets: all that it is about, up to a thousand, without what stands in brackets. Acknowledged by nobody, or it names more by now: null.
  return { alert, targets: bare, acknowledged: isCovered ? acknowledged : null };
}

/** Names in the sentence; the rest is a number. */
const namedTargets = 5;

function listOf(names: readonly string[]): string {
  const shown = names.slice(0, namedTargets).join(", ");
  return names.length > namedTargets ? `${shown} and ${names.length - namedTargets} more` : shown;
}

// What operators are told now: the alert rules over what is read at this moment.

export async function showAlerts(reads: AlertReads, now: Date) {
  const facts = await reads.alertFacts(now);
  return {
    at: now.toISOString(),
    alerts: alertsOf(facts),
    acknowledged: acknowledgedAlertsOf(facts),
    muted: mutedAlertsOf(facts),
    channels: (facts.channels ?? []).map(({ deliveredAt, failingSince, ...channel }) => ({
      ...channel,
      deliveredAt: deliveredAt?.toISOString() ?? null,
      failingSince: failingSince?.toISOString() ?? null,
    })),
    /** Why this is not all: the database could not be asked, and these are what is known without it. Null: it is. */
    incomplete: null as string | null,
  };
}

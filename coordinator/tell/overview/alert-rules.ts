/**
 * All alert rules, and what they find now. Page, command, metrics, Prometheus' rules, mail and ops/runbook/alerts.md are
 * derived from this list.
 */
import {
  type AlertFacts,
  type AlertMute,
  type AlertReads,
  type AlertRule,
  type AlertSeverity,
  alertSeverities,
  type Finding,
  inOneLine,
  type OwnFacts,
} from "./alert-facts.ts";
import { dataRules, ownRules } from "./alerts-of-coordinator.ts";
import { crawlerRules, crawlRules } from "./alerts-of-crawl.ts";

export const alertRules = [...ownRules, ...dataRules, ...crawlerRules, ...crawlRules] as const;

export type AlertName = (typeof alertRules)[number]["name"];

export const alertNames: readonly AlertName[] = alertRules.map(({ name }) => name);

/** Rules that a coordinator answers from its own memory. */
export const ownAlertNames: ReadonlySet<AlertName> = new Set(ownRules.map(({ name }) => name));

/** The rules by severity, critical ones first. */
export const listedRules = bySeverity(alertRules);

/** Returns what needs attention now, critical alerts first, without muted or acknowledged ones. */
export function alertsOf(facts: AlertFacts): Alert[] {
  return foundAlerts(facts).flatMap(({ alert, acknowledged }) => (acknowledged === null ? [alert] : []));
}

export type Alert = FoundAlert["alert"];
export type AlertList = Awaited<ReturnType<typeof showAlerts>>;

type FoundAlert = NonNullable<ReturnType<typeof foundBy>>;

/** Returns what all rules find, critical alerts first, without muted ones. */
export function foundAlerts(facts: AlertFacts): FoundAlert[] {
  return listedRules.flatMap((rule) => foundBy(rule, facts) ?? []);
}

/** Returns the alerts that a coordinator knows while the database cannot be asked. `mutes` are the last known ones. */
export function ownAlertsOf(own: OwnFacts, nowMs: number, mutes: readonly AlertMute[] = []): Alert[] {
  const facts = { ...nothingKnown, nowMs, own, mutes };
  return bySeverity(ownRules.flatMap((rule) => foundBy(rule, facts)?.alert ?? []));
}

/** Facts in which no rule finds anything. */
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

/** What is muted, by whom and until when. */
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

/** Removes muted targets. Returns null if none is left, or the whole rule is muted. */
function unmuted(finding: Finding, ruleName: string, { mutes = [], nowMs }: AlertFacts): Finding | null {
  const holding = mutes.filter(({ name, until }) => name === ruleName && until.getTime() > nowMs);
  if (holding.some(({ target }) => target === null)) return null;
  const silent = new Set(holding.map(({ target }) => target));
  const { targets } = finding;
  if (targets === undefined || silent.size === 0) return finding;
  const left = targets.filter((target) => !silent.has(bareTarget(target)));
  return left.length === 0 ? null : { ...finding, targets: left };
}

/** Removes the count from a target: `flood (3)` becomes `flood`. */
export const bareTarget = (target: string): string => target.replace(/ \(.*$/s, "").slice(0, 200);

/** Maximum number of targets stored per alert. */
const mostTargets = 1000;

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
  // An acknowledgement does not cover targets that came later.
  return { alert, targets: bare, acknowledged: isCovered ? acknowledged : null };
}

/** How many targets the sentence names; it counts the others. */
const namedTargets = 5;

function listOf(names: readonly string[]): string {
  const shown = names.slice(0, namedTargets).join(", ");
  return names.length > namedTargets ? `${shown} and ${names.length - namedTargets} more` : shown;
}

export async function showAlerts(reads: AlertReads, now: Date) {
  const facts = await reads.alertFacts(now);
  return {
    at: now.toISOString(),
    alerts: alertsOf(facts),
    acknowledged: foundAlerts(facts).flatMap(({ alert, acknowledged }) => {
      if (acknowledged === null) return [];
      const { by, at, note } = acknowledged;
      return [{ ...alert, by, at, note }];
    }),
    muted: mutedAlertsOf(facts),
    channels: (facts.channels ?? []).map(({ deliveredAt, failingSince, ...channel }) => ({
      ...channel,
      deliveredAt: deliveredAt?.toISOString() ?? null,
      failingSince: failingSince?.toISOString() ?? null,
    })),
    /** Why the list is incomplete; null unless the database could not be asked. */
    incomplete: null as string | null,
  };
}

/** An alert rule, and what rules have in common: how they find crawlers, and how they name times and shares. */
import type { AlertFacts, AlertSeverity } from "./alert-facts.ts";

export interface AlertRule {
  readonly name: string;
  readonly severity: AlertSeverity;
  /** Path of the page that shows the details. */
  readonly link: string;
  /** From where on something is an alert, in the unit of `find`'s second argument, with where it comes from; left out: it asks yes or no. */
  readonly threshold?: number;
  /** What the rule looks for, for whoever wonders why something is an alert, or is none. */
  readonly looksFor: string;
  /** Empty: each finding has its own. */
  readonly advice: string;
  /** What else its section of the runbook says: one paragraph of Markdown, or nothing. */
  readonly runbook: string;
  /** A text: the finding is about the crawl as a whole. */
  readonly find: (facts: AlertFacts, threshold: number) => Finding | string | null | undefined;
}

/** `targets`: crawlers, releases, coordinators or kinds, the worst first. */
export interface Finding {
  readonly words: string;
  readonly targets?: readonly string[];
  readonly advice?: string;
}

export const minuteMs = 60_000;
export const dayMs = 86_400_000;
/** Fewer fetches say nothing of a share (as in releases/decide-stage). */
export const leastFetches = 50;

interface Rule extends Pick<AlertRule, "threshold" | "find"> {
  readonly looksFor: string | ((threshold: number) => string);
  readonly advice?: string;
  readonly runbook?: readonly string[];
}

const ruleOf =
  <Severity extends AlertSeverity>(severity: Severity) =>
  <Name extends string>(name: Name, link: string, { looksFor, advice, runbook, ...rule }: Rule) => ({
    ...{ name, severity, link, advice: inOneLine(advice ?? ""), runbook: (runbook ?? []).join(" "), ...rule },
    looksFor: inOneLine(typeof looksFor === "string" ? looksFor : looksFor(rule.threshold ?? 0)),
  });
export const critical = ruleOf("critical");
export const warning = ruleOf("warning");
export const info = ruleOf("info");

export const inOneLine = (text: string): string => text.replace(/\s*\n\s*/g, " ");

/** Null when there are none. */
export function about(targets: readonly string[], words: string): Finding | null {
  return targets.length === 0 ? null : { words, targets };
}

export const namesOf = (some: readonly { readonly name: string }[]) => some.map(({ name }) => name);

export function minutesSince(sinceMs: number, nowMs: number): number {
  return Math.floor((nowMs - sinceMs) / minuteMs);
}

export function isLong(sinceMs: number | null, nowMs: number, minutes: number): boolean {
  return sinceMs !== null && nowMs - sinceMs > minutes * minuteMs;
}

export const sentence = (words: string): string => words.slice(0, 1).toUpperCase() + words.slice(1);

/** "90 minutes", "26 hours", "3 days". */
export function span(seconds: number): string {
  if (seconds < 2 * 3600) return `${Math.round(seconds / 60)} minutes`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} hours`;
  return `${Math.round(seconds / 86_400)} days`;
}

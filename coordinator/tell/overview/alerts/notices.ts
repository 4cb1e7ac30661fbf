/**
 * Decides when people are notified of alerts. An alert is reported when it begins, when it names more, and when it ends.
 * Changes within a minute share a message, and an alert that has ended by then is in none. A flapping alert is reported at
 * most once in half an hour. Acknowledged and muted alerts are not reported.
 *
 *   begins ── a minute ──► told ── names more, half an hour since ──► told again ── ends ── a minute ──► told as ended
 */

import { instantWords } from "#core/format";
import type { Acknowledgement, AlertSeverity } from "../alert-facts.ts";

export interface AlertState {
  readonly name: string;
  readonly severity: AlertSeverity;
  readonly words: string;
  readonly advice: string;
  /** All targets that the rule names. */
  readonly targets: readonly string[];
  readonly beganAt: Date;
  /** Null while the alert is active. */
  readonly endedAt: Date | null;
  /** Since when there is something to report; null if there is nothing. */
  readonly pendingSince: Date | null;
  /** When the alert was last reported as active. */
  readonly toldAt: Date | null;
  readonly toldTargets: readonly string[];
  /** Whether people believe that it is active. */
  readonly isTold: boolean;
  readonly acknowledged: Acknowledgement | null;
}

/** What a rule finds now. */
export type SeenAlert = Pick<AlertState, "name" | "severity" | "words" | "advice" | "targets">;

export interface Look {
  readonly now: Date;
  readonly found: readonly SeenAlert[];
  /** The rules that find only muted targets. */
  readonly muted: ReadonlySet<string>;
  /** The severities that some channel is sent. */
  readonly heard: ReadonlySet<AlertSeverity>;
}

export interface NoticeRule {
  readonly digestMs: number;
  readonly againMs: number;
}

export interface ToldAlert extends SeenAlert {
  readonly state: "began" | "ended";
  readonly since: string;
  /** Null while the alert is active. */
  readonly endedAt: string | null;
}

interface NoticePlan {
  /** The new states. Any others are forgotten. */
  readonly states: readonly AlertState[];
  /** Empty when no message is due. */
  readonly told: readonly ToldAlert[];
}

/** Maximum length of the words, because names in them come from outside. */
const mostWords = 2000;

export function planNotices(known: readonly AlertState[], look: Look, rule: NoticeRule): NoticePlan {
  const seen = new Map(
    look.found.map((alert) => [alert.name, { ...alert, words: alert.words.slice(0, mostWords) }]),
  );
  const before = new Map(known.map((state) => [state.name, state]));
  const names = [...new Set([...before.keys(), ...seen.keys()])];
  const states = names.map((name) => {
    const state = stateNow(before.get(name), seen.get(name), look);
    return { ...state, pendingSince: isOwed(state, look, rule) ? (state.pendingSince ?? look.now) : null };
  });
  const isDue = states.some(
    ({ pendingSince }) => pendingSince !== null && since(pendingSince, look.now) >= rule.digestMs,
  );
  const told = isDue ? states.filter(({ pendingSince }) => pendingSince !== null) : [];
  return {
    states: states
      .map((state) => (told.includes(state) ? afterTelling(state, look.now) : state))
      .filter(isKept),
    told: told.map(toldAlert),
  };

  /** An ended alert is kept only as long as it would be too soon to report it again. */
  function isKept({ endedAt, isTold, toldAt }: AlertState): boolean {
    if (endedAt === null || isTold) return true;
    return toldAt !== null && since(toldAt, look.now) < rule.againMs;
  }
}

const since = (then: Date, now: Date): number => now.getTime() - then.getTime();

function stateNow(
  before: AlertState | undefined,
  seen: SeenAlert | undefined,
  { now, muted }: Look,
): AlertState {
  if (seen === undefined) {
    const state = before!;
    // A muted alert continues, and its end is not reported.
    if (state.endedAt !== null || muted.has(state.name)) return state;
    return { ...state, endedAt: now, acknowledged: null };
  }
  if (before === undefined) return beganNow(seen, now);
  // As long as its end was not reported, people believe that it continues.
  if (before.endedAt !== null)
    return { ...before, ...seen, beganAt: before.isTold ? before.beganAt : now, endedAt: null };
  const { acknowledged } = before;
  const isCovered = acknowledged !== null && includesAll(acknowledged.targets, seen.targets);
  return { ...before, ...seen, acknowledged: isCovered ? acknowledged : null };
}

export const beganNow = (seen: SeenAlert, now: Date): AlertState => ({
  ...{ ...seen, beganAt: now, endedAt: null, pendingSince: null },
  ...{ toldAt: null, toldTargets: [], isTold: false, acknowledged: null },
});

/** Whether something unreported may be reported now. */
function isOwed(state: AlertState, { now, muted, heard }: Look, { againMs }: NoticeRule): boolean {
  const { name, endedAt, isTold, toldAt, toldTargets, targets, acknowledged } = state;
  if (muted.has(name) && endedAt === null) return false;
  if (endedAt !== null) return isTold;
  if (acknowledged !== null || !heard.has(state.severity)) return false;
  if (isTold && includesAll(toldTargets, targets)) return false;
  return toldAt === null || since(toldAt, now) >= againMs;
}

function afterTelling(state: AlertState, now: Date): AlertState {
  if (state.endedAt !== null) return { ...state, pendingSince: null, isTold: false, toldTargets: [] };
  return { ...state, pendingSince: null, isTold: true, toldAt: now, toldTargets: state.targets };
}

export function toldAlert({
  name,
  severity,
  words,
  advice,
  targets,
  beganAt,
  endedAt,
}: AlertState): ToldAlert {
  return {
    ...{ name, severity, words, advice, targets },
    state: endedAt === null ? "began" : "ended",
    since: beganAt.toISOString(),
    endedAt: endedAt?.toISOString() ?? null,
  };
}

function includesAll(all: readonly string[], some: readonly string[]): boolean {
  const known = new Set(all);
  return some.every((one) => known.has(one));
}

/** Delays after failed attempts in ms. After some three hours, delivery is given up. */
const retryMs = [15_000, 60_000, 300_000, 900_000, 3_600_000, 7_200_000] as const;

export const mostTries = retryMs.length + 1;

/** `tries` counts the attempts so far, and `chance` (0 to 1) spreads retries. Returns null if delivery is given up. */
export function nextTryMs(tries: number, chance: number): number | null {
  const usual = retryMs[tries - 1];
  return usual === undefined ? null : Math.round(usual * (0.8 + 0.4 * chance));
}

// Messages as JSON for a webhook and as text for a mail. They are the same at each attempt.

export interface AlertMessage {
  readonly id: string;
  readonly madeAt: Date;
  /** Empty for a test. */
  readonly told: readonly ToldAlert[];
}

export interface AlertChannelClient {
  readonly name: string;
  readonly kind: "webhook" | "email";
  /** Where messages go, without anything secret. */
  readonly place: string;
  readonly least: AlertSeverity;
  send(message: AlertMessage, signal: AbortSignal): Promise<Delivery>;
}

export type Delivery =
  | { readonly type: "delivered" }
  /** `isFinal` means that the receiver wants no more attempts. */
  | { readonly type: "failed"; readonly words: string; readonly isFinal?: boolean };

const testWords = "This is a test: alerts of this coordinator come here.";

/** The public address of the pages, such as `https://search.example`, without a final slash. */
export type PagesUrl = string;

/** Maximum number of targets named in a message. */
const namedTargets = 100;

export function webhookBody({ madeAt, told }: AlertMessage, pages: PagesUrl): string {
  return JSON.stringify({
    type: told.length === 0 ? "alerts.test" : "alerts.changed",
    timestamp: madeAt.toISOString(),
    // The field that chat programs show.
    text: told.length === 0 ? testWords : told.map(line).join("\n"),
    data: {
      coordinator: pages,
      alerts: told.map(({ name, severity, state, words, advice, since, endedAt, targets }) => ({
        ...{ name, severity, state, words, advice, since, endedAt },
        targets: targets.slice(0, namedTargets),
        targetCount: targets.length,
        page: `${pages}/alerts`,
        runbook: runbookLink(pages, name),
      })),
    },
  });
}

/** The rule's name is its anchor on the page. */
const runbookLink = (pages: PagesUrl, name: string) => `${pages}/alerts#${name}`;

const line = ({ severity, state, words, name }: ToldAlert) =>
  state === "ended"
    ? `Ended: ${name}. ${oneLine(words)}`
    : `${capital(severity)}: ${oneLine(words)} (${name})`;

export function mailText({ told }: AlertMessage, pages: PagesUrl): { subject: string; text: string } {
  if (told.length === 0) return { subject: "[Nearcrawl] Test", text: `${testWords}\n\n${pages}/alerts\n` };
  const began = told.filter(({ state }) => state === "began");
  const ended = told.filter(({ state }) => state === "ended");
  const parts = [countWords(began), ended.length === 0 ? "" : `${ended.length} ended`].filter(
    (part) => part !== "",
  );
  const names = told.map(({ name }) => name).join(", ");
  const text = [...began, ...ended].map((alert) => mailPart(alert, pages)).join("\n\n");
  return {
    subject: `[Nearcrawl] ${parts.join(", ")}: ${names}`.slice(0, 180),
    text: `${text}\n\n-- \nAll alerts, to acknowledge or mute them: ${pages}/alerts\n`,
  };
}

function mailPart(
  { name, severity, state, words, advice, since, endedAt }: ToldAlert,
  pages: PagesUrl,
): string {
  const span =
    endedAt === null ? `since ${instantWords(since)}` : `${instantWords(since)} to ${instantWords(endedAt)}`;
  const head = `${state === "ended" ? "ENDED" : severity.toUpperCase()}  ${name}, ${span}`;
  if (state === "ended") return `${head}\n${oneLine(words)}`;
  return `${head}\n${oneLine(words)}\n${oneLine(advice)}\nRunbook: ${runbookLink(pages, name)}`;
}

/** Such as "1 critical, 2 warnings". */
export function countWords(alerts: readonly { readonly severity: AlertSeverity }[]): string {
  const of = (severity: AlertSeverity) => alerts.filter((one) => one.severity === severity).length;
  const warnings = of("warning");
  const counts: readonly (readonly [number, string])[] = [
    [of("critical"), "critical"],
    [warnings, warnings === 1 ? "warning" : "warnings"],
    [of("info"), "info"],
  ];
  return counts.flatMap(([count, noun]) => (count === 0 ? [] : [`${count} ${noun}`])).join(", ");
}

/** Names come from outside, so they must not begin a new line. */
const oneLine = (text: string) => text.replace(/[\s\p{Cc}\u2028\u2029]+/gu, " ").trim();

const capital = (word: string) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;

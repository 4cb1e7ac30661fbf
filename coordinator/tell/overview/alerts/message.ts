/** A message about alerts, as JSON for a webhook and as text for a mail: made of what was noted, the same at each attempt. */
import { instantWords } from "#core/format";
import type { AlertSeverity } from "../alert-facts.ts";
import type { ToldAlert } from "./notices.ts";

export interface AlertMessage {
  readonly id: string;
  readonly madeAt: Date;
  /** Empty: a test. */
  readonly told: readonly ToldAlert[];
}

export interface AlertChannelClient {
  readonly name: string;
  readonly kind: "webhook" | "email";
  /** In words, without anything secret. */
  readonly place: string;
  readonly least: AlertSeverity;
  send(message: AlertMessage, signal: AbortSignal): Promise<Delivery>;
}

export type Delivery =
  | { readonly type: "delivered" }
  /** `isFinal`: the receiver wants no more of it. */
  | { readonly type: "failed"; readonly words: string; readonly isFinal?: boolean };

const testWords = "This is a test: alerts of this coordinator come here.";

/** How the pages are reached from outside: `https://search.example`, without a slash at its end. */
export type PagesUrl = string;

/** Targets that a message names. */
const namedTargets = 100;

export function webhookBody({ madeAt, told }: AlertMessage, pages: PagesUrl): string {
  return JSON.stringify({
    type: told.length === 0 ? "alerts.test" : "alerts.changed",
    timestamp: madeAt.toISOString(),
    // What chat programs show of it.
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

/** The rule's name is its anchor on the page, beside its paragraph of the runbook. */
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

/** "1 critical, 2 warnings". */
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

/** Names come from outside: no line of theirs begins anything. */
const oneLine = (text: string) => text.replace(/[\s\p{Cc}\u2028\u2029]+/gu, " ").trim();

const capital = (word: string) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;

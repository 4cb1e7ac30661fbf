/**
 * The span of time that a page and its charts show: "the last 24 hours", or from one instant to another. What is asked
 * for comes from an address that anybody may write; what cannot be read becomes the usual range, and is said.
 */
export interface TimeRange {
  readonly since: Date;
  readonly until: Date;
  /** "24h"; empty for a chosen one. */
  readonly name: string;
  /** By the coordinator's clock: what claims to be later is of a clock that is off. */
  readonly now: Date;
  /** What was asked for and is not shown; null: it is what was asked for. */
  readonly said: string | null;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

export const rangeNames = ["1h", "6h", "24h", "7d", "30d", "90d", "1y"] as const;
export type RangeName = (typeof rangeNames)[number];

const ranges: Readonly<Record<RangeName, { readonly words: string; readonly spanMs: number }>> = {
  "1h": { words: "1 hour", spanMs: hourMs },
  "6h": { words: "6 hours", spanMs: 6 * hourMs },
  "24h": { words: "24 hours", spanMs: dayMs },
  "7d": { words: "7 days", spanMs: 7 * dayMs },
  "30d": { words: "30 days", spanMs: 30 * dayMs },
  "90d": { words: "90 days", spanMs: 90 * dayMs },
  "1y": { words: "1 year", spanMs: 365 * dayMs },
};

/** Five minutes show something; more than five years nobody keeps. */
const leastSpanMs = 5 * minuteMs;
const mostSpanMs = 5 * 366 * dayMs;

function isRangeName(text: string): text is RangeName {
  return (rangeNames as readonly string[]).includes(text);
}

/** "the last 24 hours". */
export function rangeNameWords(name: RangeName): string {
  return `the last ${ranges[name].words.replace(/^1 /, "")}`;
}

/** The fields of a question that choose a range. */
type RangeQuestion = { readonly [Name in "range" | "since" | "until"]?: string | undefined };

/** `?range=24h`, or `?since=…&until=…` (UTC where no zone is given); without either the usual one. */
export function timeRange(asked: RangeQuestion, now: Date, usual: RangeName = "24h"): TimeRange {
  const { since = "", until = "", range: name = "" } = asked;
  const named = (shown: RangeName, said: string | null): TimeRange => ({
    ...{ since: new Date(now.getTime() - ranges[shown].spanMs), until: now, name: shown, now, said },
  });
  if (since === "" && until === "") {
    if (name === "") return named(usual, null);
    return isRangeName(name) ? named(name, null) : named(usual, "That is no range of time");
  }
  const chosen = chosenRange(since, until, now);
  return typeof chosen === "string" ? named(usual, chosen) : chosen;
}

/** A string: why it cannot be shown. */
function chosenRange(sinceText: string, untilText: string, now: Date): TimeRange | string {
  const asked = untilText === "" ? now : instantOf(untilText);
  const since = sinceText === "" && asked !== null ? new Date(asked.getTime() - dayMs) : instantOf(sinceText);
  if (asked === null || since === null) return "From or to is not a date and time";
  const isFuture = asked.getTime() > now.getTime();
  const until = isFuture ? now : asked;
  const spanMs = until.getTime() - since.getTime();
  if (spanMs <= 0) {
    return since.getTime() >= now.getTime() ? "That time has not come yet" : "From is not before to";
  }
  if (spanMs > mostSpanMs) return "That is more than five years";
  const isShort = spanMs < leastSpanMs;
  return {
    since: isShort ? new Date(until.getTime() - leastSpanMs) : since,
    ...{ until, now, name: "" },
    said: isShort
      ? "At least five minutes are shown"
      : isFuture
        ? "Shown up to now: the rest has not come yet"
        : null,
  };
}

const instantForm = /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/;

/** Null: no instant that there is. Without a zone it is UTC. */
export function instantOf(text: string): Date | null {
  const parts = instantForm.exec(text);
  if (parts === null) return null;
  const [, year, month, day, hour = "00", minute = "00", second = "00", zone = "Z"] = parts;
  const date = `${year}-${month}-${day}`;
  const instant = new Date(`${date}T${hour}:${minute}:${second}${zone}`);
  if (Number.isNaN(instant.getTime())) return null;
  // 31 February is no day, though a Date takes it for one in March.
  const midnight = new Date(`${date}T00:00:00Z`);
  return midnight.toISOString().startsWith(date) ? instant : null;
}

/** `2026-03-01 10:20`, in UTC: as an address carries it and a form field takes it. */
export function minuteText(instant: Date): string {
  return instant.toISOString().slice(0, 16);
}

/** "the last 24 hours", "2026-03-01 10:20 to 2026-03-02 10:20 UTC". */
export function rangeWords({ name, since, until }: TimeRange): string {
  if (isRangeName(name)) return rangeNameWords(name);
  const words = (instant: Date) => minuteText(instant).replace("T", " ");
  return `${words(since)} to ${words(until)} UTC`;
}

/** The query that shows this range again. */
export function rangeQuery({ name, since, until }: TimeRange): Readonly<Record<string, string>> {
  return name === "" ? { since: minuteText(since), until: minuteText(until) } : { range: name };
}

/** What a point of a chart may stand for. */
const stepSeconds = [
  ...[60, 120, 300, 600, 900, 1800, 3600],
  ...[2, 3, 6, 12, 24, 48, 7 * 24, 14 * 24].map((hours) => hours * 3600),
] as const;

/** So many points at most are drawn of one line. */
export const mostPoints = 240;

/** How many seconds one point of this range stands for, at least: a round time, so that points stay what they are. */
export function rangeStepSeconds(range: TimeRange, leastSeconds = 60): number {
  const spanSeconds = (range.until.getTime() - range.since.getTime()) / 1000;
  const fits = (seconds: number) => seconds >= leastSeconds && spanSeconds / seconds <= mostPoints;
  return stepSeconds.find(fits) ?? stepSeconds.at(-1)!;
}

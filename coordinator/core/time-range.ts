/**
 * The time range that a page and its charts show: "the last 24 hours", or from one instant to another. Anybody can type a
 * URL, so an unreadable range is reported and replaced by the usual one.
 */
export interface TimeRange {
  readonly since: Date;
  readonly until: Date;
  /** Such as "24h"; empty for a custom range. */
  readonly name: string;
  readonly now: Date;
  readonly said: string | null;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

export const rangeNames = ["1h", "6h", "24h", "7d", "30d", "90d", "1y"] as const;
type RangeName = (typeof rangeNames)[number];

const ranges: Readonly<Record<RangeName, { readonly words: string; readonly spanMs: number }>> = {
  "1h": { words: "1 hour", spanMs: hourMs },
  "6h": { words: "6 hours", spanMs: 6 * hourMs },
  "24h": { words: "24 hours", spanMs: dayMs },
  "7d": { words: "7 days", spanMs: 7 * dayMs },
  "30d": { words: "30 days", spanMs: 30 * dayMs },
  "90d": { words: "90 days", spanMs: 90 * dayMs },
  "1y": { words: "1 year", spanMs: 365 * dayMs },
};

/** A range under five minutes would show nothing, and no data is kept beyond five years. */
const leastSpanMs = 5 * minuteMs;
const mostSpanMs = 5 * 366 * dayMs;

function isRangeName(text: string): text is RangeName {
  return (rangeNames as readonly string[]).includes(text);
}

export function rangeNameWords(name: RangeName): string {
  return `the last ${ranges[name].words.replace(/^1 /, "")}`;
}

/** The query parameters that choose a range. */
type RangeQuestion = { readonly [Name in "range" | "since" | "until"]?: string | undefined };

/** Reads `?range=24h` or `?since=…&until=…` (UTC without a zone). If all are absent, the usual range applies. */
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

/** Returns the range, or a text that says why it cannot be shown. */
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

/** Returns null when there is no such instant. A time without a zone is UTC. */
export function instantOf(text: string): Date | null {
  const parts = instantForm.exec(text);
  if (parts === null) return null;
  const [, year, month, day, hour = "00", minute = "00", second = "00", zone = "Z"] = parts;
  const date = `${year}-${month}-${day}`;
  const instant = new Date(`${date}T${hour}:${minute}:${second}${zone}`);
  if (Number.isNaN(instant.getTime())) return null;
  // Date would read 31 February as a day in March.
  const midnight = new Date(`${date}T00:00:00Z`);
  return midnight.toISOString().startsWith(date) ? instant : null;
}

/** Formats an instant like `2026-03-01 10:20` in UTC, as in URLs and form fields. */
export function minuteText(instant: Date): string {
  return instant.toISOString().slice(0, 16);
}

export function rangeWords({ name, since, until }: TimeRange): string {
  if (isRangeName(name)) return rangeNameWords(name);
  const words = (instant: Date) => minuteText(instant).replace("T", " ");
  return `${words(since)} to ${words(until)} UTC`;
}

export function rangeQuery({ name, since, until }: TimeRange): Readonly<Record<string, string>> {
  return name === "" ? { since: minuteText(since), until: minuteText(until) } : { range: name };
}

const stepSeconds = [
  ...[60, 120, 300, 600, 900, 1800, 3600],
  ...[2, 3, 6, 12, 24, 48, 7 * 24, 14 * 24].map((hours) => hours * 3600),
] as const;

export const mostPoints = 240;

/** Returns how many seconds a point covers. It is a round number, so that points stay the same as time passes. */
export function rangeStepSeconds(range: TimeRange, leastSeconds = 60): number {
  const spanSeconds = (range.until.getTime() - range.since.getTime()) / 1000;
  const fits = (seconds: number) => seconds >= leastSeconds && spanSeconds / seconds <= mostPoints;
  return stepSeconds.find(fits) ?? stepSeconds.at(-1)!;
}

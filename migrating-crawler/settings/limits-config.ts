/**
 * The limits that a crawler's host sets in its settings file (`[limits]`). The coordinator learns some of them for planning
 * and can raise none. All can change while the crawler runs.
 */
import { z } from "zod";
import { isTimeZone } from "../core/local-time.ts";

const mebibyte = 1024 * 1024;

/** One thread relieves the main one, whose timers measure. More threads only help if pages arrive faster than one can extract. */
const defaultExtractionThreads = 1;

const hoursOfDay = z.string().refine((text) => parseHours(text) !== null, {
  error: 'must be hours such as "22:00-06:00" or "00:00-06:00, 20:00-24:00", "always" or "never"',
});

/** If any day is named, days that are not named have no hours. */
const day = hoursOfDay.default("never");
const hours = z.strictObject({
  ...{ monday: day, tuesday: day, wednesday: day, thursday: day, friday: day, saturday: day, sunday: day },
}) satisfies z.ZodType<Week>;

const onlyWhenIdle = z.strictObject({
  loadPerProcessor: z.number().min(0.01).max(1000).nullable().default(0.5),
  onMainsPower: z.boolean().default(true),
  usersAwayMinutes: z.number().min(0).max(10_080).default(10),
});

const bytes = (least: number) => z.int().min(least).max(1e15);

export const limitsSchema = z.strictObject({
  pagesPerDay: z.int().min(0).max(1_000_000_000).default(1_000_000),
  bytesPerDay: bytes(0).default(50 * 1024 * mebibyte),
  bytesPerMonth: bytes(0).nullable().default(null),
  kilobytesPerSecond: z.number().min(1).max(10_000_000).nullable().default(null),
  /**
   * Maximum number of hosts crawled at a time, each with at most one request. A host that rests for over ten seconds, or
   * leaves a request unanswered for over a quarter second, occupies no slot. Up to three times as many such hosts, and up to
   * 128 silent ones, are open besides.
   */
  concurrentHosts: z.int().min(1).max(10_000).default(32),
  probesPerSecond: z.int().min(0).max(10_000).default(50),
  openConnections: z.int().min(4).max(65_000).default(512),
  cpuShare: z.number().min(0.02).max(1024).nullable().default(null),
  memoryBytes: bytes(192 * mebibyte)
    .nullable()
    .default(null),
  diskBytes: bytes(16 * mebibyte)
    .nullable()
    .default(null),
  spoolBytes: z
    .int()
    .min(mebibyte)
    .max(1e12)
    .default(256 * mebibyte),
  extractionThreads: z.int().min(0).max(64).default(defaultExtractionThreads),
  hours: hours.nullable().default(null),
  timeZone: z
    .string()
    .refine(isTimeZone, { error: "must be a time zone such as Europe/Athens" })
    .nullable()
    .default(null),
  onlyWhenIdle: onlyWhenIdle.nullable().default(null),
  priority: z.int().min(0).max(19).default(19),
  ownNetwork: z.boolean().default(false),
  icmp: z.boolean().default(true),
});

export type CrawlerLimits = Readonly<z.infer<typeof limitsSchema>>;
export type IdleLimits = NonNullable<CrawlerLimits["onlyWhenIdle"]>;

/**
 * Parses the daily hours in which the crawler may work: "22:00-06:00" ends on the next morning, commas separate spans, and
 * "always" and "never" are allowed. Pure functions.
 */

const weekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"] as const;

export type Week = Readonly<Record<(typeof weekdays)[number], string>>;

/** Minutes since midnight. If `untilMinute` exceeds 1440, the span ends on the next day. */
interface HourSpan {
  readonly fromMinute: number;
  readonly untilMinute: number;
}

const minutesOfDay = 1440;
const mostSpans = 24;
const spanForm = /^(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})$/;

export function parseHours(text: string): readonly HourSpan[] | null {
  const words = text.trim().toLowerCase();
  if (words === "never") return [];
  if (words === "always") return [{ fromMinute: 0, untilMinute: minutesOfDay }];
  const parts = words.split(",", mostSpans + 1);
  if (parts.length > mostSpans) return null;
  const spans = parts.map((part) => spanOf(part.trim()));
  return spans.every((span) => span !== null) ? spans : null;
}

/** Checks this minute of this day (Sunday is 0), including spans that began on the previous day. */
export function isOpen(week: Week, day: number, minute: number): boolean {
  const today = spansOf(week, day);
  const yesterday = spansOf(week, (day + 6) % 7);
  return (
    today.some(({ fromMinute, untilMinute }) => minute >= fromMinute && minute < untilMinute) ||
    yesterday.some(({ untilMinute }) => minute + minutesOfDay < untilMinute)
  );
}

export function openMinutesPerWeek(week: Week): number {
  let open = 0;
  for (let minute = 0; minute < 7 * minutesOfDay; minute++) {
    if (isOpen(week, Math.floor(minute / minutesOfDay), minute % minutesOfDay)) open++;
  }
  return open;
}

function spansOf(week: Week, day: number): readonly HourSpan[] {
  return parseHours(week[weekdays[day]!]) ?? [];
}

function spanOf(text: string): HourSpan | null {
  const [, fromHour, fromMinutes, untilHour, untilMinutes] = spanForm.exec(text) ?? [];
  const fromMinute = minuteOf(fromHour, fromMinutes);
  const untilMinute = minuteOf(untilHour, untilMinutes);
  if (fromMinute === null || untilMinute === null || fromMinute === minutesOfDay) return null;
  if (fromMinute === untilMinute) return null;
  return { fromMinute, untilMinute: untilMinute > fromMinute ? untilMinute : untilMinute + minutesOfDay };
}

function minuteOf(hour: string | undefined, minute: string | undefined): number | null {
  const minutes = Number(hour) * 60 + Number(minute);
  return Number(minute) < 60 && minutes <= minutesOfDay ? minutes : null;
}

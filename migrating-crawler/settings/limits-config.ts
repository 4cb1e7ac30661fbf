/**
 * The limits that a crawler's host sets, as its settings file states them (`[limits]`). The coordinator is told of
 * some, to plan inside them; it can raise none. All of them can be changed while the crawler runs.
 */
import { z } from "zod";
import { isTimeZone } from "../core/local-time.ts";

const mebibyte = 1024 * 1024;

/** One thread keeps extraction off the main one, whose clocks measure; more only pay where pages come faster. */
const defaultExtractionThreads = 1;

const hoursOfDay = z.string().refine((text) => parseHours(text) !== null, {
  error: 'must be hours such as "22:00-06:00" or "00:00-06:00, 20:00-24:00", "always" or "never"',
});

/** A day that is not named has no hours, once another is. */
const day = hoursOfDay.default("never");
const hours = z.strictObject({
  ...{ monday: day, tuesday: day, wednesday: day, thursday: day, friday: day, saturday: day, sunday: day },
}) satisfies z.ZodType<Week>;

const onlyWhenIdle = z.strictObject({
  /** Load average of the last minute per processor, without what the crawler itself causes; null: any. */
  loadPerProcessor: z.number().min(0.01).max(1000).nullable().default(0.5),
  /** Not while a battery is being emptied. */
  onMainsPower: z.boolean().default(true),
  /** Nobody who is logged in has touched a terminal for so long; 0: users are not looked at. */
  usersAwayMinutes: z.number().min(0).max(10_080).default(10),
});

const bytes = (least: number) => z.int().min(least).max(1e15);

export const limitsSchema = z.strictObject({
  pagesPerDay: z.int().min(0).max(1_000_000_000).default(1_000_000),
  /**
   * Everything that the crawler's connections carry, both ways: pages, headers, robots.txt, TLS, probes and the link
   * to the coordinator. What TCP and IP add to it (3 to 5 %) no program is told.
   */
  bytesPerDay: bytes(0).default(50 * 1024 * mebibyte),
  /** The same over a calendar month; null: the day's bytes alone count. */
  bytesPerMonth: bytes(0).nullable().default(null),
  /** The same each second, in units of 1024 bytes; null: no limit. */
  kilobytesPerSecond: z.number().min(1).max(10_000_000).nullable().default(null),
  /**
   * Hosts that are dealt with at a time, each with one request at a time at most. One that is left alone for over
   * ten seconds, or keeps a request waiting for over a quarter of one, takes none of these places; of such ones so
   * many are open besides: three times as many as there are places, and up to 128 silent ones.
   */
  concurrentHosts: z.int().min(1).max(10_000).default(32),
  /**
   * Measurements that are begun in any second, whoever asks for them; one address is measured three times a second at most,
   * and as many at a time as there are places for hosts, up to 16. 0: none.
   */
  probesPerSecond: z.int().min(0).max(10_000).default(50),
  /** Connections that are open at a time: to sites, for probes, and the one to the coordinator. */
  openConnections: z.int().min(4).max(65_000).default(512),
  /** Processors' time, in processors: 0.5 is half of one, as in systemd's CPUQuota=50%; null: no limit. */
  cpuShare: z.number().min(0.02).max(1024).nullable().default(null),
  /** Resident memory of the process; near it, fewer hosts are crawled, and requests take 10 MiB each. Null: no limit. */
  memoryBytes: bytes(192 * mebibyte)
    .nullable()
    .default(null),
  /** Everything in the crawler's folder together; null: `spoolBytes` and WARC's own limit alone count. */
  diskBytes: bytes(16 * mebibyte)
    .nullable()
    .default(null),
  /** Disk that results waiting for the coordinator may take, of those. */
  spoolBytes: z
    .int()
    .min(mebibyte)
    .max(1e12)
    .default(256 * mebibyte),
  /** Threads that extract pages, besides the main one; 0: the main one does it. */
  extractionThreads: z.int().min(0).max(64).default(defaultExtractionThreads),
  /** When the crawler may fetch, by day of the week; null: at any time. */
  hours: hours.nullable().default(null),
  /** Of the hours, and of the day's and the month's end, as in Europe/Athens; null: the system's. */
  timeZone: z
    .string()
    .refine(isTimeZone, { error: "must be a time zone such as Europe/Athens" })
    .nullable()
    .default(null),
  /** Only while the machine has nothing else to do; null: always. */
  onlyWhenIdle: onlyWhenIdle.nullable().default(null),
  /** Scheduling priority as in nice(1): 19 gives way to everything else, 0 is usual. */
  priority: z.int().min(0).max(19).default(19),
  /** Whether public addresses in the networks of this machine's own interfaces may be contacted. */
  ownNetwork: z.boolean().default(false),
  /** Whether latency may be measured by ICMP echo (ping). */
  icmp: z.boolean().default(true),
});

export type CrawlerLimits = Readonly<z.infer<typeof limitsSchema>>;
export type IdleLimits = NonNullable<CrawlerLimits["onlyWhenIdle"]>;

/**
 * Hours of the day at which the crawler may work, as people write them: "22:00-06:00" begins in the evening and
 * ends on the next morning; several spans are separated by commas; "always" and "never" say what they say. Pure.
 */

const weekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"] as const;

export type Week = Readonly<Record<(typeof weekdays)[number], string>>;

/** Minutes since the day's midnight; `untilMinute` above 1440 lies on the next day. */
interface HourSpan {
  readonly fromMinute: number;
  readonly untilMinute: number;
}

const minutesOfDay = 1440;
const mostSpans = 24;
const spanForm = /^(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})$/;

/** Null when the text is none of the forms. */
export function parseHours(text: string): readonly HourSpan[] | null {
  const words = text.trim().toLowerCase();
  if (words === "never") return [];
  if (words === "always") return [{ fromMinute: 0, untilMinute: minutesOfDay }];
  const parts = words.split(",", mostSpans + 1);
  if (parts.length > mostSpans) return null;
  const spans = parts.map((part) => spanOf(part.trim()));
  return spans.every((span) => span !== null) ? spans : null;
}

/** Whether a week's hours hold this minute of this day (0: Sunday), the day before's night included. */
export function isOpen(week: Week, day: number, minute: number): boolean {
  const today = spansOf(week, day);
  const yesterday = spansOf(week, (day + 6) % 7);
  return (
    today.some(({ fromMinute, untilMinute }) => minute >= fromMinute && minute < untilMinute) ||
    yesterday.some(({ untilMinute }) => minute + minutesOfDay < untilMinute)
  );
}

/** Minutes of a week in which it is open. */
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

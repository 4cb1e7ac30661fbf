/**
 * Hours of the day at which the crawler may work, as people write them: "22:00-06:00" begins in the evening and
 * ends on the next morning; several spans are separated by commas; "always" and "never" say what they say. Pure.
 */

const weekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"] as const;
export type Week = Readonly<Record<(typeof weekdays)[number], string>>;

/** Minutes since the day's midnight; `untilMinute` above 1440 lies on the next day. */
export interface HourSpan {
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

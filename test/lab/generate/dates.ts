/** Days on which things were registered and changed, and the day that the files of a generation are of. */
import { draw } from "./path-random.ts";

const dayMs = 86_400_000;
const firstDayMs = Date.UTC(1996, 0, 1);
/** From 1996 to 2025, as `2012-05-04` and as `20120504`. */
const days = Array.from({ length: 10_900 }, (_, day) =>
  new Date(firstDayMs + day * dayMs).toISOString().slice(0, 10),
);
const compactDays = days.map(compactDay);

/** When an object was registered and when it was changed last, as numbers of days, in one draw. */
export interface Dates {
  readonly registered: number;
  readonly changed: number;
}

export function datesOf(path: number, edits: number): Dates {
  const registered = draw(path, 80) % days.length;
  return { registered, changed: registered + (draw(path, 81 + edits) % (days.length - registered)) };
}

export function isoDay(day: number): string {
  return days[day] as string;
}

/** `20120504`. */
export function compactDayOf(day: number): string {
  return compactDays[day] as string;
}

/** The first of a quarter, from 2026-01-01 on, ISO. */
export function fileDay(generation: number): string {
  return new Date(Date.UTC(2026, 3 * generation, 1)).toISOString().slice(0, 10);
}

export function compactDay(isoDay: string): string {
  return isoDay.replaceAll("-", "");
}

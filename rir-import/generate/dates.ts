/** Days on which things were registered and changed, and the day that the files of a generation are of. */
import { draw } from "./path-random.ts";

const dayMs = 86_400_000;
const firstDayMs = Date.UTC(1996, 0, 1);
const days = Array.from({ length: 10_900 }, (_, day) =>
  new Date(firstDayMs + day * dayMs).toISOString().slice(0, 10),
);

/** Between 1996 and 2025, ISO. */
export function registeredOn(path: number): string {
  return days[draw(path, 80) % days.length] as string;
}

/** Not before the day of registration. */
export function changedOn(path: number): string {
  const registered = draw(path, 80) % days.length;
  return days[registered + (draw(path, 81) % (days.length - registered))] as string;
}

/** The first of a quarter, from 2026-01-01 on, ISO. */
export function fileDay(generation: number): string {
  return new Date(Date.UTC(2026, 3 * generation, 1)).toISOString().slice(0, 10);
}

export function compactDay(isoDay: string): string {
  return isoDay.replaceAll("-", "");
}

/** Amounts and times as people read them. */
import { bytesInWords } from "../limits/limit-usage.ts";
import type { PaceReport } from "./status-report.ts";

/** `1 site`, `12,000 sites`; `many` where an "s" does not do. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** `4 min`, `3 h 20 min`, `2 days`. */
export function durationInWords(ms: number): string {
  const minutes = Math.round(Math.max(0, ms) / 60_000);
  if (minutes < 1) return `${Math.round(Math.max(0, ms) / 1000)} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

/** `2026-11-22 12:40 UTC`. */
export function minuteOf(at: string): string {
  return `${at.slice(0, 16).replace("T", " ")} UTC`;
}

export function amountInWords(amount: number, unit: string): string {
  if (unit === "bytes") return bytesInWords(amount);
  const rounded = Number.isInteger(amount) ? amount : Math.round(amount * 100) / 100;
  return `${rounded.toLocaleString("en")} ${unit}`.trim();
}

/** `slow down: 4 sites at a time since 2026-11-22 12:40 UTC (2 host slices due or in hand, under 4: …)`. */
export function paceInWords({ pace, places, since, reason }: PaceReport): string {
  const allowed =
    places === null ? "as many sites at a time as the limits allow" : `${plural(places, "site")} at a time`;
  return `${pace.replace("-", " ")}: ${allowed}, since ${minuteOf(since)} (${reason})`;
}

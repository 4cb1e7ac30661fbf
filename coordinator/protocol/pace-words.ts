/** The rate that a host tolerates (result.ts, `ToleratedReport`) in words, for both ends. */
import type { ToleratedReport } from "./result.ts";

export function perHourWords(perHour: number): string {
  const [count, unit] = perHour >= 60 ? [perHour / 60, "minute"] : [perHour, "hour"];
  const rounded = count < 9.95 ? Math.round(count * 10) / 10 : Math.round(count);
  return `${rounded.toLocaleString("en-GB")} ${rounded === 1 ? "request" : "requests"} per ${unit}`;
}

/** "it answered 429 or 503 at 60 requests per minute". */
export function rateLimitWords({
  limitedBy,
  refusedPerHour,
}: Pick<ToleratedReport, "limitedBy" | "refusedPerHour">): string {
  if (limitedBy === "slow") return "its answers took several times longer than usual";
  const what = limitedBy === "silent" ? "it stopped answering" : "it answered 429 or 503";
  return refusedPerHour === 0 ? what : `${what} at ${perHourWords(refusedPerHour)}`;
}

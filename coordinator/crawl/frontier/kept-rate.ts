/**
 * The request rate that a host tolerates (migrating-crawler/limits/tolerated-rate), as last reported: column
 * frontier_host.tolerated, always read and written as a whole. It goes with the host's next lease, whoever gets it.
 */
import type { ToleratedReport } from "#protocol/result";

export interface KeptRate extends Pick<ToleratedReport, "perHour" | "limitedBy" | "refusedPerHour"> {
  /** Null when no refusal is remembered. */
  readonly refusedAt: string | null;
  readonly at: string;
}

/** `at` is by the coordinator's clock. */
export function keptRate(told: ToleratedReport, at: Date): KeptRate {
  const { perHour, limitedBy, refusedPerHour, refusedMsAgo, saidMsAgo } = told;
  const before = (ms: number) => new Date(at.getTime() - ms).toISOString();
  const refusedAt = refusedPerHour === 0 ? null : before(refusedMsAgo);
  return {
    perHour: tenth(perHour),
    limitedBy,
    refusedPerHour: tenth(refusedPerHour),
    refusedAt,
    at: before(saidMsAgo),
  };
}

export function toldRate(kept: KeptRate, now: Date): ToleratedReport {
  const { perHour, limitedBy, refusedPerHour, refusedAt, at } = kept;
  const ago = (then: string | null) =>
    then === null ? 0 : Math.min(longestAgoMs, Math.max(0, now.getTime() - Date.parse(then)));
  return { perHour, limitedBy, refusedPerHour, refusedMsAgo: ago(refusedAt), saidMsAgo: ago(at) };
}

/** The protocol's limit; by then the memory has long faded. */
const longestAgoMs = 366 * 86_400_000;

const tenth = (value: number) => Math.round(10 * value) / 10;

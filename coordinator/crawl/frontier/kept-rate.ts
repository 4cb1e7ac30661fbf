/**
 * The rate that a host tolerates (migrating-crawler/limits/tolerated-rate), as the crawler that asked it last found it: column
 * frontier_host.tolerated, always written and read as a whole. It goes with the host's next lease, whoever has it.
 */
import type { ToleratedReport } from "#protocol/result";

export interface KeptRate extends Pick<ToleratedReport, "perHour" | "limitedBy" | "refusedPerHour"> {
  /** Null: no refusal is remembered. */
  readonly refusedAt: string | null;
  /** When this was found. */
  readonly at: string;
}

/** `at`: by the coordinator's clock. */
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

/** As the protocol has it; the memory of it has faded long before. */
const longestAgoMs = 366 * 86_400_000;

const tenth = (value: number) => Math.round(10 * value) / 10;

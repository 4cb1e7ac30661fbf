/**
 * The request rate that a host tolerates (migrating-crawler/limits/tolerated-rate), as last reported: column
 * frontier_host.tolerated, always read and written as a whole. It is part of the host's next lease, whichever crawler gets
 * it.
 */

import { spanWords, whenWords } from "#core/format";
import type { ToleratedReport } from "#protocol/result";
import { perHourWords, rateLimitWords } from "#protocol/result";
import type { HostReport } from "./frontier-reports-api.ts";

export interface KeptRate extends Pick<ToleratedReport, "perHour" | "limitedBy" | "refusedPerHour"> {
  readonly refusedAt: string | null;
  readonly at: string;
}

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

/** Maximum age in the protocol. The memory of a refusal fades long before that. */
const longestAgoMs = 366 * 86_400_000;

const tenth = (value: number) => Math.round(10 * value) / 10;

// Explains why a host is crawled slowly: by its robots.txt, by a cap, or by what it was found to tolerate.

/** Clauses. Empty if only the usual pace applies. */
export function paceReasons(
  { pace, capDelayMs }: Pick<HostReport, "pace" | "capDelayMs">,
  now: Date,
): string[] {
  const reasons: string[] = [];
  if (capDelayMs !== null)
    reasons.push(
      `an operator's cap keeps requests ${delayWords(capDelayMs)} apart (nearcrawl site-caps list)`,
    );
  if (pace === null) return reasons;
  const { crawlDelayMs, backOffMs, backedOffAt, tolerated } = pace;
  if (backOffMs !== null && backedOffAt !== null && Date.parse(backedOffAt) + backOffMs > now.getTime()) {
    const since = whenWords(backedOffAt, now);
    reasons.push(
      `it had too much (status 429 or 503) ${since}, and is backed off from for ${spanWords(backOffMs / 1000)}`,
    );
  }
  if (crawlDelayMs > 0) {
    reasons.push(`its robots.txt asks for ${delayWords(crawlDelayMs)} between requests (Crawl-delay)`);
  }
  if (tolerated !== null) {
    const when = tolerated.refusedAt === null ? "" : `, ${whenWords(tolerated.refusedAt, now)}`;
    reasons.push(`it tolerates ${perHourWords(tolerated.perHour)}: ${rateLimitWords(tolerated)}${when}`);
  }
  return reasons;
}

/** Crawl-delays are short and may be fractions of a second. */
export function delayWords(ms: number): string {
  return ms < 10_000 ? `${ms / 1000} s` : spanWords(ms / 1000);
}

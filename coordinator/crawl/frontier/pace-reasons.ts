/** Explains why a host is crawled slowly: by its robots.txt, or by what it was found to tolerate. */

import { spanWords, whenWords } from "#core/format";
import { perHourWords, rateLimitWords } from "#protocol/result";
import type { HostReport } from "./frontier-reports-api.ts";

/** Clauses; empty when only the usual pace applies. */
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

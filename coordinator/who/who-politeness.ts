/** In plain words: how a host wants to be asked, and how it was asked last. */

import { howMany, spanWords, whenWords } from "#core/format";
import type { HostReport } from "../frontier/frontier-reports.ts";

export const robotsWords: Readonly<Record<NonNullable<HostReport["robots"]>["state"], string>> = {
  rules: "read and followed",
  none: "there is none, so all is allowed",
  closed: "answered with an error, so all is disallowed",
  unreachable: "could not be reached, so all is disallowed",
};

/** "HTTP/2, TLSv1.3"; without TLS it says so. */
export function connectionText({ http, tls }: NonNullable<HostReport["connection"]>): string {
  return `HTTP/${http}, ${tls ?? "without TLS"}`;
}

/** One line of facts: budget, robots.txt, Crawl-delay, connection; as much as is known. */
export function hostFactsText({ budget, robots, pace, connection }: HostReport): string {
  const facts = [
    `budget ${howMany(budget.earnedUrls, "URL")} earned${budget.heldUrls > 0 ? `, ${budget.heldUrls} held back` : ""}${budget.leftOutUrls > 0 ? `, ${budget.leftOutUrls.toLocaleString("en-GB")} times one left out` : ""}`,
    robots && `robots.txt ${robotsWords[robots.state]}`,
    pace && pace.crawlDelayMs > 0 && `Crawl-delay ${delayWords(pace.crawlDelayMs)}`,
    connection && connectionText(connection),
  ];
  return facts.filter(Boolean).join(" · ");
}

/** Whether robots.txt, as it was found last, keeps every URL of the host from being fetched. */
export function isClosed(host: HostReport): boolean {
  return host.robots?.state === "closed" || host.robots?.state === "unreachable";
}

/** Why the host is asked slowly, in part sentences; none: nothing but the usual pace. */
export function paceReasons({ pace }: HostReport, now: Date): string[] {
  if (pace === null) return [];
  const reasons: string[] = [];
  if (
    pace.backOffMs !== null &&
    pace.backedOffAt !== null &&
    Date.parse(pace.backedOffAt) + pace.backOffMs > now.getTime()
  ) {
    const since = whenWords(pace.backedOffAt, now);
    reasons.push(
      `it had too much (status 429 or 503) ${since}, and is backed off from for ${spanWords(pace.backOffMs / 1000)}`,
    );
  }
  if (pace.crawlDelayMs > 0) {
    reasons.push(`its robots.txt asks for ${delayWords(pace.crawlDelayMs)} between requests (Crawl-delay)`);
  }
  return reasons;
}

/** Crawl-delays are short, and may be parts of a second. */
function delayWords(ms: number): string {
  return ms < 10_000 ? `${ms / 1000} s` : spanWords(ms / 1000);
}

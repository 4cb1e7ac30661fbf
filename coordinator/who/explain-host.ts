/** Of a whole host, in plain words: its address, its robots.txt, its budget and its pace. */

import { howMany, instantWords, whenWords } from "#core/format";
import type { HostReport } from "../frontier/frontier-reports.ts";
import type { CrawlScope } from "../frontier/ports.ts";
import { because, note, stop } from "./explain.ts";
import type { Standing, TakenFor } from "./who-answer.ts";
import { usedUpWords } from "./who-budget.ts";
import { isClosed, paceReasons, robotsWords } from "./who-politeness.ts";

export interface HostFacts {
  readonly asked: TakenFor["type"];
  readonly host: HostReport | null;
  /** Why an unknown host has no addresses, when it was looked up now. */
  readonly lookUpFailure: string | null;
  /** Null where the coordinator's settings are not at hand. */
  readonly scope: CrawlScope | null;
}

export function hostLines(facts: HostFacts, now: Date): Standing[] {
  const { host } = facts;
  if (host === null) {
    if (facts.lookUpFailure === null) return [];
    return [stop("host-unresolvable", `Its address cannot be found: ${facts.lookUpFailure}.`)];
  }
  switch (host.state) {
    case "resolved":
      return [];
    case "unresolved":
      return [
        stop(
          "host-unresolved",
          `Its address has not been looked up yet; due ${whenWords(host.resolveAt, now)}.`,
        ),
      ];
    case "unresolvable":
      return [
        stop(
          "host-unresolvable",
          `Its address cannot be found${because(host.stateReason)} (${howMany(host.resolveFailures, "failed look-up")}); asked again ${whenWords(host.resolveAt, now)}.`,
        ),
      ];
    case "refused":
      return [stop("host-refused", `Its address is refused${because(host.stateReason)}.`)];
  }
}

export function paceLines(facts: HostFacts, now: Date): Standing[] {
  const { host } = facts;
  if (host === null) return [];
  if (host.lease !== null) {
    return [
      note(
        "lease-open",
        `${host.lease.crawler} has this host in hand since ${instantWords(host.lease.grantedAt)}, with ${howMany(host.lease.openUrls, "URL")} to go; the lease ends ${whenWords(host.lease.expiresAt, now)} at the latest.`,
      ),
    ];
  }
  const reasons = paceReasons(host, now);
  if (host.notBefore !== null && Date.parse(host.notBefore) > now.getTime()) {
    const until = `${instantWords(host.notBefore)}, ${whenWords(host.notBefore, now)}`;
    const why = because(reasons.join("; and "));
    return [stop("politeness", `Politeness: the host is left alone until ${until}${why}.`)];
  }
  const slow =
    reasons.length > 0
      ? [note("slow-pace", `The host is asked slowly${because(reasons.join("; and "))}.`)]
      : [];
  if (facts.asked === "host" && host.state === "resolved" && host.dueAt === null) {
    return [...slow, stop("nothing-due", "Nothing of this host is due.")];
  }
  return slow;
}

/** What holds for all of the host: its robots.txt, and what is held back of it. */
export function wholeHostLines({ asked, host, scope }: HostFacts, now: Date): Standing[] {
  if (host === null) return [];
  const lines: Standing[] = [];
  if (host.robots !== null && isClosed(host)) {
    const words = `Its robots.txt ${robotsWords[host.robots.state]} (RFC 9309), as it was found ${whenWords(host.robots.at, now)}. It is asked for again after a day.`;
    lines.push(asked === "host" ? stop("robots-closed", words) : note("robots-closed", words));
  }
  if (asked === "host" && host.budget.heldUrls > 0) {
    const why = usedUpWords(host, scope?.pagesPerHost ?? Number.POSITIVE_INFINITY);
    const held = `${howMany(host.budget.heldUrls, "URL")} of it ${host.budget.heldUrls === 1 ? "is" : "are"} held back`;
    lines.push(note("host-budget-used-up", `${held}: ${why}.`));
  }
  if (host.budget.leftOutUrls > 0) lines.push(leftOutLine(host, scope));
  return lines;
}

/** Beyond what is held nothing is kept, so that a host that makes up URLs without end takes no room. */
function leftOutLine({ budget, urlCount }: HostReport, scope: CrawlScope | null): Standing {
  const times = `${budget.leftOutUrls.toLocaleString("en-GB")} ${budget.leftOutUrls === 1 ? "time" : "times"}`;
  const limit = scope?.pagesPerHost ?? Number.POSITIVE_INFINITY;
  const why =
    urlCount + budget.heldUrls >= limit
      ? `scope.pagesPerHost allows it ${howMany(limit, "URL")}`
      : "its budget is used up, and as many URLs as may wait are held back";
  return note(
    "host-urls-left-out",
    `A URL of it was left out ${times}: ${why}. What is left out is not kept; it comes in when a page links to it again and there is room.`,
  );
}

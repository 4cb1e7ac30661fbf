/** Explains a host in plain words: address, robots.txt, budget and pace. */

import { because, note, type Standing, stop } from "#core/explanation";
import { howMany, instantWords, whenWords } from "#core/format";
import { gateWords } from "#protocol/bot-gate";
import {
  goodPageUrls,
  type HostPages,
  hostBudget,
  paidHostRestDays,
  paymentsInARow,
} from "../../crawl/frontier/budgets.ts";
import type { CrawlScope } from "../../crawl/frontier/frontier.ts";
import type { HostReport, UrlReport } from "../../crawl/frontier/frontier-reports-api.ts";
import { paceReasons } from "../../crawl/frontier/host-pace.ts";
import type { TakenFor } from "./who-api.ts";

export interface HostFacts {
  readonly asked: TakenFor["type"];
  readonly host: HostReport | null;
  /** Why resolving an unknown host failed just now. */
  readonly lookUpFailure: string | null;
  /** Null if the settings are not available. */
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
          `Its address cannot be found${because(host.stateReason)} ` +
            `(${howMany(host.resolveFailures, "failed look-up")}); asked again ${whenWords(host.resolveAt, now)}.`,
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
        `${host.lease.crawler} has had this host in progress since ${instantWords(host.lease.grantedAt)}, ` +
          `with ${howMany(host.lease.openUrls, "URL")} to go; the lease ends ${whenWords(host.lease.expiresAt, now)} at the latest.`,
      ),
    ];
  }
  const reasons = paceReasons(host, now);
  if (host.notBefore !== null && Date.parse(host.notBefore) > now.getTime()) {
    const until = `${instantWords(host.notBefore)}, ${whenWords(host.notBefore, now)}`;
    const why = because(reasons.join("; and "));
    return [stop("politeness", `Politeness: no request to the host before ${until}${why}.`)];
  }
  const slow =
    reasons.length > 0
      ? [note("slow-pace", `The host is asked slowly${because(reasons.join("; and "))}.`)]
      : [];
  if (facts.asked !== "host" || host.state !== "resolved") return slow;
  if (host.dueAt === null) return [...slow, stop("nothing-due", "Nothing on this host is due.")];
  if (Date.parse(host.dueAt) <= now.getTime()) return slow;
  const words = `Its next fetch is scheduled for ${instantWords(host.dueAt)}, ${whenWords(host.dueAt, now)}.`;
  return [...slow, stop("not-due", words)];
}

/** Explains the state of the whole host: robots.txt, bot gate, payment, budgets. */
export function wholeHostLines({ asked, host, scope }: HostFacts, now: Date): Standing[] {
  if (host === null) return [];
  const lines: Standing[] = [];
  lines.push(...gateLine(host, now));
  if (host.robots !== null && isClosed(host) && host.botGate?.of !== "robots") {
    const words =
      `Its robots.txt ${robotsWords[host.robots.state]} (RFC 9309), as it was found ${whenWords(host.robots.at, now)}. ` +
      `It is asked for again after a day.`;
    lines.push(asked === "host" ? stop("robots-closed", words) : note("robots-closed", words));
  }
  lines.push(...paymentLine(host, now));
  if (asked === "host" && host.budget.heldUrls > 0) {
    const why = usedUpWords(host, scope?.pagesPerHost ?? Number.POSITIVE_INFINITY);
    const held = `${howMany(host.budget.heldUrls, "URL")} of it ${host.budget.heldUrls === 1 ? "is" : "are"} held back`;
    lines.push(note("host-budget-used-up", `${held}: ${why}.`));
  }
  if (host.budget.leftOutUrls > 0) lines.push(leftOutLine(host, scope));
  lines.push(...domainLine(host));
  return lines;
}

function gateLine({ botGate, notBefore }: HostReport, now: Date): Standing[] {
  if (botGate === null) return [];
  const { provider, of, tries, since } = botGate;
  const rests = notBefore !== null && Date.parse(notBefore) > now.getTime();
  const what = of === "robots" ? "robots.txt, so that everything counts as disallowed" : "its pages";
  const times = tries === 1 ? "" : `, at ${howMany(tries, "try", "tries")} in a row`;
  const next = rests ? `the next try is ${whenWords(notBefore, now)}` : "it is tried next";
  const words =
    `It is behind ${gateWords(provider)}, which has answered in place of ${what} since ${instantWords(since)}${times}. ` +
    `Pages stay as they were last read; ${next}, with one URL. A gate is never solved or got round: its site can let the crawler in.`;
  return [rests ? stop("bot-gate", words) : note("bot-gate", words)];
}

function paymentLine({ payment }: HostReport, now: Date): Standing[] {
  if (payment === null) return [];
  const { inARow, askedAt, price } = payment;
  const which =
    inARow === 1 ? "The last page asked of it" : `The last ${howMany(inARow, "page")} asked of it`;
  const when = askedAt === null ? "" : `, the latest ${whenWords(askedAt, now)}`;
  const asked = `${which} had status 402, payment required${when}; ${price === null ? "no price is named" : `its price: ${price}`}.`;
  const rests =
    inARow < paymentsInARow
      ? ""
      : ` It is skipped for ${paidHostRestDays} days, then asked for one URL at a time until it answers otherwise.`;
  return [note("payment-required", `${asked}${rests}`)];
}

function domainLine({ domain }: HostReport): Standing[] {
  if (domain === null || domain.waiting + domain.leftOut === 0) return [];
  const left =
    domain.leftOut > 0 ? `; URLs on them were skipped ${domain.leftOut.toLocaleString("en-GB")} times` : "";
  const words =
    `Links bring more new hosts of ${domain.domain} than are let in a day, or its pages link to more: ` +
    `${howMany(domain.hosts, "host")} of it came in by links, ${domain.newToday} of them today; ` +
    `${howMany(domain.waiting, "URL")} on others wait for a later day${left}.`;
  return [note("domain-budget-used-up", words)];
}

/** Explains that URLs beyond the limit are not stored, so that a host with endless URLs takes no space. */
function leftOutLine({ budget, urlCount }: HostReport, scope: CrawlScope | null): Standing {
  const times = `${budget.leftOutUrls.toLocaleString("en-GB")} ${budget.leftOutUrls === 1 ? "time" : "times"}`;
  const limit = scope?.pagesPerHost ?? Number.POSITIVE_INFINITY;
  const why =
    urlCount + budget.heldUrls >= limit
      ? `scope.pagesPerHost allows it ${howMany(limit, "URL")}`
      : "its budget is used up, and as many URLs as may wait are held back";
  return note(
    "host-urls-left-out",
    `URLs skipped ${times}: ${why}. A skipped URL is not kept; it is admitted when a page links to it again and there is room.`,
  );
}

// A host's budget in the frontier, and what limits it.

/** Such as "the host's budget of 50 URLs is used up: 71 % of the 40 that were judged are near-duplicates of others". */
export function usedUpWords(host: HostReport, limit: number): string {
  const urls = hostBudget(host.budget.pages, limit);
  return `the host's budget of ${howMany(urls, "URL")} is used up: ${reasonWords(host.budget.pages)}`;
}

/** Whether its budget, rather than the operator's limit, limits the host. */
export function isUsedUp(host: HostReport, limit: number): boolean {
  return host.urlCount < limit && host.urlCount >= hostBudget(host.budget.pages, limit);
}

export const worthWords: Readonly<Record<NonNullable<UrlReport["worth"]>, string>> = {
  good: "a page with a text of its own",
  "near-duplicate": "nearly the same text as another page",
  "not-found": "says “not found” with status 200",
  empty: "no text to speak of",
  failed: "an error that will not pass",
};

const badWords: Readonly<Partial<Record<keyof HostPages, string>>> = {
  nearDuplicates: "near-duplicates of others",
  notFound: "pages that say “not found” with status 200",
  empty: "without text",
  failed: "errors that will not pass",
};

/** Smaller shares are not mentioned. */
const leastShare = 0.05;

function reasonWords(pages: HostPages): string {
  const judged = pages.good + pages.nearDuplicates + pages.notFound + pages.empty + pages.failed;
  const bad = Object.entries(badWords)
    .map(([figure, words]) => ({ words, share: pages[figure as keyof HostPages] / Math.max(1, judged) }))
    .filter(({ share }) => share >= leastShare)
    .sort((a, b) => b.share - a.share)
    .map(({ words, share }) => `${Math.round(100 * share)} % are ${words}`);
  const traps =
    pages.trappedLinks > judged ? [`${howMany(pages.trappedLinks, "link")} of them look like a trap`] : [];
  if (judged === 0) return `it grows by ${goodPageUrls} with every good page, and none was fetched yet`;
  const of = `of ${howMany(judged, "URL")} that ${judged === 1 ? "was" : "were"} judged`;
  const reasons = [...bad, ...traps];
  if (reasons.length === 0)
    return `it grows by ${goodPageUrls} with every good page, ${of} ${pages.good} so far`;
  return `${of}, ${reasons.join(", ")}`;
}

export const robotsWords: Readonly<Record<NonNullable<HostReport["robots"]>["state"], string>> = {
  rules: "read and followed",
  none: "there is none, so all is allowed",
  closed: "answered with an error, so all is disallowed",
  unreachable: "could not be reached, so all is disallowed",
};

/** Such as "HTTP/2, TLSv1.3" or "HTTP/1.1, without TLS". */
export function connectionText({ http, tls }: NonNullable<HostReport["connection"]>): string {
  return `HTTP/${http}, ${tls ?? "without TLS"}`;
}

/** Whether the last robots.txt disallows the whole host. */
function isClosed(host: HostReport): boolean {
  return host.robots?.state === "closed" || host.robots?.state === "unreachable";
}

/**
 * In plain words: what stands in the way of the next fetch, or how it comes about. A pure function of what
 * is known; every line that holds is told, the ones that stop everything first.
 */

import { because, note, type Standing, stop } from "#core/explanation";
import { howMany, instantWords, whenWords } from "#core/format";
import { isIpv6Text } from "#core/ip/address";
import { maySearch } from "#protocol/preferences";
import { notSearchedWords } from "../../crawl/batch/stated-uses.ts";
import { type ForeignOwner, ownerLines } from "../../crawl/federation/foreign-owner.ts";
import { type LeavingChannel, outsideChannel } from "../../crawl/frontier/channel.ts";
import { optedOutUrl } from "../../crawl/frontier/frontier.ts";
import type { UrlReport, WaitingReport } from "../../crawl/frontier/frontier-reports-api.ts";
import type { ProbeRound } from "../../place/delegation/rounds-api.ts";
import type { ChainSubnet, EffectiveDelegation } from "../../place/subnets/subnets-api.ts";
import type { SiteWishes } from "../../run/opt-outs/opt-out.ts";
import { type DomainSetFacts, domainSetLines, type FinerFacts, finerLines } from "./explain-finer.ts";
import {
  type HostFacts,
  hostLines,
  isUsedUp,
  paceLines,
  usedUpWords,
  wholeHostLines,
} from "./explain-host.ts";
import { leftOutLine, takenOutLine, wishLines } from "./explain-url.ts";
import type { CrawlerReport } from "./who-api.ts";

export interface WhoFacts extends FinerFacts, HostFacts {
  readonly wishes: SiteWishes;
  /** Whose it is, where that is another coordinator; absent: this one's. */
  readonly owner?: ForeignOwner | null;
  /** Absent: neither a host nor a URL was asked for. */
  readonly domainSets?: DomainSetFacts;
  readonly url: UrlReport | null;
  /** Why the URL was refused when somebody submitted it. */
  readonly rejection: string | null;
  /** Absent or null: no channel leaves the URL out. */
  readonly leavingChannel?: LeavingChannel | null;
  readonly addresses: readonly string[];
  /** The special-purpose block that holds the address, in words. */
  readonly specialPurpose: string | null;
  readonly chain: readonly ChainSubnet[];
  readonly effective: EffectiveDelegation | null;
  readonly round: ProbeRound | null;
  readonly waiting: WaitingReport | null;
  /** The crawler of the effective delegation. */
  readonly crawler: CrawlerReport | null;
  readonly needsUnspokenIpv6: boolean;
}

export function standingOf(facts: WhoFacts, now: Date): Standing[] {
  const lines = [
    ...wishLines(facts.wishes, now),
    ...ownerLines(facts.owner),
    ...knownLines(facts),
    ...hostLines(facts, now),
    ...wholeHostLines(facts, now),
    ...urlLines(facts, now),
    ...(ipv6Line(facts) ?? placeLines(facts)),
    ...finerLines(facts),
    ...domainSetLines(facts.domainSets, facts.effective?.crawler ?? null),
    ...crawlerLines(facts.crawler, now),
    ...paceLines(facts, now),
  ];
  if (lines.some((line) => line.stops)) return lines;
  return [...lines, ...readyLine(facts)];
}

function knownLines(facts: WhoFacts): Standing[] {
  if (facts.rejection !== null) {
    return [stop("url-rejected", `It was submitted and refused: ${facts.rejection}.`)];
  }
  if (facts.asked !== "url" && facts.asked !== "host") return [];
  if (facts.owner) return [];
  if (facts.host === null) {
    return [
      stop(
        "host-unknown",
        "The frontier holds nothing of this host: nobody has submitted a URL of it, and no crawled page led to it within the limits of the crawl.",
      ),
    ];
  }
  if (facts.asked === "host" || facts.url !== null || facts.wishes.optOut !== null) return [];
  if (facts.leavingChannel) return [leftOutLine(facts.leavingChannel)];
  if (facts.scope !== null && facts.host.urlCount >= facts.scope.pagesPerHost) {
    return [
      stop(
        "host-budget-reached",
        `This URL is not in the frontier: the host has its full ${howMany(facts.scope.pagesPerHost, "page")}, the most that the settings allow per host.`,
      ),
    ];
  }
  if (facts.scope !== null && isUsedUp(facts.host, facts.scope.pagesPerHost)) {
    const words = usedUpWords(facts.host, facts.scope.pagesPerHost);
    return [stop("host-budget-used-up", `This URL is not in the frontier, and ${words}.`)];
  }
  return [
    stop(
      "url-unknown",
      `This URL is not in the frontier, though ${howMany(facts.host.urlCount, "other URL")} of its host ${facts.host.urlCount === 1 ? "is" : "are"}: ` +
        `nobody has submitted it, and no crawled page links to it within the allowed depth.`,
    ),
  ];
}

function urlLines(facts: WhoFacts, now: Date): Standing[] {
  const { url, host } = facts;
  if (url === null) return [];
  if (url.state === "held") {
    const why = host && usedUpWords(host, facts.scope?.pagesPerHost ?? Number.POSITIVE_INFINITY);
    return [
      stop("host-budget-used-up", `It is held back${because(why)}. It comes in when the budget grows.`),
    ];
  }
  if (url.state === "blocked-by-robots") {
    return [stop("robots-refused", `The site's robots.txt disallows it${because(url.lastReason)}.`)];
  }
  if (url.state === "refused" && url.lastOutcome === "refused-address") {
    return [
      stop(
        "address-refused",
        `The crawler found it at an address that is never crawled${because(url.lastReason)}.`,
      ),
    ];
  }
  if (url.state === "refused" && facts.host?.state === "refused") return [];
  if (url.lastOutcome === optedOutUrl && url.state === "refused") return [];
  if (url.lastOutcome === outsideChannel && url.state === "refused") return [takenOutLine(url)];
  if (url.state === "refused") return [stop("refused", `It is refused${because(url.lastReason)}.`)];
  if (url.state === "payment-required") {
    const again = url.nextFetchAt === null ? "" : ` It is asked again ${whenWords(url.nextFetchAt, now)}.`;
    return [stop("payment-required", `The site answers with status 402${because(url.lastReason)}.${again}`)];
  }
  if (url.state === "gone") {
    const status = url.lastStatus === null ? "" : ` with status ${url.lastStatus}`;
    return [
      stop(
        "gone",
        `It is gone: the site answered${status}${because(url.lastReason)}. It is not fetched any more.`,
      ),
    ];
  }
  const failing =
    url.failures > 0
      ? [
          note(
            "failing",
            `The last ${howMany(url.failures, "attempt")} failed${because(url.lastReason ?? url.lastOutcome)}.`,
          ),
        ]
      : [];
  return [...failing, ...searchLine(url), ...pageLines(url), ...dueLine(url, now)];
}

/** What keeps a page that is fetched out of the index. */
function searchLine({ stated }: UrlReport): Standing[] {
  if (stated === null || maySearch(stated.statements)) return [];
  return [note("not-searched", notSearchedWords(stated.statements))];
}

/** Lines about a page that redirects, or that has another page's text. */
function pageLines(url: UrlReport): Standing[] {
  if (url.lastOutcome === "redirected") {
    return [
      note(
        "redirects",
        `It redirects, with status ${url.lastStatus ?? "unknown"}${because(url.lastReason)}.`,
      ),
    ];
  }
  const original = url.page?.duplicateOf ?? null;
  if (original === null) return [];
  return [note("near-duplicate", `Its text is nearly that of ${original}; a search shows one of the two.`)];
}

function dueLine(url: UrlReport, now: Date): Standing[] {
  if (url.state !== "scheduled" || url.nextFetchAt === null) return [];
  const last = url.lastFetchedAt === null ? "" : ` Last fetched ${whenWords(url.lastFetchedAt, now)}.`;
  return [
    stop(
      "not-due",
      `Scheduled for ${instantWords(url.nextFetchAt)}, ${whenWords(url.nextFetchAt, now)}.${last}`,
    ),
  ];
}

/** Null: who crawls it speaks IPv6, or it takes none. */
function ipv6Line({ needsUnspokenIpv6, addresses, crawler }: WhoFacts): Standing[] | null {
  if (needsUnspokenIpv6)
    return [stop("no-ipv6", "It has only IPv6 addresses, and no crawler that is online speaks IPv6.")];
  if (crawler?.speaksIpv6 !== false || !isIpv6Text(addresses[0] ?? "")) return null;
  const words = `It has only IPv6 addresses, and ${crawler.name} does not speak IPv6: its subnet goes to a crawler that does.`;
  return [stop("no-ipv6", words)];
}

function placeLines(facts: WhoFacts): Standing[] {
  if (facts.specialPurpose !== null && facts.host?.state !== "resolved" && facts.host?.state !== "refused") {
    return [stop("special-purpose", `Its address is never crawled: ${facts.specialPurpose}.`)];
  }
  const located = facts.addresses.length > 0 || facts.asked === "range" || facts.asked === "address";
  if (facts.leaf === null) {
    return located
      ? [stop("not-in-registry", "No registered subnet holds its address, so it cannot be delegated.")]
      : [];
  }
  if (facts.leaf.delegation !== null || facts.finer !== null) return [];
  if (facts.round !== null && facts.round.subnetId === facts.leaf.subnetId && facts.round.crawler === null) {
    return [
      stop(
        "nobody-could-take-it",
        `The last probe round found no crawler for its subnet: ${facts.round.reasonWords} It will be retried.`,
      ),
    ];
  }
  return waitsLine(facts);
}

function waitsLine(facts: WhoFacts): Standing[] {
  const range = facts.leaf?.range ?? "";
  const above = facts.effective
    ? ` Above it, ${facts.effective.range} belongs to ${facts.effective.crawler.name}.`
    : "";
  if ((facts.waiting?.hosts ?? 0) > 0 || facts.host?.state === "resolved") {
    return [stop("waits-for-round", `Its subnet ${range} waits for a probe round of its own.${above}`)];
  }
  const words = `Its subnet ${range} is not assigned directly: nothing in it was due yet, so no probe round was held.${above}`;
  return [facts.effective ? note("waits-for-round", words) : stop("waits-for-round", words)];
}

function crawlerLines(crawler: CrawlerReport | null, now: Date): Standing[] {
  if (crawler === null) return [];
  if (crawler.state === "offline") {
    const seen =
      crawler.lastSeenAt === null ? "never seen" : `last seen ${whenWords(crawler.lastSeenAt, now)}`;
    return [
      stop("crawler-offline", `${crawler.name} is offline${because(crawler.offlineReason)} (${seen}).`),
    ];
  }
  if (crawler.state === "draining") {
    return [
      stop("crawler-draining", `${crawler.name} is draining: it finishes what it has and takes nothing new.`),
    ];
  }
  if (crawler.holdingBack.length === 0) return [];
  return [note("crawler-held-back", `${crawler.name} is idle: ${crawler.holdingBack.join("; ")}.`)];
}

function readyLine(facts: WhoFacts): Standing[] {
  if (facts.effective === null || facts.host === null || facts.host.lease !== null) return [];
  return [note("ready", `Ready: ${facts.effective.crawler.name} gets it with its next lease.`)];
}

/**
 * Explains in plain words what prevents the next fetch, or how it will happen. The function is pure and reports every true
 * line, blocking ones first.
 */
import { because, note, type Standing, stop } from "#core/explanation";
import { howMany, instantWords, whenWords } from "#core/format";
import { isIpv6Text } from "#core/ip/address";
import { maySearch } from "#protocol/preferences";
import { notSearchedWords } from "../../crawl/batch/stated-uses.ts";
import { type ForeignOwner, ownerLines } from "../../crawl/federation/foreign-owner.ts";
import { type LeavingChannel, outsideChannel } from "../../crawl/frontier/channel.ts";
import { optedOutUrl } from "../../crawl/frontier/frontier.ts";
import type { FetchLine, UrlReport, WaitingReport } from "../../crawl/frontier/frontier-reports-api.ts";
import {
  type FrontierOrder,
  isNew,
  orderStrategy,
  scoreOf,
  told,
  worthShareOf,
} from "../../crawl/frontier/order/strategies.ts";
import type { PlacedUrl } from "../../crawl/frontier/report-reads.ts";
import type { ProbeRound } from "../../place/delegation/rounds-api.ts";
import type { ChainSubnet, EffectiveDelegation } from "../../place/subnets/subnets-api.ts";
import { optOutWords } from "../../run/opt-outs/honour.ts";
import type { SiteWishes } from "../../run/opt-outs/opt-out.ts";
import {
  type HostFacts,
  hostLines,
  isUsedUp,
  paceLines,
  usedUpWords,
  wholeHostLines,
} from "./explain-host.ts";
import { type DomainSetFacts, domainSetLines, type FinerFacts, finerLines } from "./place.ts";
import type { CrawlerReport, OrderReport } from "./who-api.ts";

interface WhoFacts extends FinerFacts, HostFacts {
  readonly wishes: SiteWishes;
  /** The coordinator that owns the URL, if it is not this one. */
  readonly owner?: ForeignOwner | null;
  /** Present only if a host or URL was asked for. */
  readonly domainSets?: DomainSetFacts;
  readonly url: UrlReport | null;
  /** Why the submitted URL was refused. */
  readonly rejection: string | null;
  /** The channel whose rules exclude the URL. */
  readonly leavingChannel?: LeavingChannel | null;
  readonly addresses: readonly string[];
  /** The special-purpose block that contains the address, in words. */
  readonly specialPurpose: string | null;
  readonly chain: readonly ChainSubnet[];
  readonly effective: EffectiveDelegation | null;
  readonly round: ProbeRound | null;
  readonly waiting: WaitingReport | null;
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
      stop("host-budget-used-up", `It is held back${because(why)}. It is admitted when the budget grows.`),
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
    const again = url.nextFetchAt === null ? "" : ` It is tried again ${whenWords(url.nextFetchAt, now)}.`;
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

/** Why a fetched page is not indexed. */
function searchLine({ stated }: UrlReport): Standing[] {
  if (stated === null || maySearch(stated.statements)) return [];
  return [note("not-searched", notSearchedWords(stated.statements))];
}

/** Says that the page redirects, or duplicates another page's text. */
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

/** Returns null if the site's crawler speaks IPv6 or does not need to. */
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

// A URL's record in plain words: its discovery, its next fetch with the reason, its changes.

export function foundWords(url: Pick<UrlReport, "foundBy" | "depth" | "redirects">): string {
  switch (url.foundBy) {
    case "seed":
      return "as a seed";
    case "redirect":
      return `by ${howMany(url.redirects, "redirect")} in a row, ${howMany(url.depth, "link")} from a seed`;
    case "list":
      return "in a sitemap or a feed";
    case "link":
      return `by a link, ${howMany(url.depth, "link")} from a seed`;
  }
}

/** Says when the next fetch is and why. */
export function nextFetchWords(url: UrlReport): string {
  switch (url.state) {
    case "in-progress":
      return "a crawler is fetching it";
    case "held":
      return "when its host's budget grows";
    case "gone":
      return "none: it is gone";
    case "payment-required":
      return url.nextFetchAt === null
        ? "none: the site requires payment"
        : `tried again ${instantWords(url.nextFetchAt)}, in case it is free by then`;
    case "blocked-by-robots":
      if (url.nextFetchAt !== null) return `robots.txt is asked again ${instantWords(url.nextFetchAt)}`;
      return "none: it is refused";
    case "refused":
      return "none: it is refused";
    case "due":
    case "scheduled": {
      if (url.nextFetchAt === null) return "when its turn comes";
      const when = url.state === "due" ? "due since" : "not before";
      return `${when} ${instantWords(url.nextFetchAt)}, ${whyThen(url)}`;
    }
  }
}

function whyThen(url: UrlReport): string {
  if (url.visits === 0) return "since it was never fetched";
  if (url.failures > 0) return `a new try after ${howMany(url.failures, "failure")} in a row`;
  const rate = url.changes.perDay;
  return `set by the recrawl policy${rate === null ? "" : ` for a page with ${told(rate)} changes per day`}`;
}

/** Such as "0.5 changes a day, by 3 changes in 8 compared visits; 12 links, 0.7 of them changed"; empty if nothing is known. */
export function changeWords({ changes }: Pick<UrlReport, "changes">): string {
  const compared =
    changes.comparedVisits === 0
      ? []
      : [
          `${howMany(changes.contentChanges, "change")} in ${howMany(changes.comparedVisits, "compared visit")}`,
        ];
  const rate = changes.perDay === null ? [] : [`about ${told(changes.perDay)} per day`];
  const links = changes.outLinks === null ? [] : [howMany(changes.outLinks, "link")];
  const ratio =
    changes.linkRatio === null ? [] : [`${told(changes.linkRatio)} of them changed at the last visit`];
  return [[...compared, ...rate].join(", "), [...links, ...ratio].join(", ")]
    .filter((part) => part !== "")
    .join("; ");
}

/** Says what has changed since the previous visit. */
export function contentWords({ changed }: Pick<FetchLine, "changed">): string {
  return changed === null ? "–" : changed ? "changed" : "same";
}

/** Lists the validators of the next request; empty if there are none. */
export function validatorWords({ validators }: Pick<UrlReport, "validators">): string {
  const { etag, lastModified, digest } = validators;
  return [
    ...(etag === null ? [] : [`ETag ${etag}`]),
    ...(lastModified === null ? [] : [`Last-Modified ${lastModified}`]),
    ...(digest === null ? [] : [`SHA-256 ${digest.slice(0, 16)}…`]),
  ].join(", ");
}

export function leftOutLine({ channelId, prefixes, why }: LeavingChannel): Standing {
  const [first = "", ...others] = prefixes;
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return stop(
    "outside-channel",
    `No channel admits it: channel ${channelId} (${first}${more}) leaves it out, since ${why}. nearcrawl channels shows its rules.`,
  );
}

/** The stored reason begins with the channel. */
function takenOutLine({ lastReason }: UrlReport): Standing {
  return stop("outside-channel", `No channel admits it${because(lastReason)}.`);
}

export function orderReport({ facts, place, of, hostWorth }: PlacedUrl, order: FrontierOrder): OrderReport {
  const strategy = orderStrategy(order.name);
  return {
    strategy: strategy.name,
    words: strategy.words,
    list: isNew(facts) ? "new" : "old",
    newShare: strategy.mixesNewAndOld ? order.newShare : null,
    score: scoreOf(strategy, facts),
    reason: strategy.reason(facts),
    place,
    of,
    hostWorth,
    worthShare: worthShareOf(order),
  };
}

/** Such as "75 % of the hosts go by their best new URL, and this one's is worth 9; the others by …". */
export function hostTurnWords({ hostWorth, worthShare }: OrderReport): string {
  const turns = "by how long they are due";
  if (worthShare === 0) return `hosts go ${turns}`;
  const worth =
    hostWorth === null ? "this one has none that is known and due" : `this one's is worth ${told(hostWorth)}`;
  return `${told(100 * worthShare)} % of the hosts go by their best new URL, and ${worth}; the others ${turns}`;
}

/** Such as "3rd of 40 new URLs due on its host", or why it has no rank. */
export function placeWords({ place, of, list, newShare }: OrderReport): string {
  const which = newShare === null ? "" : `${list} `;
  if (place === null) return "not queued, or too far back to be counted";
  return `${ordinal(place)} of ${of.toLocaleString("en-GB")} ${which}${of === 1 ? "URL" : "URLs"} due on its host`;
}

function ordinal(place: number): string {
  const teen = place % 100 >= 11 && place % 100 <= 13;
  const ending = teen ? "th" : (["th", "st", "nd", "rd"][place % 10] ?? "th");
  return `${place.toLocaleString("en-GB")}${ending}`;
}

function wishLines({ optOut, complaints }: SiteWishes, now: Date): Standing[] {
  const lines = optOut === null ? [] : [stop("opted-out", optOutWords(optOut))];
  const latest = complaints[0];
  if (latest === undefined) return lines;
  const open = complaints.filter((complaint) => complaint.open).length;
  const state = open === 0 ? "all are closed" : open === 1 ? "one is open" : `${open} are open`;
  const words =
    `${howMany(complaints.length, "complaint")} about ${latest.target}, ` +
    `the latest ${whenWords(latest.at, now)} (number ${latest.complaintId}); ${state}.`;
  return [...lines, note("complaints", words)];
}

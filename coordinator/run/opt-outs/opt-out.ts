/**
 * Opt-outs: what the whole fleet leaves alone because somebody asked for it. An unconfirmed one is honoured, too, but
 * lapses: its pages are hidden at once and deleted only after a week, so that lifting it undoes abuse. Confirmation
 * is proof by the site (DNS or a file) or an operator's word; then pages are deleted at once. Each opt-out has a
 * scope:
 *
 *   url         one URL, by http and https, in whatever spelling it is named
 *   prefix      a URL and what is below it, by whole path segments: /a covers /a/b and /a?b, not /ab
 *   host        one host, at any port, without those below it
 *   subdomains  a host with all below it: a site
 *   network     every host with an address in it
 *
 *   waiting ──(confirmed)──┐
 *                          ▼
 *   in force, unconfirmed → in force, confirmed → ended (lifted)
 *        └──────────────→ ended (lifted, or lapsed)
 */
import { bytesText, howMany, instantWords } from "#core/format";
import type { CrawlerId } from "#core/ids";
import { formatAddress, parseAddress } from "#core/ip/address";
import { firstAddress, formatRange, isUnary, lastAddress, parseRange } from "#core/ip/range";
import { isPublicSuffix } from "#core/ip/registrable-domain";
import { hostInUrl, type SitePart, withoutScheme } from "#core/ip/url-host";
import { hostNamed, urlKeyOf } from "#core/url-key";
import type { ReadOf, ToldOf } from "../../web/api-operation.ts";
import type {
  complaintLine,
  deeds,
  fleetComplaint,
  fleetOptOut,
  OptOutScope,
  optOutPreview,
  optOutReport,
} from "./opt-outs-api.ts";

/** For how many days an unconfirmed opt-out holds. */
export const unconfirmedDays = 30;

/** For how many days pages of an unconfirmed opt-out are hidden before they are deleted, in which the operator can lift it. */
export const hiddenDays = 7;

/**
 * How many unconfirmed requests by form take effect within 24 hours. Others wait for confirmation. Limits are per
 * IPv4 address or IPv6 /64; per /24 or /48, which one person may own; per registrable domain; and in total. A share
 * of the total is reserved for crawled hosts and cannot be used up by other names.
 */
export const mostUnconfirmedADay = {
  ofAddress: 10,
  ofNetwork: 30,
  ofDomain: 20,
  ofAll: 200,
  ofAllCrawled: 1000,
} as const;

/** An unconfirmed request by form that covers more hosts of the frontier than this waits for confirmation. */
export const mostHostsUnconfirmed = 100;

/** The same limit for pages of the index, even of a single host, because abuse does most harm to large sites. */
export const mostPagesUnconfirmed = 1000;

/** Either a domain (with everything below it, or only part of it) or a network, given by its first and last address. */
export type OptOutTarget =
  | { readonly site: string; readonly network: null; readonly part?: SitePart }
  | {
      readonly site: null;
      readonly network: { readonly first: string; readonly last: string };
      readonly part?: undefined;
    };

export const scopeOf = ({ site, part }: OptOutTarget): OptOutScope =>
  part?.scope ?? (site === null ? "network" : "subdomains");

export interface OptOutRequest {
  readonly target: OptOutTarget;
  readonly source: "form" | "operator";
  readonly words: string;
  /** Contact of the requester, or null. */
  readonly replyTo: string | null;
  readonly requester: string | null;
  /** Set by operators who know that the request is genuine. */
  readonly confirmed: boolean;
  /** For a single URL: stored data of its page is erased, here and on crawlers. */
  readonly erases?: boolean;
  /** The requester says that the proof file is on the site. It is requested once. */
  readonly hasFile?: boolean;
}

export type OptOut = ReadOf<typeof fleetOptOut>;

export type Covered = Pick<OptOut, "hosts" | "urls" | "pages">;

export type OptOutPreview = Omit<ReadOf<typeof optOutPreview>, "target" | "scope">;

export interface EndedLease {
  readonly crawlerId: CrawlerId;
  readonly host: string;
}

/** What a pass changed. */
export interface AppliedOptOuts {
  /** How many hosts were newly marked, and how many leases of each crawler ended. */
  readonly hosts: number;
  readonly leases: readonly EndedLease[];
  readonly pages: number;
  readonly erased: Readonly<Record<string, number>>;
}

export interface Unproven {
  readonly optOutId: number;
  readonly site: string;
  readonly scope: OptOutScope;
  readonly token: string;
  readonly hasFile: boolean;
}

export interface StoppedPart extends SitePart {
  readonly erases: boolean;
}

const maxTargetLength = 2048;

/** Returns the target, or why the text names none. `www.example.org` is a site of its own. */
export function readTarget(text: string, networks: "networks" | "sites-only"): OptOutTarget | string {
  const given = text.trim();
  if (given === "") return "Name a site, such as www.example.org.";
  if (given.length > maxTargetLength) return "That is too long for the name of a site.";
  const range = parseRange(given);
  if (range !== null && (networks === "networks" || isUnary(range))) {
    if (networks === "sites-only") return addressFault;
    const [first, last] = [formatAddress(firstAddress(range)), formatAddress(lastAddress(range))];
    return { site: null, network: { first, last } };
  }
  const host = hostNamed(given);
  if (host === null) return `“${given.slice(0, 100)}” is not the name of a site, such as www.example.org.`;
  if (parseAddress(host) !== null) return networks === "networks" ? readTarget(host, networks) : addressFault;
  if (!host.includes("."))
    return `“${host}” is a whole top-level domain, or a name of your own network: name a site in it.`;
  if (networks === "sites-only" && isPublicSuffix(host)) return suffixFault(host);
  return { site: host, network: null };
}

const suffixFault = (host: string) =>
  `“${host}” is a public suffix: the sites below it belong to different people. Name your own, such as www.${host}.`;

const addressFault =
  "That is an address or a network. Name the sites on it; for a whole network, write to us.";

export const scopeWords: Readonly<Record<OptOutScope, string>> = {
  url: "page",
  prefix: "part of a site",
  host: "host",
  subdomains: "site",
  network: "network",
};

/**
 * Returns an opt-out's target, or why the text names none. A URL with path or query means that URL alone, and one
 * that ends in `/*` everything below it, unless `scope` says otherwise.
 */
export function readOptOut(
  text: string,
  networks: "networks" | "sites-only",
  scope: OptOutScope | null = null,
): OptOutTarget | string {
  const given = text.trim();
  const named = given.endsWith("/*") ? given.slice(0, -1) : given;
  const whole = readTarget(named, networks);
  if (typeof whole === "string") return whole;
  const isUrl = hasScheme.test(named);
  if (scope === "network" ? whole.site !== null : whole.site === null && !isUrl && scope !== null)
    return `“${given.slice(0, 100)}” is ${whole.site === null ? "a network" : "no network"}, and its scope is not ${scope}.`;
  const key = urlKeyOf(isUrl ? named : `http://${named}`);
  if (typeof key === "string" || (whole.site === null && !isUrl)) return whole;
  const of = withoutScheme(key.url);
  const isFront = /^\/\/[^/]*\/$/.test(of);
  const meant = scope ?? (named !== given ? "prefix" : isFront ? null : "url");
  const { host } = key;
  switch (meant) {
    case "url":
      return { site: host, network: null, part: { scope: "url", of } };
    case "prefix":
      if (of.includes("?"))
        return "What is below a URL has no query: leave out the question mark and what follows.";
      if (isFront) return { site: host, network: null, part: { scope: "host", of: host } };
      return { site: host, network: null, part: { scope: "prefix", of: of.replace(/\/+$/, "") } };
    case "host":
      return { site: host, network: null, part: { scope: "host", of: host } };
    default:
      return whole;
  }
}

const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i;

/** To delete more pages than this, an operator must confirm their number. */
const mostPagesUnsaid = 100;

/**
 * Says why an operator must confirm the number of pages, because so much is affected; null if the extent is usual. A
 * name and its `www.` count as one host.
 */
export function wideWords(target: OptOutTarget, { hosts, pages }: Covered): string | null {
  const name = targetText(target);
  if (target.network !== null && isLargeNetwork(target.network))
    return `${name} is larger than a usual network assignment: every host in it is opted out`;
  const scope = scopeOf(target);
  if (scope === "url") return null;
  if (target.site !== null && scope === "subdomains" && isPublicSuffix(target.site))
    return `${name} is a public suffix: many people's sites are below it, and all of them are opted out`;
  if (hosts > 2) return `${name} covers ${hosts.toLocaleString("en-GB")} hosts`;
  return pages > mostPagesUnsaid ? `${name} covers ${pages.toLocaleString("en-GB")} pages` : null;
}

function isLargeNetwork({ first, last }: NonNullable<OptOutTarget["network"]>): boolean {
  const range = parseRange(`${first}-${last}`);
  return range !== null && BigInt(range.last) - BigInt(range.first) >= mostUsualAddresses[range.family];
}

/** The size of a /16, and of a /29 (RIPE's usual allocation). */
const mostUsualAddresses = { 4: 1n << 16n, 6: 1n << 99n } as const;

/** The number of pages changes while somebody reads it, so a difference of a tenth is accepted. */
export const isSaidNumber = (said: number, pages: number): boolean =>
  Math.abs(said - pages) <= Math.max(said, pages) / 10;

const day = (date: Date) => date.toISOString().slice(0, 10);

/** Describes the state, and what happens to the pages next. */
export function stateWords({ state, deletesAt }: Pick<OptOut, "state" | "deletesAt">): string {
  if (state === "waiting") return "waiting for proof";
  if (state !== "unconfirmed") return state;
  return deletesAt === null
    ? "unconfirmed: hidden"
    : `unconfirmed: hidden until ${day(deletesAt)}, then deleted`;
}

/** Says what lifting the opt-out restores, and what it does not. */
export function liftedWords({ erasedAt, deletesAt, inForceAt }: OptOut): string {
  if (erasedAt !== null)
    return `Its page was erased on ${day(erasedAt)}: nothing of it comes back but by a new fetch.`;
  if (deletesAt !== null)
    return `Its pages were deleted from the index on ${day(deletesAt)}: they come back only as they are fetched again.`;
  return inForceAt === null ? "" : "Its pages were hidden only, and are found again.";
}

/** For example "2 hosts with 1,204 pages in the index and 300 known URLs, 12 of them due". */
export function previewWords({ hosts, pages, urls, dueUrls }: OptOutPreview): string {
  return (
    `${howMany(hosts, "host")} with ${howMany(pages, "page")} in the index and ` +
    `${howMany(urls, "known URL")}, ${dueUrls.toLocaleString("en-GB")} of them due`
  );
}

/**
 * For example `example.org`, `https://example.org/a`, `https://example.org/a/*` or `192.0.2.0/24`. A single host is
 * written as its front page with an asterisk.
 */
export function targetText({ site, network, part }: OptOutTarget): string {
  if (part !== undefined)
    return part.scope === "url"
      ? `https:${part.of}`
      : part.scope === "prefix"
        ? `https:${part.of}/*`
        : `https://${hostInUrl(part.of)}/*`;
  if (site !== null) return site;
  const range = parseRange(`${network.first}-${network.last}`);
  return range === null ? `${network.first} - ${network.last}` : formatRange(range);
}

export interface SiteWishes {
  /** The opt-out without requester and words, because the report is public. */
  readonly optOut: ToldOf<typeof optOutReport> | null;
  readonly complaints: readonly ToldOf<typeof complaintLine>[];
}

export const noWishes: SiteWishes = { optOut: null, complaints: [] };

/** How many hours before the report are covered. */
export const deedsHours = 24;

/** Maximum reports by form per day. Further ones are refused, with an address to write to. */
export const mostReportsADay = 500;

/** Maximum per /24 or /48, so that one network cannot use up the daily limit. */
export const mostReportsOfNetworkADay = 50;

export interface ComplaintReport {
  readonly target: OptOutTarget;
  /** The target as typed. */
  readonly targetText: string;
  readonly source: "form" | "operator";
  /** Who complained, with an address to reply to. */
  readonly reporter: string;
  readonly words: string;
  readonly requester: string | null;
}

/** What we did to a target in the 24 hours before a report, in lists of limited length. */
export type Deeds = ToldOf<typeof deeds>;

export type Complaint = Omit<ReadOf<typeof fleetComplaint>, "answer" | "deeds"> & { readonly deeds: Deeds };

// Writes a paragraph about our requests, to be forwarded to the complainant or the abuse desk of the crawler's partner.

export function deedsParagraph({ target, createdAt, deeds }: Complaint): string {
  const reported = `On ${instantWords(createdAt.toISOString())} we received a report about our crawler's requests to ${target}.`;
  if (deeds.requests + deeds.measurements === 0) {
    const known = deeds.hosts === 0 ? " We know no hosts there." : "";
    return (
      `${reported} We have no record of a request to it in the 24 hours before.${known} Requests with our ` +
      "User-Agent may not be ours: check our addresses and signatures."
    );
  }
  return [reported, requestWords(deeds), answerWords(deeds), mannerWords(deeds)]
    .filter((part) => part !== "")
    .join(" ");
}

/** For operators only: each crawler involved, and its partner. */
export function partnerLines({ deeds }: Complaint): string[] {
  return deeds.crawlers.map(({ name, address, place, contact, requests }) => {
    const where = [address, place].filter((part) => part !== null).join(", ");
    const partner =
      contact === null ? "its partner has given no contact" : `its partner can be reached at ${contact}`;
    return `${name}${where === "" ? "" : ` (${where})`}: ${howMany(requests, "request")}; ${partner}`;
  });
}

function requestWords(deeds: Deeds): string {
  const { requests, mostInAnHour, hosts, crawlers, bytes, firstAt, lastAt, measurements } = deeds;
  const measured =
    measurements === 0
      ? ""
      : ` Its distance was measured ${measurements === 1 ? "once" : `${measurements} times`}.`;
  if (requests === 0) return `In the 24 hours before, we requested no page.${measured}`;
  const from = crawlers.map(({ name, address }) => (address === null ? name : `${address} (${name})`));
  const when = firstAt && lastAt ? ` between ${instantWords(firstAt)} and ${instantWords(lastAt)}` : "";
  return (
    `In the 24 hours before, we sent ${howMany(requests, "request")} to ${howMany(hosts, "host")}${when}, ` +
    `at most ${mostInAnHour} within one hour, from ${listed(from)}; ${bytesText(bytes)} came ` +
    `back.${measured}`
  );
}

function answerWords({ answers }: Deeds): string {
  if (answers.length === 0) return "";
  const parts = answers.map(
    ({ outcome, status, requests }) =>
      `${requests} × ${status === null ? outcome.replaceAll("-", " ") : `status ${status}`}`,
  );
  return `The answers were ${listed(parts)}.`;
}

function mannerWords({ robots, crawlDelayMs, backOffMs }: Deeds): string {
  const found = Object.entries(robots).map(
    ([state, hosts]) => `${robotsWords[state] ?? state} for ${howMany(hosts, "host")}`,
  );
  const delay = crawlDelayMs === null ? "" : ` A Crawl-delay of ${crawlDelayMs / 1000} s was respected.`;
  const off =
    backOffMs === null
      ? ""
      : ` After its last 429 or 503 we left it alone for ${Math.round(backOffMs / 1000)} s.`;
  return `Its robots.txt was ${listed(found)}.${delay}${off}`;
}

const robotsWords: Readonly<Record<string, string>> = {
  rules: "read and followed",
  none: "absent, which allows everything",
  closed: "answered with an error, so that nothing was fetched,",
  unreachable: "unreachable, so that nothing was fetched,",
};

function listed(parts: readonly string[]): string {
  if (parts.length < 2) return parts.join("");
  return `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

/**
 * How many hosts that nobody knew each crawler's results have named today (UTC). One that names them without end
 * would fill the frontier, and have the whole fleet ask whom it likes. In memory: a coordinator that starts anew
 * begins at zero.
 */

import type { CrawlerId } from "#core/ids";
import type { FetchOutcome, PageExtract } from "#protocol/result";
import type { PageWorth } from "../batch/found-urls.ts";

const dayMs = 86_400_000;

/** What a crawler's day is spent on: any host; of those, hosts of large domains; beside them, hosts that wait for another day. */
export type NewHostKind = "any" | "of-large-domains" | "waiting";

/** Large domains together have a quarter of the places, so that the others find theirs however many hosts a domain makes up. */
const partOfDay: Readonly<Record<NewHostKind, number>> = { any: 1, "of-large-domains": 1 / 4, waiting: 1 };

export class NewHostBudget {
  readonly #perDay: () => number;
  #day = Number.NaN;
  readonly #named = new Map<string, number>();

  /** `perDay`: or what gives it, where it may change. */
  constructor(perDay: number | (() => number)) {
    this.#perDay = typeof perDay === "number" ? () => perDay : perDay;
  }

  get perDay(): number {
    return this.#perDay();
  }

  left(crawlerId: CrawlerId, now: Date, kind: NewHostKind = "any"): number {
    this.#turnPage(now);
    const most = Math.floor(this.perDay * partOfDay[kind]);
    return Math.max(0, most - (this.#named.get(`${crawlerId} ${kind}`) ?? 0));
  }

  spend(crawlerId: CrawlerId, hosts: number, now: Date, kind: NewHostKind = "any"): void {
    this.#turnPage(now);
    const name = `${crawlerId} ${kind}`;
    if (hosts > 0) this.#named.set(name, (this.#named.get(name) ?? 0) + hosts);
  }

  #turnPage(now: Date): void {
    const day = Math.floor(now.getTime() / dayMs);
    if (day === this.#day) return;
    this.#day = day;
    this.#named.clear();
  }
}

// How many hosts a registrable domain may have, which cost whoever runs it nothing (a wildcard in DNS). A domain grows by as
// many a day as it has, up to the operator's limit: one with two thousand hosts is complete within a week or two, and one that
// makes them up has had next to nothing by then. What comes beyond waits for its day; what comes beyond that is left out, until
// pages that name it are fetched again.

/** Hosts of a domain that are let in on its first day; those after them have a share of places of their own. */
export const firstHosts = 20;

/** Hosts of a domain that may be let in on a day that it began with `hosts`; `limit` is the operator's. */
export const newHostsADay = (hosts: number, limit: number): number => Math.min(limit, firstHosts + hosts);

/** What a host of a domain that nobody knew takes of the linking site's day, where others take 1: it brings a domain's share with it. */
export const newDomainCost = 5;

/** URLs that wait for the day of one domain, or of one linking site, at most: what it may have in so many days. */
export const mostDaysWaiting = 2;

/** In how many days the host is let in before which `before` others of its domain wait; 1 is tomorrow. */
export function daysUntilLetIn(before: number, hosts: number, limit: number): number {
  let [ahead, known, days] = [before, hosts, 1];
  for (let a = newHostsADay(known, limit); a > 0 && ahead >= a; a = newHostsADay(known, limit)) {
    ahead -= a;
    known += a;
    days += 1;
  }
  return days;
}

// How many URLs of a host are crawled: a few at first, more with every page that is worth it, fewer with what
// is not, up to the operator's limit. A trap (an endless calendar, session ids in paths, soft errors) stops
// paying for itself and so stops growing; a large good site is not held up, since each page pays for several.
// Links from other hosts count as IRLbot's budgets have it (Lee and others 2008, section 5), but only as far as there are
// good pages: links are cheap to make.
//
// A host goes on growing while at least about half of what is fetched of it is good: each URL takes one place,
// a good page brings four, a bad one takes two.

/** Places that a host starts with. */
export const firstUrls = 50;

/** Places that are left to any host. */
export const fewestUrls = 10;

/** What a good page brings; and more for as many of them as there are links from other hosts. */
export const goodPageUrls = 4;

export const outsideLinkUrls = 8;

/** What a bad URL takes. */
export const badUrls = 2;

/** So many links that the crawler left out as traps take one place. */
export const trappedLinksPerUrl = 10;

/** What is known of a host's pages: URLs by what they are worth, each counted once. */
export interface HostPages {
  readonly good: number;
  readonly nearDuplicates: number;
  readonly notFound: number;
  readonly empty: number;
  readonly failed: number;
  /** Links that crawlers left out because they look like a trap. */
  readonly trappedLinks: number;
  /** Links to this host from pages of others. */
  readonly outsideLinks: number;
}

/** URLs of the host that may be in the frontier; `limit` is the operator's. */
export function hostBudget(pages: HostPages, limit: number): number {
  const earned =
    firstUrls +
    goodPageUrls * pages.good +
    outsideLinkUrls * Math.min(pages.good, pages.outsideLinks) -
    badUrls * (pages.nearDuplicates + pages.notFound + pages.empty + pages.failed) -
    Math.floor(pages.trappedLinks / trappedLinksPerUrl);
  return Math.min(limit, Math.max(fewestUrls, earned));
}

// What a fetched URL is worth to the crawl of its host: the grounds of the host's budget.
// Trouble that may pass says nothing of the URL, and leaves what it counted for as it was.

/** A page with fewer words has no text to speak of. */
const fewestWords = 5;

/** Null: it counts for nothing (a redirect, a sitemap, a refusal). `before` is what it counted for until now. */
export function pageWorth(
  fetched: { readonly outcome: FetchOutcome; readonly page: PageExtract | null },
  isNearDuplicate: boolean,
  before: PageWorth | null,
): PageWorth | null {
  const { outcome, page } = fetched;
  switch (outcome.type) {
    case "fetched":
      return page === null ? null : worthOfPage(page, isNearDuplicate);
    case "unchanged":
      return before;
    case "http-error":
      // What has its price is neither good nor bad for the rest of its host.
      if (outcome.status === 402) return null;
      return isFinal(outcome.status) ? "failed" : before;
    case "failed":
      return /redirect/.test(outcome.code) ? "failed" : before;
    case "redirected":
    case "unsupported":
    case "refused-by-robots":
    case "refused-address":
      return null;
  }
}

function worthOfPage(page: PageExtract, isNearDuplicate: boolean): PageWorth | null {
  if (page.softNotFound === true) return "not-found";
  if (page.kind !== undefined && page.kind !== "page") return null;
  if (isNearDuplicate) return "near-duplicate";
  if (page.words < fewestWords) return "empty";
  return page.robots.noindex ? null : "good";
}

/** Statuses that tell of the URL and not of the moment. */
function isFinal(status: number): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 425 && status !== 429;
}

// A host that asks to be paid for page after page (402) is not for us as a whole: it rests, and is then asked for one URL
// at a time, until it answers with anything else.

/** Answers 402 in a row from which on it counts as one. */
export const paymentsInARow = 5;

export const paidHostRestDays = 7;

/** URLs of one lease; `payments_asked`: answers 402 in a row; `challenges`: answers of a bot gate in a row. */
export function leasedOfHost(
  most: number,
  {
    payments_asked,
    challenges,
  }: { readonly payments_asked: number | null; readonly challenges: number | null },
): number {
  const isTried = (payments_asked ?? 0) >= paymentsInARow || challenges !== null;
  return isTried ? Math.min(1, most) : most;
}

// Subnets of one crawler take turns: of the hosts that it gets in a row, a subnet with very many of them gets a quarter
// at most, as long as others have something due. So does a registrable domain, and so do all hosts together that are beyond the
// first of their domains. Fair queueing over counts of what was handed out, since the time that hosts take is not known
// beforehand.

/** So many hosts in a row are looked at together, when fewer are asked for at a time. */
export const hostsInARow = 20;

const shares = 4;

/** Hosts of one subnet, at most, of `wanted` hosts and those before them. */
export function largestShare(wanted: number): number {
  return Math.floor(Math.max(wanted, hostsInARow) / shares);
}

/** What a host counts for: its subnet first, then what is of its domain. */
export interface Sharing {
  readonly shares: readonly [subnet: string, ...ofDomain: readonly string[]];
}

/**
 * The hosts within all their shares, at most `wanted`, and those beyond one, which go when there are no others: first those
 * that are beyond their subnet's alone. Each in the order given, which says who goes first. `recent` is what the hosts counted
 * for that the crawler got before, the latest last.
 */
export function splitByShare<Host extends Sharing>(
  hosts: readonly Host[],
  { wanted, recent }: { readonly wanted: number; readonly recent: readonly (readonly string[])[] },
): { readonly within: Host[]; readonly beyond: Host[] } {
  const before = Math.max(0, hostsInARow - wanted);
  const counts = countEach(before === 0 ? [] : recent.slice(-before).flat());
  let room = wanted;
  const take = (from: readonly Host[], sharesOf: (host: Host) => readonly string[]) => {
    const [within, beyond]: [Host[], Host[]] = [[], []];
    for (const host of from) {
      const isWithin =
        room > 0 && sharesOf(host).every((share) => (counts.get(share) ?? 0) < largestShare(wanted));
      (isWithin ? within : beyond).push(host);
      if (!isWithin) continue;
      room -= 1;
      for (const share of host.shares) counts.set(share, (counts.get(share) ?? 0) + 1);
    }
    return { within, beyond };
  };
  const ofAll = take(hosts, (host) => host.shares);
  const ofDomains = take(ofAll.beyond, (host) => host.shares.slice(1));
  return { within: ofAll.within, beyond: [...ofDomains.within, ...ofDomains.beyond] };
}

export function countEach<Name>(names: readonly Name[]): Map<Name, number> {
  const counts = new Map<Name, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** Of hosts that wait, each further one of the same domain stands as if it were due so much later than it is. */
export const apartInDomainMinutes = 10;

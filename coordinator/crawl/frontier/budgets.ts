/**
 * Limits how many unknown hosts each crawler's results may name per day (UTC). A crawler that names hosts without end
 * would fill the frontier and direct the whole fleet at hosts of its choice. The counts are held in memory, so a
 * restart begins at zero.
 */

import type { CrawlerId } from "#core/ids";
import type { FetchOutcome, PageExtract } from "#protocol/result";
import type { PageWorth } from "../batch/found-urls.ts";

const dayMs = 86_400_000;

/**
 * Daily budgets of a crawler. `any`: all new hosts. `of-large-domains`: the part of `any` that hosts of large domains
 * may use. `waiting`: a separate budget for hosts put off to another day.
 */
export type NewHostKind = "any" | "of-large-domains" | "waiting";

/** Large domains together get a quarter, which leaves room for others however many hosts a domain invents. */
const partOfDay: Readonly<Record<NewHostKind, number>> = { any: 1, "of-large-domains": 1 / 4, waiting: 1 };

export class NewHostBudget {
  readonly #perDay: () => number;
  #day = Number.NaN;
  readonly #named = new Map<string, number>();

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

// Limits how many hosts a registrable domain may have, since they cost its owner nothing (wildcard DNS). A domain may
// grow each day by as many hosts as it has, up to the operator's limit. One with two thousand hosts is complete within
// two weeks, while an inventor of hosts has gained little in that time. Hosts above the limit wait for a later day.
// When too many wait, they are dropped until pages name them again.

/** Hosts of a domain admitted on its first day. Hosts that come later share a separate allotment. */
export const firstHosts = 20;

/** Maximum hosts admitted on a day that the domain began with `hosts`. `limit` is the operator's. */
export const newHostsADay = (hosts: number, limit: number): number => Math.min(limit, firstHosts + hosts);

/** Cost of a host of an unknown domain, in hosts, to the linking site's daily budget, because it brings a domain's allotment. */
export const newDomainCost = 5;

/** Limits the waiting URLs of a domain or linking site, in days of its allotment. */
export const mostDaysWaiting = 2;

/** In how many days a host is admitted when `before` other hosts of its domain are waiting. 1 means tomorrow. */
export function daysUntilLetIn(before: number, hosts: number, limit: number): number {
  let [ahead, known, days] = [before, hosts, 1];
  for (let a = newHostsADay(known, limit); a > 0 && ahead >= a; a = newHostsADay(known, limit)) {
    ahead -= a;
    known += a;
    days += 1;
  }
  return days;
}

// How many URLs of a host are crawled: a few at first, more for every good page, fewer for bad ones, up to the
// operator's limit. A trap (endless calendars, session ids, soft errors) thus stops growing, while a large good site
// does not, since each page pays for several. Links from other hosts count as in IRLbot's budgets (Lee and others 2008,
// section 5), but only in proportion to good pages, because links are cheap to make.
//
// A host keeps growing while about half of its fetches are good: each URL takes one slot, a good page brings four, and
// a bad one takes two.

const firstUrls = 50;

const fewestUrls = 10;

/** Slots that a good page brings. Links from other hosts add to them. */
export const goodPageUrls = 4;

const outsideLinkUrls = 8;

const badUrls = 2;

const trappedLinksPerUrl = 10;

/** A host's URLs by their worth, each counted once. */
export interface HostPages {
  readonly good: number;
  readonly nearDuplicates: number;
  readonly notFound: number;
  readonly empty: number;
  readonly failed: number;
  /** Links that crawlers left out because they look like a trap. */
  readonly trappedLinks: number;
  readonly outsideLinks: number;
}

/** Maximum URLs of the host in the frontier. `limit` is the operator's. */
export function hostBudget(pages: HostPages, limit: number): number {
  const earned =
    firstUrls +
    goodPageUrls * pages.good +
    outsideLinkUrls * Math.min(pages.good, pages.outsideLinks) -
    badUrls * (pages.nearDuplicates + pages.notFound + pages.empty + pages.failed) -
    Math.floor(pages.trappedLinks / trappedLinksPerUrl);
  return Math.min(limit, Math.max(fewestUrls, earned));
}

// The same rule in SQL, for statements over many hosts.

export const hostPageColumns: Readonly<Record<keyof HostPages, string>> = {
  good: "good_pages",
  nearDuplicates: "near_duplicates",
  notFound: "not_found_pages",
  empty: "empty_pages",
  failed: "failed_urls",
  trappedLinks: "trapped_links",
  outsideLinks: "outside_links",
};

/** `host` is the alias of frontier_host, `limit` an SQL expression. */
export function hostBudgetSql(host: string, limit: string): string {
  const { good, nearDuplicates, notFound, empty, failed, trappedLinks, outsideLinks } = hostPageColumns;
  const bad = [nearDuplicates, notFound, empty, failed].map((column) => `${host}.${column}`).join(" + ");
  return `least(${limit}, greatest(${fewestUrls}, ${firstUrls} + ${goodPageUrls} * ${host}.${good}
    + ${outsideLinkUrls} * least(${host}.${good}, ${host}.${outsideLinks})
    - ${badUrls} * (${bad}) - ${host}.${trappedLinks} / ${trappedLinksPerUrl}))`;
}

// What a fetched URL is worth, which decides the host's budget. Temporary trouble says nothing about the URL and leaves
// its former worth unchanged.

/** Minimum number of words. A page with fewer counts as having no text. */
const fewestWords = 5;

/** Null for URLs that do not count (redirect, sitemap, refusal). `before` is the former worth. */
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
      // A paid page is neither good nor bad for the rest of its host.
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

/** Statuses that describe the URL and not a temporary condition. */
function isFinal(status: number): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 425 && status !== 429;
}

// A host that asks for payment (402) on page after page is left alone for a while. After that, it is asked for one URL
// at a time until it answers differently.

/** Consecutive 402 answers from which this applies. */
export const paymentsInARow = 5;

export const paidHostRestDays = 7;

/** URLs per lease, given consecutive 402 answers (`payments_asked`) and bot-gate answers (`challenges`). */
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

// Fair queueing among a crawler's subnets, by counts handed out, since hosts' durations are unknown beforehand. Among
// consecutive hosts, a subnet with very many gets at most a quarter while others have due work. The same holds for a
// registrable domain, and for all hosts beyond the first of their domains.

/** The window of consecutive hosts when fewer are requested at a time. */
export const hostsInARow = 20;

const shares = 4;

/** Maximum hosts of one subnet among `wanted` hosts and those before them. */
export function largestShare(wanted: number): number {
  return Math.floor(Math.max(wanted, hostsInARow) / shares);
}

/** The shares that a host counts towards: its subnet first, then those of its domain. */
export interface Sharing {
  readonly shares: readonly [subnet: string, ...ofDomain: readonly string[]];
}

/**
 * Splits at most `wanted` hosts into those within all their shares and those beyond one. The latter are used only when
 * there are no others, first those beyond their subnet's share alone. Both lists keep the given order. `recent` lists
 * the shares of the crawler's previous hosts, latest last.
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

/** Each additional waiting host of a domain is ranked as if it had become due this much later. */
export const apartInDomainMinutes = 10;

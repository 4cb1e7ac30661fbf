/**
 * How many hosts that nobody knew each crawler's results have named today (UTC). One that names them without end
 * would fill the frontier, and have the whole fleet ask whom it likes. In memory: a coordinator that starts anew
 * begins at zero.
 */
import type { CrawlerId } from "#core/ids";
import type { FetchOutcome, PageExtract } from "#protocol/result";

const dayMs = 86_400_000;

export class NewHostBudget {
  readonly #perDay: () => number;
  #day = Number.NaN;
  readonly #named = new Map<CrawlerId, number>();

  /** `perDay`: or what gives it, where it may change. */
  constructor(perDay: number | (() => number)) {
    this.#perDay = typeof perDay === "number" ? () => perDay : perDay;
  }

  get perDay(): number {
    return this.#perDay();
  }

  left(crawlerId: CrawlerId, now: Date): number {
    this.#turnPage(now);
    return Math.max(0, this.perDay - (this.#named.get(crawlerId) ?? 0));
  }

  spend(crawlerId: CrawlerId, hosts: number, now: Date): void {
    this.#turnPage(now);
    if (hosts > 0) this.#named.set(crawlerId, (this.#named.get(crawlerId) ?? 0) + hosts);
  }

  #turnPage(now: Date): void {
    const day = Math.floor(now.getTime() / dayMs);
    if (day === this.#day) return;
    this.#day = day;
    this.#named.clear();
  }
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

/** What is known of a host's pages: URLs by what they are worth (page-worth.ts), each counted once. */
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

// What a fetched URL is worth to the crawl of its host: the grounds of the host's budget (host-budget.ts).
// Trouble that may pass says nothing of the URL, and leaves what it counted for as it was.

/**
 * good            a page with a text of its own
 * near-duplicate  nearly the same text as another page's
 * not-found       says "not found" with status 200
 * empty           no text to speak of
 * failed          an error that will not pass: 4xx, redirects without an end
 */
const pageWorths = ["good", "near-duplicate", "not-found", "empty", "failed"] as const;

export type PageWorth = (typeof pageWorths)[number];

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
// at most, as long as others have something due. Fair queueing over counts of what was handed out, since the time that
// hosts take is not known beforehand.

/** So many hosts in a row are looked at together, when fewer are asked for at a time. */
export const hostsInARow = 20;

const shares = 4;

/** Hosts of one subnet, at most, of `wanted` hosts and those before them. */
export function largestShare(wanted: number): number {
  return Math.floor(Math.max(wanted, hostsInARow) / shares);
}

/**
 * The hosts within their subnets' shares, at most `wanted`, and those beyond them; both in the order given, which says
 * who goes first. `recent` are the subnets of the hosts that the crawler got before, the latest last.
 */
export function splitByShare<Host extends { readonly subnet: string }>(
  hosts: readonly Host[],
  { wanted, recent }: { readonly wanted: number; readonly recent: readonly string[] },
): { readonly within: Host[]; readonly beyond: Host[] } {
  const before = Math.max(0, hostsInARow - wanted);
  const counts = countEach(before === 0 ? [] : recent.slice(-before));
  const within: Host[] = [];
  const beyond: Host[] = [];
  for (const host of hosts) {
    const count = counts.get(host.subnet) ?? 0;
    const isWithin = within.length < wanted && count < largestShare(wanted);
    if (isWithin) counts.set(host.subnet, count + 1);
    (isWithin ? within : beyond).push(host);
  }
  return { within, beyond };
}

export function countEach<Subnet>(subnets: readonly Subnet[]): Map<Subnet, number> {
  const counts = new Map<Subnet, number>();
  for (const subnet of subnets) counts.set(subnet, (counts.get(subnet) ?? 0) + 1);
  return counts;
}

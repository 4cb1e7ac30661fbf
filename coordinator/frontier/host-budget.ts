/**
 * How many URLs of a host are crawled: a few at first, more with every page that is worth it, fewer with what
 * is not, up to the operator's limit. A trap (an endless calendar, session ids in paths, soft errors) stops
 * paying for itself and so stops growing; a large good site is not held up, since each page pays for several.
 * Links from other hosts count as IRLbot's budgets have it (Lee and others 2008, section 5), but only as far as there are
 * good pages: links are cheap to make.
 *
 * A host goes on growing while at least about half of what is fetched of it is good: each URL takes one place,
 * a good page brings four, a bad one takes two.
 */

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

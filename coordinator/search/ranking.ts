/**
 * What a page stands for whatever is searched: who links to it, whether it is its host's front page, whether its text
 * was there before. The index is looked through in tiers by it (Manning, Raghavan and Schütze 2008, section 7.2.1): the
 * best pages first, the rest only where those bring too few.
 */

export interface Standing {
  /** Other hosts that link to the page. */
  readonly linkingHosts: number;
  readonly isFrontPage: boolean;
  readonly isLaterCopy: boolean;
}

/** 0 to `highestStanding`; each doubling of the linking hosts is worth two. */
export const highestStanding = 24;
const frontPageWorth = 3;

export function standingOf({ linkingHosts, isFrontPage, isLaterCopy }: Standing): number {
  if (isLaterCopy) return 0;
  const links = Math.round(2 * Math.log2(1 + linkingHosts));
  return Math.min(highestStanding, links + (isFrontPage ? frontPageWorth : 0));
}

/** The first tier holds this share of the pages at most, or so many where that is more. */
export const firstTierShare = 0.04;
export const firstTierPages = 20_000;

/** From which standing a page belongs to the first tier; `counts`: pages of each standing. */
export function leastStandingOf(counts: ReadonlyMap<number, number>): number {
  let pages = 0;
  for (const count of counts.values()) pages += count;
  const room = Math.max(firstTierPages, firstTierShare * pages);
  let taken = 0;
  for (let standing = highestStanding; standing >= 0; standing--) {
    taken += counts.get(standing) ?? 0;
    if (taken > room) return standing + 1;
  }
  return 0;
}

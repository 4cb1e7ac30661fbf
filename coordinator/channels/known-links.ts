/** Which known links of a channel are worth being told to a crawler. */

/**
 * What the first mention of a link to another site takes in a connection beyond what its name takes, deflated: measured,
 * about 3 bytes for a front page's URL of 34 characters and 17 for an article's of 85 (test/bench/results/digests.md).
 */
const savedBytesPerCharacter = 0.27;
const charactersOfName = 24;
/** What a link takes in a set, and a set before its first link. */
const setBytes = 2.25;
const headBytes = 4;

export interface ToldLink {
  /** Of the channel's pages, as many have it. */
  readonly pageShare: number;
  /** Characters. */
  readonly urlLength: number;
}

export interface ShippedPages {
  /** Pages of the lease that were never read. */
  readonly newPages: number;
  /** Those that were: what is unchanged ships no links. */
  readonly knownPages: number;
  /** Share of visits of the channel's pages that found a change. */
  readonly changedShare: number;
}

/**
 * Those that are told; none where all of them together do not pay. Each costs its place in the set, and saves its text if
 * any page of the lease has it: with a chance of 1 − (1 − share)^pages, taking the lease's pages for any of the channel's.
 */
export function linksThatPay<Link extends ToldLink>(links: readonly Link[], lease: ShippedPages): Link[] {
  const pages = lease.newPages + lease.knownPages * lease.changedShare;
  const gain = ({ pageShare, urlLength }: ToldLink) => {
    const chance = 1 - (1 - Math.min(1, pageShare)) ** pages;
    return chance * savedBytesPerCharacter * Math.max(0, urlLength - charactersOfName) - setBytes;
  };
  const told = links.filter((link) => gain(link) > 0);
  return told.reduce((sum, link) => sum + gain(link), 0) > headBytes ? told : [];
}

/** What leases take of a host's two lists, and what the host is worth, in plain code; the coordinator does it in SQL. */
import {
  isNew,
  mostOwed,
  type OrderStrategy,
  scoreOf,
  spreadLists,
  type UrlFacts,
} from "#coordinator/crawl/frontier/order/strategies";

/** Merges both lists, each sorted by urgency, with old URLs spread among the new. */
export function mixLists<Url>(
  { newUrls, oldUrls }: { readonly newUrls: readonly Url[]; readonly oldUrls: readonly Url[] },
  slots: number,
  slotsForNew: number,
): Url[] {
  return spreadLists([newUrls, slotsForNew], [oldUrls, slots - slotsForNew]).slice(0, slots);
}

/** The carry after `taken` slots that all went to this `share`: the others are owed theirs. */
export const owedAfter = (taken: number, share: number, carry: number) =>
  Math.max(-mostOwed, carry - taken * (1 - share));

/** Initial carry by host hash, so that the share is right over many hosts from the start. */
export const firstCarry = (hostHash: string) => Number(((BigInt(hostHash) % 1000n) + 1000n) % 1000n) / 1000;

/** Score of the best new due URL; null when none is new. Old URLs follow the turns of their hosts. */
export function hostWorth(strategy: OrderStrategy, due: readonly UrlFacts[]): number | null {
  const scores = due.filter(isNew).map((url) => scoreOf(strategy, url));
  return scores.length === 0 ? null : Math.max(0, ...scores);
}

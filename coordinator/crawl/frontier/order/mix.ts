/**
 * Fills a lease from new and old URLs: Anansi gives 90 of 100 work units to new ones (section 5.1, α = 0.9). A lease
 * is smaller, so the fraction of a slot is carried to the host's next lease, which makes the share exact over many
 * leases. A list that runs out leaves its slots to the other.
 */
import { isNew, type OrderStrategy, scoreOf, type UrlFacts } from "./strategies.ts";

/**
 * The number of `slots` due to a `share`, including the carried fraction, and what is carried on: below 1, and
 * negative when more was taken.
 */
export function shareOf(
  slots: number,
  share: number,
  carry: number,
): { readonly slots: number; readonly carry: number } {
  const exact = slots * share + carry;
  // A whole number apart from rounding counts as whole.
  const whole = Math.min(slots, Math.max(0, Math.floor(exact + roundingError)));
  return { slots: whole, carry: Math.min(1, exact - whole) };
}

export const roundingError = 1e-9;

/** The carry after `taken` slots that all went to this `share`: the others are owed theirs. */
export function owedAfter(taken: number, share: number, carry: number): number {
  return Math.max(-mostOwed, carry - taken * (1 - share));
}

/** Limits what is owed to a list that was long empty to one slice. */
export const mostOwed = 20;

/** Initial carry by host hash, so that the share is right over many hosts from the start. */
export function firstCarry(hostHash: string): number {
  return Number(((BigInt(hostHash) % 1000n) + 1000n) % 1000n) / 1000;
}

/** Merges the two lists, each sorted by urgency, with old URLs spread among the new. */
export function mixLists<Url>(
  lists: { readonly newUrls: readonly Url[]; readonly oldUrls: readonly Url[] },
  slots: number,
  slotsForNew: number,
): Url[] {
  const { newUrls, oldUrls } = lists;
  return spreadLists([newUrls, slotsForNew], [oldUrls, slots - slotsForNew]).slice(0, slots);
}

/** Merges two lists in proportion to their quotas; on ties the first list goes first. */
function spreadLists<One>(
  ...lists: readonly [
    first: readonly [ones: readonly One[], quota: number],
    second: readonly [ones: readonly One[], quota: number],
  ]
): One[] {
  const placed = lists.flatMap(([ones, quota]) => ones.map((one, index) => placeOf(one, index + 1, quota)));
  // The sort is stable.
  return placed.sort((a, b) => a.at - b.at).map(({ one }) => one);
}

/** At most 1 within the quota and above 1 beyond, where the other list runs out. */
function placeOf<One>(one: One, place: number, quota: number) {
  return { one, at: place / Math.max(quota, 0.5) };
}

// Decides which hosts come first: a share of a crawler's hosts by the worth of their best new URL under the strategy,
// all others by how long they are due. So nothing starves: with a worth share of 3/4, a host with n others due before
// it has its turn after at most 4·(n + 1) hosts.
//
// Of a host chosen by worth, only new URLs at least as good as the next host's best are leased, as in one list for the
// whole web. With full slices, the best URL would bring along unimportant ones, and choosing by worth would gain
// nothing (measured, test/bench/results/anansi.md).

/** At least one in ten hosts goes by waiting time, so that those of little worth do not starve. */
export const mostWorthShare = 0.9;

/** Score of the best new due URL; null when none is new. Old URLs follow the turns of their hosts. */
export function hostWorth(strategy: OrderStrategy, due: readonly UrlFacts[]): number | null {
  const newUrls = due.filter(isNew);
  if (newUrls.length === 0) return null;
  return newUrls.reduce((best, url) => Math.max(best, scoreOf(strategy, url)), 0);
}

/** Of a host that goes by its worth: the least score with which a URL is leased; null: a slice like any other. */
type ByWorth<Host> = Host & { readonly leastWorth?: number | null };

/**
 * All hosts in order, each once: `byWorth` of every `wanted` from the worthiest, spread among the longest due. One
 * more of the worthiest tells what the next is worth. A host that is chosen by worth takes no turn from those that
 * wait.
 */
export function hostsByTurns<Host extends { readonly host_hash: string; readonly worth: number | null }>(
  lists: { readonly worthiest: readonly Host[]; readonly longestDue: readonly Host[] },
  { wanted, byWorth }: { readonly wanted: number; readonly byWorth: number },
): ByWorth<Host>[] {
  const leastWorth = lists.worthiest[byWorth]?.worth ?? null;
  const worthiest = lists.worthiest.slice(0, byWorth).map((host) => ({ ...host, leastWorth }));
  const names = new Set(worthiest.map(({ host_hash }) => host_hash));
  const longestDue = lists.longestDue.filter(({ host_hash }) => !names.has(host_hash));
  return spreadLists<ByWorth<Host>>([worthiest, byWorth], [longestDue, wanted - byWorth]);
}

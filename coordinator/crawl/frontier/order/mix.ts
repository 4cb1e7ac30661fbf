/**
 * How a lease is filled from new and old URLs: Anansi gives 90 of 100 work units to new ones (section 5.1, α = 0.9). A
 * host has fewer slots than a hundred, so what falls between two whole numbers is carried from a host's lease to its
 * next: over many leases the share is exact, however small they are. A list that runs out leaves its slots to the other.
 */
import { isNew, type OrderStrategy, scoreOf, type UrlFacts } from "./strategies.ts";

/**
 * Slots of `slots` for what has `share` of them, with what was carried here, and what is carried on: below 1; below 0
 * where more was had than the share.
 */
export function shareOf(
  slots: number,
  share: number,
  carry: number,
): { readonly slots: number; readonly carry: number } {
  const exact = slots * share + carry;
  // What is a whole number but for rounding is one.
  const whole = Math.min(slots, Math.max(0, Math.floor(exact + roundingError)));
  return { slots: whole, carry: Math.min(1, exact - whole) };
}

export const roundingError = 1e-9;

/** What is carried on after `taken` slots that all went to what has `share` of them: the others are owed theirs. */
export function owedAfter(taken: number, share: number, carry: number): number {
  return Math.max(-mostOwed, carry - taken * (1 - share));
}

/** Where there were no others for long, they are not made up for with more than a slice. */
export const mostOwed = 20;

/** Of a host that no lease was mixed for yet: by its hash, so that over many hosts the share is right from the start. */
export function firstCarry(hostHash: string): number {
  return Number(((BigInt(hostHash) % 1000n) + 1000n) % 1000n) / 1000;
}

/** The due URLs of both lists, each the most urgent first, as a lease takes them: old ones spread among the new. */
export function mixLists<Url>(
  lists: { readonly newUrls: readonly Url[]; readonly oldUrls: readonly Url[] },
  slots: number,
  slotsForNew: number,
): Url[] {
  const { newUrls, oldUrls } = lists;
  return spreadLists([newUrls, slotsForNew], [oldUrls, slots - slotsForNew]).slice(0, slots);
}

/** Two lists as one, each with so many places in what is taken of it; of equals the first list's comes first. */
function spreadLists<One>(
  ...lists: readonly [
    first: readonly [ones: readonly One[], quota: number],
    second: readonly [ones: readonly One[], quota: number],
  ]
): One[] {
  const placed = lists.flatMap(([ones, quota]) => ones.map((one, index) => placeOf(one, index + 1, quota)));
  // Sorting keeps the order of equals.
  return placed.sort((a, b) => a.at - b.at).map(({ one }) => one);
}

/** Up to 1 within the quota, above it beyond: what another list leaves. */
function placeOf<One>(one: One, place: number, quota: number) {
  return { one, at: place / Math.max(quota, 0.5) };
}

// Which hosts come first: by what their best new URL is worth under the strategy in force, or by how long they are due.
// A share of the hosts that a crawler is handed goes by worth, all others by how long they are due. So nothing starves:
// with a worth share of 3/4 a host that n others were due before has its turn after 4·(n + 1) hosts at the latest,
// whatever it is worth.
//
// Of a host that goes by its worth those new URLs are leased that are worth at least what the next host's best one is,
// as one list for the whole web would have it: with slices as full as others' the best URL of a host would bring along
// what nobody is waiting for, and choosing hosts by worth would gain nothing (measured, test/bench/results/anansi.md).

/** Of hosts one in ten at least goes by its waiting time, which is what keeps those of little worth from starving. */
export const mostWorthShare = 0.9;

/** Of a host's due URLs the best new one's score; null: none is new. Old ones go by the turns of their hosts. */
export function hostWorth(strategy: OrderStrategy, due: readonly UrlFacts[]): number | null {
  const newUrls = due.filter(isNew);
  if (newUrls.length === 0) return null;
  return newUrls.reduce((best, url) => Math.max(best, scoreOf(strategy, url)), 0);
}

/** Of a host that goes by its worth: the least score with which a URL is leased; null: a slice like any other. */
type ByWorth<Host> = Host & { readonly leastWorth?: number | null };

/**
 * All hosts as their turns come, each once: `byWorth` of every `wanted` from the worthiest (one more of which tells what
 * the next is worth), spread among the longest due. One that is worthy enough does not take a turn of those that wait.
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

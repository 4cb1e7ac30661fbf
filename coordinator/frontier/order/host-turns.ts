/**
 * Which hosts come first: by what their best new URL is worth under the strategy in force, or by how long they are due.
 * A share of the hosts that a crawler is handed goes by worth, all others by how long they are due. So nothing starves:
 * with a worth share of 3/4 a host that n others were due before has its turn after 4·(n + 1) hosts at the latest,
 * whatever it is worth.
 *
 * Of a host that goes by its worth those new URLs are leased that are worth at least what the next host's best one is,
 * as one list for the whole web would have it: with slices as full as others' the best URL of a host would bring along
 * what nobody is waiting for, and choosing hosts by worth would gain nothing (measured, test/bench/results/anansi.md).
 */

import { spreadLists } from "./mix.ts";
import { isNew, type OrderStrategy, scoreOf, type UrlFacts } from "./strategies.ts";

/** Of hosts one in ten at least goes by its waiting time, which is what keeps those of little worth from starving. */
export const mostWorthShare = 0.9;

/** Of a host's due URLs the best new one's score; null: none is new. Old ones go by the turns of their hosts. */
export function hostWorth(strategy: OrderStrategy, due: readonly UrlFacts[]): number | null {
  const newUrls = due.filter(isNew);
  if (newUrls.length === 0) return null;
  return newUrls.reduce((best, url) => Math.max(best, scoreOf(strategy, url)), 0);
}

/** Of a host that goes by its worth: the least score with which a URL is leased; null: a slice like any other. */
export type ByWorth<Host> = Host & { readonly leastWorth?: number | null };

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

/**
 * The named orders in which a host's due URLs are fetched. A strategy scores new URLs (never visited) and old ones in two
 * lists. Higher scores go first, then the longest due, then the shallowest. A lease is filled from both lists (shareOf)
 * unless the strategy opts out.
 *
 * Strategies are pure functions. Leases use the same rules in SQL (order-sql.ts), and a test compares them.
 */
import { spanWords } from "#core/format";

export interface UrlFacts {
  /** I: known links to the URL. */
  readonly backLinks: number;
  /** O: links on the page at the last visit. Null before the first visit. */
  readonly outLinks: number | null;
  /** C: the share of its links that changed between its last two visits (results/link-writes). Null if unknown. */
  readonly changeRatio: number | null;
  /** PageRank, summing to 1 over the graph. Null if the URL was not in it. */
  readonly pageRank: number | null;
  /** Time since the last visit. Null if never visited. */
  readonly ageSeconds: number | null;
  readonly dueSeconds: number;
  readonly depth: number;
}

export interface OrderStrategy {
  readonly name: (typeof orderNames)[number];
  readonly words: string;
  /** If true, a lease takes the operator's share of new URLs and is filled up with old ones. */
  readonly mixesNewAndOld: boolean;
  readonly newScore: (url: UrlFacts) => number;
  readonly oldScore: (url: UrlFacts) => number;
  readonly reason: (url: UrlFacts) => string;
}

export function isNew(url: UrlFacts): boolean {
  return url.ageSeconds === null;
}

export function scoreOf(strategy: OrderStrategy, url: UrlFacts): number {
  return isNew(url) ? strategy.newScore(url) : strategy.oldScore(url);
}

export function told(value: number): string {
  return Number(value.toPrecision(3)).toString();
}

// Anansi's two lists (section 4.3.3): new URLs by in-degree, P_new = I (4.3); old ones by P_old = C·T·(I + O) (4.4), where C
// is the share of changed links and T = age / 6 months, the time the thesis takes for the whole web (4.1).
//
// The thesis' text and its equation 4.2 contradict each other about C. The reason for the choice is in results/link-writes.
// A page visited once has no C. It counts as 1, like two visits without links, so that it is not ranked last before anything
// is known.

/** T_crawl: six months of 30 days (sections 4.3.3 and 5.3.2). */
export const crawlSeconds = 15_552_000;

export const unknownChangeRatio = 1;

interface Factors {
  readonly change: number;
  readonly age: number;
  readonly inDegree: number;
  readonly outDegree: number;
}

function factorsOf(url: UrlFacts): Factors {
  return {
    change: url.changeRatio ?? unknownChangeRatio,
    age: Math.max(0, url.ageSeconds ?? 0) / crawlSeconds,
    inDegree: url.backLinks,
    outDegree: url.outLinks ?? 0,
  };
}

function oldScore(url: UrlFacts): number {
  const { change, age, inDegree, outDegree } = factorsOf(url);
  return change * age * (inDegree + outDegree);
}

function reason(url: UrlFacts): string {
  const { change, age, inDegree, outDegree } = factorsOf(url);
  if (url.ageSeconds === null) return `${inDegree} = I, the links to it`;
  const unknown = url.changeRatio === null ? " (not known yet)" : "";
  return `${told(oldScore(url))} = C ${told(change)}${unknown} × T ${told(age)} × (I ${inDegree} + O ${outDegree})`;
}

const anansi: OrderStrategy = {
  name: "anansi",
  words: "new URLs by the links to them, old ones by changed links × age × links both ways (Anansi)",
  mixesNewAndOld: true,
  newScore: (url) => url.backLinks,
  oldScore,
  reason,
};

// The pages with the most known back-links go first (WEB-SAILOR, sections 3.3 and 4.1).

const backLinks: OrderStrategy = {
  name: "back-links",
  words: "what most pages link to first (WEB-SAILOR)",
  mixesNewAndOld: true,
  newScore: (url) => url.backLinks,
  oldScore: (url) => url.backLinks,
  reason: (url) => `${url.backLinks} = I, the links to it`,
};

// Longest due first, then nearest to a seed: every URL has its turn, whatever links to it.

const breadthFirst: OrderStrategy = {
  name: "breadth-first",
  words: "the longest due first, then the nearest to a seed",
  mixesNewAndOld: false,
  newScore: (url) => url.dueSeconds,
  oldScore: (url) => url.dueSeconds,
  reason: ({ dueSeconds, depth }) =>
    `${dueSeconds < 0 ? `due in ${spanWords(-dueSeconds)}` : `due for ${spanWords(dueSeconds)}`}, ${depth} ${depth === 1 ? "link" : "links"} from a seed`,
};

// The strategies an operator can choose (policy `frontier.order`), the default first.

export const orderNames = ["breadth-first", "back-links", "anansi", "pagerank"] as const;

export type OrderName = (typeof orderNames)[number];

// Orders by the last computed PageRank (`nearcrawl rank`). URLs without one come last.

const pageRank: OrderStrategy = {
  name: "pagerank",
  words: "the highest PageRank first, as nearcrawl rank last computed it",
  mixesNewAndOld: true,
  newScore: (url) => url.pageRank ?? 0,
  oldScore: (url) => url.pageRank ?? 0,
  reason: ({ pageRank: rank }) =>
    rank === null ? "0, since no rank was computed with this URL in it" : `${told(rank)} = its PageRank`,
};

const strategies: Readonly<Record<OrderName, OrderStrategy>> = {
  "breadth-first": breadthFirst,
  "back-links": backLinks,
  anansi,
  pagerank: pageRank,
};

export interface FrontierOrder {
  readonly name: OrderName;
  /** A lease's share of new URLs (Anansi's α, equation 5.1), where the strategy mixes. */
  readonly newShare: number;
  /** The share of a crawler's hosts chosen by their best due URL (hostsByTurns). 0 if omitted. */
  readonly worthShare?: number;
}

export function frontierOrder(policies: {
  readonly order: OrderName;
  readonly newShare: number;
  readonly worthShare: number;
}): FrontierOrder {
  const { order: name, newShare, worthShare } = policies;
  return { name, newShare, worthShare };
}

export function orderStrategy(name: OrderName): OrderStrategy {
  return strategies[name];
}

/** 0 for strategies without shares by worth. */
export function worthShareOf(order: FrontierOrder | undefined): number {
  if (order === undefined || !orderStrategy(order.name).mixesNewAndOld) return 0;
  return order.worthShare ?? 0;
}

// Fills a lease from new and old URLs: Anansi gives 90 of 100 work units to new ones (section 5.1, α = 0.9). A lease is
// smaller, so the fraction of a slot is carried to the host's next lease, which makes the share exact over many leases.
// A list that runs out leaves its slots to the other.

/** Returns how many of the `slots` the `share` gets, with the fraction carried over, and the new fraction to carry (below 1). */
export function shareOf(
  slots: number,
  share: number,
  carry: number,
): { readonly slots: number; readonly carry: number } {
  const exact = slots * share + carry;
  // A number that is whole apart from rounding counts as whole.
  const whole = Math.min(slots, Math.max(0, Math.floor(exact + roundingError)));
  return { slots: whole, carry: Math.min(1, exact - whole) };
}

export const roundingError = 1e-9;

/** Maximum slots that a list can accumulate while it is empty: one slice. */
export const mostOwed = 20;

/** Merges two lists in proportion to their quotas: each entry at its place / quota. On ties the first list goes first. */
export function spreadLists<One>(
  ...lists: readonly (readonly [ones: readonly One[], quota: number])[]
): One[] {
  const placed = lists.flatMap(([ones, quota]) =>
    ones.map((one, index) => ({ one, at: (index + 1) / Math.max(quota, 0.5) })),
  );
  return placed.sort((a, b) => a.at - b.at).map(({ one }) => one);
}

// Decides which hosts come first: a share of a crawler's hosts by the worth of their best new URL under the strategy, all
// others by how long they have been due. So no host starves: with a worth share of 3/4, a host with n others due before it
// has its turn after at most 4·(n + 1) hosts.
//
// From a host chosen by worth, only new URLs at least as good as the next host's best are leased, as in one list for the
// whole web. With full slices, the best URL would bring along unimportant ones, and choosing by worth would gain nothing
// (measured, test/bench/results/anansi.md).

/** At least one in ten hosts goes by waiting time, so that those of little worth do not starve. */
export const mostWorthShare = 0.9;

/** Minimum score with which a URL of a host chosen by worth is leased. Null leases a slice like any other. */
type ByWorth<Host> = Host & { readonly leastWorth?: number | null };

/**
 * Orders all hosts, each once: `byWorth` of every `wanted` come from the worthiest, spread among the longest due. One more of
 * the worthiest shows what the next is worth. A host chosen by worth takes no turn from those that wait.
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

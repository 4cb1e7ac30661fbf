/**
 * The named orders in which a host's due URLs are fetched. A strategy scores new URLs (never visited) and old ones in
 * two lists; higher scores go first, then the longest due, then the shallowest. A lease is filled from both lists
 * (mix.ts) unless the strategy opts out.
 *
 * Strategies are pure functions. Leases use the same rules in SQL (order-sql.ts); a test compares them.
 */
import { spanWords } from "#core/format";

export interface UrlFacts {
  /** I: known links to it. */
  readonly backLinks: number;
  /** O: links on the page at the last visit; null before it. */
  readonly outLinks: number | null;
  /** C: the share of its links that changed between its last two visits (results/change-ratio); null when unknown. */
  readonly changeRatio: number | null;
  /** PageRank, summing to 1 over the graph; null when the URL was not in it. */
  readonly pageRank: number | null;
  /** Since the last visit; null when never visited. */
  readonly ageSeconds: number | null;
  /** Since it became due; negative before that. */
  readonly dueSeconds: number;
  readonly depth: number;
}

export interface OrderStrategy {
  readonly name: (typeof orderNames)[number];
  /** A sentence for operators about what goes first. */
  readonly words: string;
  /** When true, a lease takes the operator's share of new URLs and fills up with old ones. */
  readonly mixesNewAndOld: boolean;
  readonly newScore: (url: UrlFacts) => number;
  /** `ageSeconds` is not null here. */
  readonly oldScore: (url: UrlFacts) => number;
  /** Explains the score in words and numbers. */
  readonly reason: (url: UrlFacts) => string;
}

export function isNew(url: UrlFacts): boolean {
  return url.ageSeconds === null;
}

export function scoreOf(strategy: OrderStrategy, url: UrlFacts): number {
  return isNew(url) ? strategy.newScore(url) : strategy.oldScore(url);
}

/** Formats a number to three significant digits. */
export function told(value: number): string {
  return Number(value.toPrecision(3)).toString();
}

// Anansi's two lists (section 4.3.3): new URLs by in-degree, P_new = I (4.3); old ones by P_old = C·T·(I + O) (4.4),
// where C is the share of changed links and T = age / 6 months, the time the thesis takes for the whole web (4.1).
//
// The thesis' text and its equation 4.2 contradict each other about C; results/change-ratio explains the choice. A
// page visited once has no C; it counts as 1, like two visits without links, so that it is not ranked last before
// anything is known.

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

// Pages with the most known back-links go first (WEB-SAILOR, sections 3.3 and 4.1).

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

// By the last computed PageRank (`nearcrawl rank`); URLs without one come last.

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

/** The policies `frontier.order` and `frontier.newShare` in force. */
export interface FrontierOrder {
  readonly name: OrderName;
  /** A lease's share of new URLs (Anansi's α, equation 5.1), where the strategy mixes. */
  readonly newShare: number;
  /** The share of a crawler's hosts chosen by their best due URL (mix.ts); 0 when omitted. */
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

/** 0 for strategies that go by turns alone. */
export function worthShareOf(order: FrontierOrder | undefined): number {
  if (order === undefined || !orderStrategy(order.name).mixesNewAndOld) return 0;
  return order.worthShare ?? 0;
}

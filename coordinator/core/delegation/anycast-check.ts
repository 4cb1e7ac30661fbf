/**
 * When a probe round looks for anycast, whom it asks for that, and who gets such a range. A round of `nearest`
 * asks crawlers that are near each other, so an anycast range would show itself as one fast answer and no more.
 *
 * - check: the round is decided by a fast answer, and the range is suspect: other ranges of its holder are
 *   anycast, or it is registered in another country than the one the fast crawler stands in. One crawler far
 *   from the fast one is asked. A holder that was checked and clear is not checked again for a while.
 * - confirm: two answers contradict one place. One more crawler is asked: the one that must contradict as well
 *   if those two were honest. Only when its answer contradicts too, the range counts as anycast.
 *
 * So a round asks at most two crawlers more than its policy, and most rounds none.
 */
import type { CrawlerId } from "../ids.ts";
import {
  type AnycastEvidence,
  contradictions,
  type KnownFleet,
  leastSum,
  type PlacedAnswer,
} from "./anycast.ts";

/** An answer faster than this can come from a machine beside the crawler. */
export const fastMs = 15;
/** A check tells something only where an honest answer would be so much slower than the fast one. */
const tellingMs = 5;

export interface AnycastCrawler {
  readonly crawlerId: CrawlerId;
  readonly place: PlacedAnswer["place"];
  readonly country: string | null;
  /** What it has to do, as a share of what it may: the smallest is preferred. */
  readonly load: number;
}

export interface AnycastView {
  readonly crawlers: readonly AnycastCrawler[];
  readonly fleet: KnownFleet;
  /** The round's measurements so far, all by one method. */
  readonly answers: readonly Omit<PlacedAnswer, "place">[];
  /** Everybody the round has asked, whatever became of it. */
  readonly asked: ReadonlySet<CrawlerId>;
  /** The subnet's registered country. */
  readonly country: string | null;
  /** Whether other ranges of its holder are anycast: true, false (it was checked lately), null (not known). */
  readonly holder: boolean | null;
}

export interface AnycastRange {
  readonly evidence: AnycastEvidence;
  /** The third crawler whose answer contradicts as well. */
  readonly confirmed: { readonly crawlerId: CrawlerId; readonly rttMs: number };
  /** Those that answered fast, the one with the most room first. */
  readonly byLoad: readonly { readonly crawlerId: CrawlerId; readonly rttMs: number }[];
}

/** What the answers prove together; null without a confirmed contradiction. */
export function provenAnycast(view: AnycastView): AnycastRange | null {
  const pairs = contradictions(placed(view), view.fleet);
  const [first] = pairs;
  if (first === undefined) return null;
  const pair = new Set([first.near.crawlerId, first.far.crawlerId]);
  const third = pairs.flatMap(({ near, far }) => [near, far]).find(({ crawlerId }) => !pair.has(crawlerId));
  return third === undefined ? null : { evidence: first, confirmed: third, byLoad: fastByLoad(view) };
}

/** Whom to ask so that a contradiction is confirmed; null where there is none, or nobody left to ask. */
export function confirmingCrawler(view: AnycastView): CrawlerId | null {
  const [first] = contradictions(placed(view), view.fleet);
  if (first === undefined) return null;
  const { near, far } = first;
  const score = (third: AnycastCrawler) => {
    const missMs = Math.max(
      mustMissMs(view, third, { beside: near, against: far }),
      mustMissMs(view, third, { beside: far, against: near }),
    );
    return missMs > 0 ? missMs : farFromBoth(view, third, [near, far]) - unsure;
  };
  return best(unasked(view), score)?.crawlerId ?? null;
}

/** Whom to ask whether a range that was decided by `fastest` is anycast; null when nothing suggests it is. */
export function checkingCrawler(
  view: AnycastView,
  fastest: { readonly crawlerId: CrawlerId; readonly rttMs: number },
): CrawlerId | null {
  const own = crawlerOf(view, fastest.crawlerId);
  if (own === null || fastest.rttMs > fastMs || !isSuspect(view, own)) return null;
  const tells = (other: AnycastCrawler) =>
    other !== own && (leastSum(own, other, view.fleet)?.ms ?? 0) >= fastest.rttMs + tellingMs;
  if (view.crawlers.some((other) => tells(other) && view.asked.has(other.crawlerId))) return null;
  const far = unasked(view).filter(tells);
  const atHome = far.filter(({ country }) => country === view.country);
  return best(atHome.length > 0 ? atHome : far, ({ load }) => -load)?.crawlerId ?? null;
}

function isSuspect({ holder, country }: AnycastView, fastest: AnycastCrawler): boolean {
  if (holder !== null) return holder;
  return country !== null && fastest.country !== null && country !== fastest.country;
}

interface Answer {
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
}

/**
 * If the target is beside one crawler of a pair, as its answer says, the third answers within its way to that
 * crawler. By how many ms this contradicts the pair's other answer, at least; below 0 it need not.
 */
function mustMissMs(
  view: AnycastView,
  third: AnycastCrawler,
  pair: { readonly beside: Answer; readonly against: Answer },
): number {
  const against = crawlerOf(view, pair.against.crawlerId);
  const wayMs = view.fleet.peerRtts.rttMs(third.crawlerId, pair.beside.crawlerId);
  const least = against === null ? null : leastSum(third, against, view.fleet);
  if (wayMs === null || least === null) return Number.NEGATIVE_INFINITY;
  return least.ms - pair.against.rttMs - (wayMs + pair.beside.rttMs);
}

/** Whom no answer must contradict comes after all others: the one that is far from both may have a machine of its own near. */
const unsure = 1e6;

function farFromBoth(view: AnycastView, third: AnycastCrawler, pair: readonly Answer[]): number {
  const sums = pair.map(({ crawlerId }) => {
    const crawler = crawlerOf(view, crawlerId);
    return crawler === null ? 0 : (leastSum(crawler, third, view.fleet)?.ms ?? 0);
  });
  return Math.min(...sums);
}

/** Answers near the fastest one, by load. */
function fastByLoad(view: AnycastView): Answer[] {
  const fastestMs = Math.min(...view.answers.map(({ rttMs }) => rttMs));
  const loadOf = ({ crawlerId }: Answer) => crawlerOf(view, crawlerId)?.load ?? Number.POSITIVE_INFINITY;
  return view.answers
    .filter(({ rttMs }) => rttMs <= Math.max(fastMs, 2 * fastestMs))
    .toSorted((a, b) => loadOf(a) - loadOf(b) || a.rttMs - b.rttMs);
}

function placed(view: AnycastView): PlacedAnswer[] {
  return view.answers.map((answer) => ({
    ...answer,
    place: crawlerOf(view, answer.crawlerId)?.place ?? null,
  }));
}

function crawlerOf(view: AnycastView, crawlerId: CrawlerId): AnycastCrawler | null {
  return view.crawlers.find((crawler) => crawler.crawlerId === crawlerId) ?? null;
}

function unasked(view: AnycastView): AnycastCrawler[] {
  return view.crawlers.filter(({ crawlerId }) => !view.asked.has(crawlerId));
}

function best(crawlers: readonly AnycastCrawler[], score: (crawler: AnycastCrawler) => number) {
  let found: AnycastCrawler | null = null;
  for (const crawler of crawlers) if (found === null || score(crawler) > score(found)) found = crawler;
  return found;
}

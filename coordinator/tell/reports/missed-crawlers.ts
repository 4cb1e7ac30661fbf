/**
 * The impact of losing a crawler. Each of its pieces would go to the next nearest crawler, from which each of its daily pages
 * takes longer. Capacity is ignored.
 */
import type { CrawlerId } from "#core/ids";
import { type MeasuredPiece, mayTake, type PieceDistances, type ReportedCrawler } from "./crawl-pieces.ts";

interface MissedCrawler extends Omit<ReportedCrawler, "isTrusted"> {
  /** How many of its pieces are compared, and how many it has. */
  readonly subnets: number;
  readonly pagesPerDay: number;
  /** Round-trip time lost per day: ms × pages. */
  readonly lostMsPages: number;
  /** Mean over pages whose next nearest crawler is known; null if there are none. */
  readonly meanLostMs: number | null;
  /** How many daily pages' next nearest crawler was measured, was predicted, or is unknown. */
  readonly measuredPages: number;
  readonly predictedPages: number;
  readonly unknownPages: number;
  /** The uncertainty of predictions (ms, weighted by pages); null if there are none. */
  readonly spreadMs: number | null;
  /** The crawler that would get most of its pages; null if none is known. */
  readonly successor: string | null;
  readonly successorPages: number;
}

interface Tally {
  subnets: number;
  pagesPerDay: number;
  lostMsPages: number;
  measuredPages: number;
  predictedPages: number;
  spreadMsPages: number;
  readonly successors: Map<CrawlerId, number>;
}

/** Returns the connected crawlers, the greatest impact first. */
export function missedCrawlers(
  pieces: readonly MeasuredPiece[],
  crawlers: readonly ReportedCrawler[],
  distances: Pick<PieceDistances, "nearestOther">,
): MissedCrawler[] {
  const tallies = new Map<CrawlerId, Tally>();
  for (const piece of pieces) add(piece, distances.nearestOther(piece), tallies);
  const nameOf = new Map(crawlers.map(({ crawlerId, name }) => [crawlerId, name]));
  return crawlers
    .filter(mayTake)
    .map((crawler) => missed(crawler, tallies.get(crawler.crawlerId) ?? noTally(), nameOf))
    .sort(
      (a, b) =>
        b.lostMsPages - a.lostMsPages ||
        b.unknownPages - a.unknownPages ||
        b.pagesPerDay - a.pagesPerDay ||
        (a.name < b.name ? -1 : 1),
    );
}

const noTally = (): Tally => ({
  ...{ subnets: 0, pagesPerDay: 0, lostMsPages: 0, measuredPages: 0, predictedPages: 0, spreadMsPages: 0 },
  successors: new Map(),
});

function add(
  { crawlerId, pagesPerDay, rttMs }: MeasuredPiece,
  other: ReturnType<PieceDistances["nearestOther"]>,
  tallies: Map<CrawlerId, Tally>,
): void {
  const tally = tallies.get(crawlerId) ?? noTally();
  tallies.set(crawlerId, tally);
  tally.subnets += 1;
  tally.pagesPerDay += pagesPerDay;
  if (other === null) return;
  tally.lostMsPages += pagesPerDay * Math.max(0, other.rttMs - rttMs);
  if (other.isMeasured) tally.measuredPages += pagesPerDay;
  else {
    tally.predictedPages += pagesPerDay;
    tally.spreadMsPages += pagesPerDay * other.spreadMs;
  }
  tally.successors.set(other.crawlerId, (tally.successors.get(other.crawlerId) ?? 0) + pagesPerDay);
}

function missed(
  { crawlerId, name, country, state }: ReportedCrawler,
  tally: Tally,
  nameOf: ReadonlyMap<CrawlerId, string>,
): MissedCrawler {
  const knownPages = tally.measuredPages + tally.predictedPages;
  const [successor] = [...tally.successors].sort(
    ([a, pagesOfA], [b, pagesOfB]) => pagesOfB - pagesOfA || a - b,
  );
  return {
    ...{ crawlerId, name, country, state },
    subnets: tally.subnets,
    pagesPerDay: tally.pagesPerDay,
    lostMsPages: tally.lostMsPages,
    meanLostMs: knownPages > 0 ? tally.lostMsPages / knownPages : null,
    measuredPages: tally.measuredPages,
    predictedPages: tally.predictedPages,
    unknownPages: Math.max(0, tally.pagesPerDay - knownPages),
    spreadMs: tally.predictedPages > 0 ? tally.spreadMsPages / tally.predictedPages : null,
    successor: successor === undefined ? null : (nameOf.get(successor[0]) ?? null),
    successorPages: successor?.[1] ?? 0,
  };
}

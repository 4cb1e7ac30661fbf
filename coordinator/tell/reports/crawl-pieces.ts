/**
 * The basis of reports: the crawl in pieces. A piece is a subnet with hosts, or those of its hosts that have another crawler,
 * with its properties, daily fetches and distance.
 */

import { enoughSamples } from "#core/format";
import type { CrawlerId, HolderId, SubnetId } from "#core/ids";
import type { CrawlerRecord } from "../../place/crawlers/crawler.ts";
import { type CrawlerRtt, RttTable, unknownRttMs } from "../../place/distances/predicted-rtts.ts";

export interface CrawlPiece {
  readonly subnetId: SubnetId;
  /** Null if nobody crawls it. */
  readonly crawlerId: CrawlerId | null;
  /** RTT from its crawler; null if it was not measured, or is meaningless because the range answers from many places. */
  readonly rttMs: number | null;
  readonly isAnycast: boolean;
  /** Whether it was assigned elsewhere because the nearest crawler has no capacity. */
  readonly isDisplaced: boolean;
  /** The time of its last probe round. */
  readonly decidedAt: Date | null;
  readonly country: string | null;
  readonly holderId: HolderId | null;
  readonly hosts: number;
  readonly pages: number;
  readonly pagesPerDay: number;
}

export interface ReportedCrawler extends Pick<CrawlerRecord, "crawlerId" | "name" | "country" | "state"> {
  /** Whether it is neither blocked nor untrusted, so it may get subnets. */
  readonly isTrusted: boolean;
}

/** Whether it may get subnets: it is connected, trusted and staying. */
export const mayTake = ({ state, isTrusted }: ReportedCrawler): boolean => state === "online" && isTrusted;

/** The cost of distance: pages × ms. */
export const costOf = ({ pagesPerDay, rttMs }: Pick<CrawlPiece, "pagesPerDay" | "rttMs">): number =>
  pagesPerDay * (rttMs ?? 0);

/** Returns the weighted median, or null if there are no weights. */
export function weightedMedian(
  values: readonly { readonly value: number; readonly weight: number }[],
): number | null {
  const sorted = values.filter(({ weight }) => weight > 0).sort((a, b) => a.value - b.value);
  const half = sorted.reduce((sum, { weight }) => sum + weight, 0) / 2;
  let upTo = 0;
  for (const { value, weight } of sorted) {
    upTo += weight;
    if (upTo >= half) return value;
  }
  return null;
}

// Each crawler's distance from the most costly pieces, either measured in the last probe round or predicted as in balancing
// (distances/predicted-rtts).

export interface MeasuredRtt {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
}

interface OtherCrawler {
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
  readonly isMeasured: boolean;
  /** The standard deviation of a prediction; 0 if it was measured. */
  readonly spreadMs: number;
}

/** A prediction with this deviation is useless. */
const vaguestMs = unknownRttMs / 2;

/** A piece that was measured by its own crawler. */
export type MeasuredPiece = CrawlPiece & { readonly crawlerId: CrawlerId; readonly rttMs: number };

export const isMeasuredPiece = (piece: CrawlPiece): piece is MeasuredPiece =>
  piece.crawlerId !== null && piece.rttMs !== null;

export class PieceDistances {
  readonly #table: RttTable;
  readonly #candidates: readonly { readonly crawlerId: CrawlerId; readonly index: number }[];
  readonly #rowOf = new Map<MeasuredPiece, number>();
  #scratch = new Float64Array(0);

  /** Predictions are made only for `candidates`. */
  constructor(
    pieces: readonly MeasuredPiece[],
    {
      measured,
      candidates,
      crawlerRttMs,
    }: {
      readonly measured: readonly MeasuredRtt[];
      readonly candidates: readonly CrawlerId[];
      readonly crawlerRttMs: CrawlerRtt;
    },
  ) {
    this.#table = new RttTable(crawlerRttMs);
    this.#candidates = candidates.map((crawlerId) => ({ crawlerId, index: this.#table.indexOf(crawlerId) }));
    const measuredOf = new Map<SubnetId, Map<CrawlerId, number>>();
    for (const { subnetId, crawlerId, rttMs } of measured) {
      const known = measuredOf.get(subnetId) ?? new Map<CrawlerId, number>();
      measuredOf.set(subnetId, known.set(crawlerId, rttMs));
    }
    for (const piece of pieces) {
      const rttMs = new Map(measuredOf.get(piece.subnetId)).set(piece.crawlerId, piece.rttMs);
      this.#rowOf.set(piece, this.#table.add({ crawlerId: piece.crawlerId, rttMs }));
    }
  }

  /** Returns the nearest known candidate other than its own crawler, or null. */
  nearestOther(piece: MeasuredPiece): OtherCrawler | null {
    return this.#others(piece)[0] ?? null;
  }

  /** Returns crawlers that are nearer by at least `byMs`, nearest first. */
  nearerOthers(piece: MeasuredPiece, byMs: number): OtherCrawler[] {
    return this.#others(piece).filter(({ rttMs }) => piece.rttMs - rttMs >= byMs);
  }

  /** Returns the measurements by all crawlers, candidates or not. */
  measuredOf(piece: MeasuredPiece): ReadonlyMap<CrawlerId, number> {
    const row = this.#rowOf.get(piece);
    return row === undefined ? new Map() : this.#table.measuredOf(row);
  }

  #others(piece: MeasuredPiece): OtherCrawler[] {
    const row = this.#rowOf.get(piece);
    if (row === undefined) return [];
    const table = this.#table;
    if (this.#scratch.length !== table.crawlerIds.length)
      this.#scratch = new Float64Array(table.crawlerIds.length);
    table.rttsInto(row, this.#scratch);
    const nearest: { crawlerId: CrawlerId; index: number; rttMs: number }[] = [];
    for (const { crawlerId, index } of this.#candidates) {
      const rttMs = this.#scratch[index]!;
      if (
        crawlerId === piece.crawlerId ||
        rttMs >= (nearest[mostOthers - 1]?.rttMs ?? Number.POSITIVE_INFINITY)
      )
        continue;
      let at = Math.min(nearest.length, mostOthers - 1);
      while (at > 0 && nearest[at - 1]!.rttMs > rttMs) at -= 1;
      nearest.splice(at, 0, { crawlerId, index, rttMs });
      nearest.length = Math.min(nearest.length, mostOthers);
    }
    return nearest
      .map(({ crawlerId, index, rttMs }) => {
        const isMeasured = table.isMeasured(row, index);
        return { crawlerId, rttMs, isMeasured, spreadMs: isMeasured ? 0 : table.spreadMs(row, index) };
      })
      .filter(({ spreadMs }) => spreadMs < vaguestMs);
  }
}

/** Maximum number of other crawlers. In a large fleet, only the nearest ones matter. */
const mostOthers = 20;

// The measured distance of crawlers from subnets of their own country. It is the expectation for a further crawler there.
// Countries with too few measurements use those of all countries.

interface HomeRtt {
  readonly medianMs: number;
  /**
   * The spread for one subnet: 1.48 times the median absolute difference, which estimates a standard deviation and ignores
   * outliers.
   */
  readonly spreadMs: number;
  /** How many subnets were measured from their own country. */
  readonly subnets: number;
  /** Null for all countries together. */
  readonly country: string | null;
}

/** Returns null if there are too few measurements anywhere. */
export type HomeRttOf = (country: string) => HomeRtt | null;

export function homeRtts(pieces: Iterable<CrawlPiece>, crawlers: Iterable<ReportedCrawler>): HomeRttOf {
  const countryOf = new Map<CrawlerId, string | null>();
  for (const { crawlerId, country } of crawlers) countryOf.set(crawlerId, country);
  const measured = new Map<string, number[]>();
  const all: number[] = [];
  for (const { country, crawlerId, rttMs } of pieces) {
    if (country === null || crawlerId === null || rttMs === null) continue;
    if (countryOf.get(crawlerId) !== country) continue;
    const own = measured.get(country);
    if (own === undefined) measured.set(country, [rttMs]);
    else own.push(rttMs);
    all.push(rttMs);
  }
  const everywhere = homeRtt(all, null);
  const known = new Map([...measured].map(([country, rttsMs]) => [country, homeRtt(rttsMs, country)]));
  return (country) => known.get(country) ?? everywhere;
}

function homeRtt(rttsMs: readonly number[], country: string | null): HomeRtt | null {
  if (!enoughSamples(rttsMs.length)) return null;
  const medianMs = medianOf(rttsMs);
  const spreadMs = 1.48 * medianOf(rttsMs.map((rttMs) => Math.abs(rttMs - medianMs)));
  return { medianMs, spreadMs, subnets: rttsMs.length, country };
}

const medianOf = (values: readonly number[]): number =>
  weightedMedian(values.map((value) => ({ value, weight: 1 }))) ?? 0;

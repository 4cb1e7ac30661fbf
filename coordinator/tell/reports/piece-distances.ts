/**
 * Each crawler's distance from the most costly pieces: measured in the last probe round, otherwise predicted as in balancing
 * (distances/predicted-rtts).
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import { type CrawlerRtt, RttTable, unknownRttMs } from "../../place/distances/predicted-rtts.ts";
import type { CrawlPiece } from "./crawl-pieces.ts";

export interface MeasuredRtt {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
}

interface OtherCrawler {
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
  readonly isMeasured: boolean;
  /** The standard deviation of a prediction; 0 when measured. */
  readonly spreadMs: number;
}

/** A prediction this vague is useless. */
const vaguestMs = unknownRttMs / 2;

/** Pieces measured by their own crawler; the others have no row. */
export type MeasuredPiece = CrawlPiece & { readonly crawlerId: CrawlerId; readonly rttMs: number };

export const isMeasuredPiece = (piece: CrawlPiece): piece is MeasuredPiece =>
  piece.crawlerId !== null && piece.rttMs !== null;

export class PieceDistances {
  readonly #table: RttTable;
  readonly #candidates: readonly { readonly crawlerId: CrawlerId; readonly index: number }[];
  readonly #rowOf = new Map<MeasuredPiece, number>();
  #scratch = new Float64Array(0);

  /** Predictions are made for `candidates`. */
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

  /** The nearest known candidate other than its own crawler, or null. */
  nearestOther(piece: MeasuredPiece): OtherCrawler | null {
    return this.#others(piece)[0] ?? null;
  }

  /** Crawlers nearer by at least this much, nearest first. */
  nearerOthers(piece: MeasuredPiece, byMs: number): OtherCrawler[] {
    return this.#others(piece).filter(({ rttMs }) => piece.rttMs - rttMs >= byMs);
  }

  /** Measurements by all crawlers, candidates or not. */
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

/** In a large fleet only the nearest ones matter. */
const mostOthers = 20;

/**
 * How near crawlers are to subnets of their own country, by measurement: the expectation for one more crawler there. All
 * countries together stand in for one with too few measurements.
 */
import { enoughSamples } from "#core/format";
import type { CrawlerId } from "#core/ids";
import { type CrawlPiece, type ReportedCrawler, weightedMedian } from "./crawl-pieces.ts";

interface HomeRtt {
  readonly medianMs: number;
  /**
   * The spread for one subnet: 1.48 times the median absolute difference, which estimates a standard deviation and ignores
   * outliers.
   */
  readonly spreadMs: number;
  /** Subnets measured from their own country. */
  readonly subnets: number;
  /** Null: all countries together. */
  readonly country: string | null;
}

/** Null: too few measurements anywhere. */
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

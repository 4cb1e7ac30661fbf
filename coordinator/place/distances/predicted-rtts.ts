/**
 * The round-trip time between a crawler and a subnet that it never probed, estimated from what others measured and from the
 * crawlers' distances to each other (design section 6). By the triangle inequality, what crawler `a` measured as `y` is for
 * crawler `c` between |D[a][c] − y| and D[a][c] + y. The bounds of all who measured are combined, and the prediction is the
 * middle between them.
 *
 * Adding the errors of the middle at other subnets, by holder and nearest crawler, made it worse: in six generated worlds the
 * median error was 0.5 to 0.9 ms larger with them (test/bench/results/balance.md).
 */
import type { CrawlerId } from "#core/ids";

/** RTT (ms) assumed when nothing is known: about half way round the world by cable. */
export const unknownRttMs = 200;

/** RTT (ms) of a crawler that could not measure the subnet. Ignored in predictions. */
export const unmeasurableMs = 10_000;

/** RTT (ms) between two crawlers, in either direction. Undefined if unmeasured. */
export type CrawlerRtt = (a: CrawlerId, b: CrawlerId) => number | undefined;

export interface RttBounds {
  readonly leastMs: number;
  /** Infinite if unknown. */
  readonly mostMs: number;
}

/** Takes pairs of a crawler's distance (NaN if unknown) and the RTT that this crawler measured. */
export function rttBounds(
  measured: readonly (readonly [apartMs: number | undefined, rttMs: number])[],
): RttBounds {
  let [leastMs, mostMs] = [0, Number.POSITIVE_INFINITY];
  for (const [apartMs = Number.NaN, rttMs] of measured) {
    // False for NaN, so unknown values leave the bounds unchanged.
    if (!(apartMs >= 0) || rttMs >= unmeasurableMs) continue;
    leastMs = Math.max(leastMs, Math.abs(apartMs - rttMs));
    mostMs = Math.min(mostMs, apartMs + rttMs);
  }
  return { leastMs, mostMs };
}

/** If triangles are violated, the bounds cross, and the middle is still the best guess. */
export function middleOf({ leastMs, mostMs }: RttBounds): number {
  return mostMs === Number.POSITIVE_INFINITY ? unknownRttMs : (leastMs + mostMs) / 2;
}

/**
 * Standard deviation of the middle in ms: on PlanetLab's matrices and generated worlds the error has a floor and grows
 * with the width of the bounds.
 */
function spreadOf({ leastMs, mostMs }: RttBounds): number {
  return mostMs === Number.POSITIVE_INFINITY ? unknownRttMs / 2 : 8 + 0.25 * Math.max(0, mostMs - leastMs);
}

interface Row {
  /** Indexes of the crawlers that measured the subnet. For an unmeasured one its crawler, assumed to be beside it. */
  readonly crawlers: number[];
  readonly rttsMs: number[];
  readonly isGuessed: boolean;
}

/** RTTs between crawlers (by index) and subnets (by row), measured or predicted. */
export class RttTable {
  readonly crawlerIds: CrawlerId[] = [];
  readonly #indexOf = new Map<CrawlerId, number>();
  readonly #crawlerRttMs: CrawlerRtt;
  readonly #rows: Row[] = [];
  /** Each crawler's RTTs (ms) to all crawlers. NaN if unknown. */
  #apartMs: Float64Array[] = [];
  /** Each crawler's peers, nearest first and unknown last. Computed on demand. */
  #neighbours: (readonly number[] | undefined)[] = [];

  constructor(crawlerRttMs: CrawlerRtt) {
    this.#crawlerRttMs = crawlerRttMs;
  }

  /** Assigns an index to a new crawler. */
  indexOf(crawlerId: CrawlerId): number {
    const known = this.#indexOf.get(crawlerId);
    if (known !== undefined) return known;
    this.#indexOf.set(crawlerId, this.crawlerIds.length);
    this.#apartMs = [];
    this.#neighbours = [];
    return this.crawlerIds.push(crawlerId) - 1;
  }

  add({
    crawlerId,
    rttMs,
  }: {
    readonly crawlerId: CrawlerId;
    readonly rttMs: ReadonlyMap<CrawlerId, number>;
  }): number {
    const owner = this.indexOf(crawlerId);
    const isGuessed = rttMs.size === 0;
    const crawlers = isGuessed ? [owner] : Array.from(rttMs.keys(), (witness) => this.indexOf(witness));
    return this.#rows.push({ crawlers, rttsMs: isGuessed ? [0] : [...rttMs.values()], isGuessed }) - 1;
  }

  /** Measured RTTs (ms) by crawler, in the order added. */
  measuredOf(row: number): Map<CrawlerId, number> {
    const { crawlers, rttsMs, isGuessed } = this.#rows[row]!;
    return new Map(isGuessed ? [] : crawlers.map((crawler, at) => [this.crawlerIds[crawler]!, rttsMs[at]!]));
  }

  isMeasured(row: number, crawler: number): boolean {
    const { crawlers, isGuessed } = this.#rows[row]!;
    return !isGuessed && crawlers.includes(crawler);
  }

  /** Writes every crawler's RTT (ms) to the row's subnet. */
  rttsInto(row: number, rttsMs: Float64Array): void {
    for (let crawler = 0; crawler < rttsMs.length; crawler++) rttsMs[crawler] = this.rttMs(row, crawler);
  }

  rttMs(row: number, crawler: number): number {
    const { crawlers, rttsMs } = this.#rows[row]!;
    const at = crawlers.indexOf(crawler);
    // Never below the smallest measured RTT, so that no crawler wins by a guess.
    return at >= 0 ? rttsMs[at]! : Math.max(Math.min(...rttsMs), middleOf(this.#boundsFor(row, crawler)));
  }

  difference(row: number, from: number, to: number): { addedRttMs: number; predicted: boolean } {
    const predicted = !(this.isMeasured(row, to) && this.isMeasured(row, from));
    return { addedRttMs: this.rttMs(row, to) - this.rttMs(row, from), predicted };
  }

  /** Standard deviation (ms) of an unmeasured crawler's prediction. */
  spreadMs(row: number, crawler: number): number {
    return spreadOf(this.#boundsFor(row, crawler));
  }

  /**
   * Crawlers that may be near: those that measured, and about `breadth` nearest neighbours of the fastest. Others are nearer
   * only if several measurements contradict that.
   */
  likely(row: number, breadth: number): number[] {
    const { crawlers, rttsMs } = this.#rows[row]!;
    const nearest = crawlers[rttsMs.indexOf(Math.min(...rttsMs))]!;
    return [...new Set([...crawlers, ...this.#neighboursOf(nearest).slice(0, breadth)])];
  }

  #boundsFor(row: number, crawler: number): RttBounds {
    const { crawlers, rttsMs } = this.#rows[row]!;
    const apartMs = this.#apart();
    return rttBounds(crawlers.map((witness, at) => [apartMs[witness]![crawler]!, rttsMs[at]!]));
  }

  /** Rebuilt after new crawlers were named. */
  #apart(): readonly Float64Array[] {
    if (this.#apartMs.length !== this.crawlerIds.length)
      this.#apartMs = this.crawlerIds.map((a) =>
        Float64Array.from(this.crawlerIds, (b) =>
          a === b ? 0 : (this.#crawlerRttMs(a, b) ?? this.#crawlerRttMs(b, a) ?? Number.NaN),
        ),
      );
    return this.#apartMs;
  }

  #neighboursOf(crawler: number): readonly number[] {
    const apartMs = this.#apart()[crawler]!;
    const farMs = (other: number) => (apartMs[other]! >= 0 ? apartMs[other]! : Number.MAX_VALUE);
    this.#neighbours[crawler] ??= [...apartMs.keys()]
      .filter((other) => other !== crawler)
      .sort((a, b) => farMs(a) - farMs(b) || a - b);
    return this.#neighbours[crawler];
  }
}

/** Expected amount by which a normally distributed RTT is below a limit, counting 0 if it is above. */
export function expectedGainMs(limitMs: number, meanMs: number, spreadMs: number): number {
  const z = (limitMs - meanMs) / spreadMs;
  if (z < -4) return 0;
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  return (limitMs - meanMs) * normalShare(z) + spreadMs * density;
}

/** Normal distribution function, to within 0.0002 (logistic approximation of Bowling et al., 2009). */
function normalShare(z: number): number {
  return 1 / (1 + Math.exp(-1.5976 * z - 0.07056 * z ** 3));
}

/**
 * What measurements teach about predictions: how much more or less than the middle of the bounds crawler c turned
 * out to be where crawler a was the nearest of the others. Once over all subnets, and once within each holder, whose
 * subnets lie close together as a rule; the holder's offset is drawn towards the general one, that towards zero, by
 * the weight of one measurement each.
 *
 * Pairs are kept sparse: one entry per crawler that measured beside another one.
 */
import { HolderOffsets } from "./holder-offsets.ts";
import { type Measurements, predictedWithout, unmeasurableMs } from "./predict-rtt.ts";

/** A single lie or spike teaches no more than this. */
const mostOffsetMs = 100;
/** The general offset or zero counts as so many measurements. */
const priorWeight = 1;

/** What crawlers turned out to be off by where `nearest` was the nearest of the others. */
interface Offsets {
  readonly nearest: number;
  readonly crawlers: number[];
  readonly sumsMs: number[];
  readonly counts: number[];
}

export class LearnedOffsets {
  readonly #general: (Offsets | undefined)[] = [];
  /** The same worked out: per nearest crawler the offsets (ms) of all. */
  readonly #generalMs: (Float64Array | undefined)[] = [];
  readonly #ofHolders = new HolderOffsets();
  /** Measurements that were learned from. */
  measurements = 0;

  /** Learns from a subnet that at least two crawlers measured; `holder` is a small whole number, -1 for none. */
  learn(known: Measurements, holder: number): void {
    this.measurements += known.to - known.from;
    if (known.to - known.from < 2) return;
    for (let at = known.from; at < known.to; at++) {
      const crawler = known.crawlers[at]!;
      const predicted = predictedWithout(known, crawler);
      if (predicted === null || known.rttsMs[at]! >= unmeasurableMs) continue;
      const offset = clamp(known.rttsMs[at]! - predicted);
      const nearest = nearestOf(known, crawler);
      this.#general[nearest] ??= emptyOffsets(nearest);
      note(this.#general[nearest], crawler, offset);
      if (holder >= 0) this.#ofHolders.note({ holder, nearest, crawler }, offset);
    }
  }

  /** By crawler the general offset (ms) where `nearest` is the nearest that measured; null: none is known. */
  generalFor(nearest: number, crawlers: number): Float64Array | null {
    const worked = this.#generalMs[nearest];
    if (worked?.length === crawlers) return worked;
    const learned = this.#general[nearest];
    if (learned === undefined) return null;
    const offsetsMs = new Float64Array(crawlers);
    learned.crawlers.forEach((crawler, at) => {
      offsetsMs[crawler] = weighed(learned, at, 0);
    });
    this.#generalMs[nearest] = offsetsMs;
    return offsetsMs;
  }

  /** Calls `visit` for every crawler of which the holder's subnets say more than the general offset does. */
  eachOfHolder(
    at: { readonly holder: number; readonly nearest: number; readonly crawlers: number },
    visit: (crawler: number, offsetMs: number) => void,
  ): void {
    if (at.holder < 0) return;
    const general = this.generalFor(at.nearest, at.crawlers);
    this.#ofHolders.each(at, (crawler, sumMs, count) =>
      visit(crawler, (sumMs + priorWeight * (general?.[crawler] ?? 0)) / (count + priorWeight)),
    );
  }
}

const emptyOffsets = (nearest: number): Offsets => ({ nearest, crawlers: [], sumsMs: [], counts: [] });

/** The mean of what was learned, and of what would hold without it. */
function weighed({ sumsMs, counts }: Offsets, at: number, otherwiseMs: number): number {
  return (sumsMs[at]! + priorWeight * otherwiseMs) / (counts[at]! + priorWeight);
}

/** The crawler with the smallest measurement, without one of them; -1 when there is none. */
export function nearestOf(known: Measurements, without: number): number {
  let nearest = -1;
  let least = Number.POSITIVE_INFINITY;
  for (let at = known.from; at < known.to; at++) {
    if (known.crawlers[at] === without || known.rttsMs[at]! >= least) continue;
    least = known.rttsMs[at]!;
    nearest = known.crawlers[at]!;
  }
  return nearest;
}

function note({ crawlers, sumsMs, counts }: Offsets, crawler: number, offsetMs: number): void {
  const at = crawlers.indexOf(crawler);
  if (at < 0) {
    crawlers.push(crawler);
    sumsMs.push(offsetMs);
    counts.push(1);
  } else {
    sumsMs[at]! += offsetMs;
    counts[at]! += 1;
  }
}

const clamp = (ms: number) => Math.max(-mostOffsetMs, Math.min(mostOffsetMs, ms));

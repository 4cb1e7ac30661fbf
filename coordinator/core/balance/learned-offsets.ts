/**
 * What measurements teach about predictions: how much more or less than the middle of the bounds crawler c turned
 * out to be where crawler a was the nearest of the others. Once over all subnets, and once within each holder, whose
 * subnets lie close together as a rule; the holder's offset is drawn towards the general one, that towards zero, by
 * the weight of one measurement each.
 *
 * Pairs are kept sparse: one entry per crawler that measured beside another one.
 */
import { type Measurements, predictedWithout, unmeasurableMs } from "./predict-rtt.ts";

/** A single lie or spike teaches no more than this. */
const mostOffsetMs = 100;
/** The general offset or zero counts as so many measurements. */
const priorWeight = 1;

interface Offsets {
  readonly crawlers: number[];
  readonly sumsMs: number[];
  readonly counts: number[];
}

export class LearnedOffsets {
  readonly #general = new Map<number, Offsets>();
  readonly #byHolder = new Map<number, Map<number, Offsets>>();
  /** Measurements that were learned from. */
  measurements = 0;

  /** Learns from a subnet that at least two crawlers measured; `holder` is any number that stands for it, or null. */
  learn(known: Measurements, holder: number | null): void {
    this.measurements += known.to - known.from;
    if (known.to - known.from < 2) return;
    for (let at = known.from; at < known.to; at++) {
      const crawler = known.crawlers[at]!;
      const predicted = predictedWithout(known, crawler);
      if (predicted === null || known.rttsMs[at]! >= unmeasurableMs) continue;
      const offset = clamp(known.rttsMs[at]! - predicted);
      const nearest = nearestOf(known, crawler);
      note(offsetsAt(this.#general, nearest), crawler, offset);
      if (holder !== null) note(offsetsAt(holderAt(this.#byHolder, holder), nearest), crawler, offset);
    }
  }

  /** Writes the offset (ms) of every crawler for a subnet with these measurements; zero where nothing was learned. */
  offsetsInto(known: Measurements, holder: number | null, offsetsMs: Float64Array): void {
    offsetsMs.fill(0);
    const nearest = nearestOf(known, -1);
    refine(this.#general.get(nearest), offsetsMs);
    if (holder !== null) refine(this.#byHolder.get(holder)?.get(nearest), offsetsMs);
  }
}

/** The crawler with the smallest measurement, without one of them; -1 when there is none. */
function nearestOf(known: Measurements, without: number): number {
  let nearest = -1;
  let least = Number.POSITIVE_INFINITY;
  for (let at = known.from; at < known.to; at++) {
    if (known.crawlers[at] === without || known.rttsMs[at]! >= least) continue;
    least = known.rttsMs[at]!;
    nearest = known.crawlers[at]!;
  }
  return nearest;
}

function refine(learned: Offsets | undefined, offsetsMs: Float64Array): void {
  if (learned === undefined) return;
  for (let at = 0; at < learned.crawlers.length; at++) {
    const crawler = learned.crawlers[at]!;
    if (crawler >= offsetsMs.length) continue;
    offsetsMs[crawler] =
      (learned.sumsMs[at]! + priorWeight * offsetsMs[crawler]!) / (learned.counts[at]! + priorWeight);
  }
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

function offsetsAt(offsets: Map<number, Offsets>, nearest: number): Offsets {
  const known = offsets.get(nearest) ?? { crawlers: [], sumsMs: [], counts: [] };
  offsets.set(nearest, known);
  return known;
}

function holderAt(byHolder: Map<number, Map<number, Offsets>>, holder: number): Map<number, Offsets> {
  const known = byHolder.get(holder) ?? new Map<number, Offsets>();
  byHolder.set(holder, known);
  return known;
}

const clamp = (ms: number) => Math.max(-mostOffsetMs, Math.min(mostOffsetMs, ms));

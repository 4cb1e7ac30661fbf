/**
 * The round-trip time between a crawler and a subnet that it never probed, from what others measured and from the
 * crawlers' distances to each other (design section 6). By the triangle inequality, what crawler `a` measured as
 * `y` is for crawler `c` between |D[a][c] − y| and D[a][c] + y; the bounds of all who measured are put together.
 * Half way between them is the prediction; what rounds have taught about it is added by `LearnedOffsets`.
 */

/** Taken where nothing at all is known of a pair: about half way round the world by cable. */
export const unknownRttMs = 200;

/** Stands for the RTT of a crawler that could not measure the subnet: any other is better, and it tells nothing of the others. */
export const unmeasurableMs = 10_000;

/** Measurements of one subnet: at `from` up to `to` who measured, by index, and what (ms). */
export interface Measurements {
  readonly from: number;
  readonly to: number;
  readonly crawlers: Uint16Array;
  readonly rttsMs: Float64Array;
  /** Per crawler its RTTs (ms; NaN: unknown) to all crawlers. */
  readonly apartMs: readonly Float64Array[];
}

/** Writes the least and the most that each crawler's RTT can be; `most` stays infinite where nothing is known. */
export function boundsInto(known: Measurements, least: Float64Array, most: Float64Array): void {
  let isFirst = true;
  for (let at = known.from; at < known.to; at++) {
    if (known.rttsMs[at]! >= unmeasurableMs) continue;
    if (isFirst) setBounds(known.apartMs[known.crawlers[at]!]!, known.rttsMs[at]!, least, most);
    else tightenBounds(known.apartMs[known.crawlers[at]!]!, known.rttsMs[at]!, least, most);
    isFirst = false;
  }
  if (!isFirst) return;
  least.fill(0);
  most.fill(Number.POSITIVE_INFINITY);
}

function setBounds(apartMs: Float64Array, rttMs: number, least: Float64Array, most: Float64Array): void {
  for (let crawler = 0; crawler < least.length; crawler++) {
    const apart = apartMs[crawler]!;
    const isKnown = apart >= 0;
    least[crawler] = isKnown ? Math.abs(apart - rttMs) : 0;
    most[crawler] = isKnown ? apart + rttMs : Number.POSITIVE_INFINITY;
  }
}

function tightenBounds(apartMs: Float64Array, rttMs: number, least: Float64Array, most: Float64Array): void {
  for (let crawler = 0; crawler < least.length; crawler++) {
    const apart = apartMs[crawler]!;
    // False for NaN: what is unknown leaves the bounds alone.
    if (!(apart >= 0)) continue;
    least[crawler] = Math.max(least[crawler]!, Math.abs(apart - rttMs));
    most[crawler] = Math.min(most[crawler]!, apart + rttMs);
  }
}

/** Half way between the bounds. Where triangles are violated the bounds cross; the middle is still the best guess. */
export function middleOf(leastMs: number, mostMs: number): number {
  return mostMs === Number.POSITIVE_INFINITY ? unknownRttMs : (leastMs + mostMs) / 2;
}

/**
 * What would be predicted for one crawler from all measurements but its own. Null when nothing is known of its
 * distance to any other that measured.
 */
function predictedWithout(known: Measurements, crawler: number): number | null {
  const { least, most } = boundsFor(known, crawler);
  return most === Number.POSITIVE_INFINITY ? null : middleOf(least, most);
}

/**
 * How far off the prediction for a crawler is, as the standard deviation in ms: on PlanetLab's matrices and on
 * generated worlds the error has a floor and grows with the width that the bounds leave.
 */
export function predictionSpreadMs(known: Measurements, crawler: number): number {
  const { least, most } = boundsFor(known, crawler);
  if (most === Number.POSITIVE_INFINITY) return unknownRttMs / 2;
  return 8 + 0.25 * Math.max(0, most - least);
}

/** Bounds for one crawler from the others' measurements. */
export function boundsFor(
  known: Measurements,
  crawler: number,
): { readonly least: number; readonly most: number } {
  let least = 0;
  let most = Number.POSITIVE_INFINITY;
  for (let at = known.from; at < known.to; at++) {
    if (known.crawlers[at] === crawler || known.rttsMs[at]! >= unmeasurableMs) continue;
    const apart = known.apartMs[known.crawlers[at]!]![crawler]!;
    const rtt = known.rttsMs[at]!;
    if (Math.abs(apart - rtt) > least) least = Math.abs(apart - rtt);
    if (apart + rtt < most) most = apart + rtt;
  }
  return { least, most };
}

/**
 * Sums of offsets by holder, nearest crawler and crawler, packed: 18 bytes for each of these, and 10 for each pair of
 * holder and nearest crawler. Lists, because nearly every holder has one or two of either.
 */
interface HolderPair {
  /** A small whole number that stands for the holder. */
  readonly holder: number;
  /** Index of the nearest crawler that measured. */
  readonly nearest: number;
}

export class HolderOffsets {
  /** By holder its first group, one for each nearest crawler; 0 ends a list. */
  #groups = new Int32Array(64);
  #nearest = new Uint16Array(64);
  #nextGroup = new Int32Array(64);
  #entries = new Int32Array(64);
  #groupCount = 1;
  #crawlers = new Uint16Array(64);
  #sumsMs = new Float64Array(64);
  #counts = new Int32Array(64);
  #nextEntry = new Int32Array(64);
  #entryCount = 1;

  note(at: HolderPair & { readonly crawler: number }, offsetMs: number): void {
    const group = this.#groupOf(at) || this.#addGroup(at);
    let entry = this.#entries[group]!;
    while (entry !== 0 && this.#crawlers[entry] !== at.crawler) entry = this.#nextEntry[entry]!;
    if (entry === 0) entry = this.#addEntry(group, at.crawler);
    this.#sumsMs[entry]! += offsetMs;
    this.#counts[entry]! += 1;
  }

  each(at: HolderPair, visit: (crawler: number, sumMs: number, count: number) => void): void {
    for (let entry = this.#entries[this.#groupOf(at)]!; entry !== 0; entry = this.#nextEntry[entry]!)
      visit(this.#crawlers[entry]!, this.#sumsMs[entry]!, this.#counts[entry]!);
  }

  /** 0 when there is none. */
  #groupOf({ holder, nearest }: HolderPair): number {
    let group = this.#groups[holder] ?? 0;
    while (group !== 0 && this.#nearest[group] !== nearest) group = this.#nextGroup[group]!;
    return group;
  }

  #addGroup({ holder, nearest }: HolderPair): number {
    if (holder >= this.#groups.length) this.#groups = copied(new Int32Array(2 * holder), this.#groups);
    const group = this.#groupCount++;
    if (group >= this.#nearest.length) {
      this.#nearest = copied(new Uint16Array(2 * group), this.#nearest);
      this.#nextGroup = copied(new Int32Array(2 * group), this.#nextGroup);
      this.#entries = copied(new Int32Array(2 * group), this.#entries);
    }
    this.#nearest[group] = nearest;
    this.#nextGroup[group] = this.#groups[holder]!;
    this.#groups[holder] = group;
    return group;
  }

  #addEntry(group: number, crawler: number): number {
    const entry = this.#entryCount++;
    if (entry >= this.#crawlers.length) {
      this.#crawlers = copied(new Uint16Array(2 * entry), this.#crawlers);
      this.#sumsMs = copied(new Float64Array(2 * entry), this.#sumsMs);
      this.#counts = copied(new Int32Array(2 * entry), this.#counts);
      this.#nextEntry = copied(new Int32Array(2 * entry), this.#nextEntry);
    }
    this.#crawlers[entry] = crawler;
    this.#nextEntry[entry] = this.#entries[group]!;
    this.#entries[group] = entry;
    return entry;
  }
}

function copied<Values extends { set(from: Values): void }>(longer: Values, values: Values): Values {
  longer.set(values);
  return longer;
}

// What measurements teach about predictions: how much more or less than the middle of the bounds crawler c turned
// out to be where crawler a was the nearest of the others. Once over all subnets, and once within each holder, whose
// subnets lie close together as a rule; the holder's offset is drawn towards the general one, that towards zero, by
// the weight of one measurement each.
//
// Pairs are kept sparse: one entry per crawler that measured beside another one.

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

/**
 * The crawlers' round-trip times to each other, as they measured them: one row of numbers per crawler, so that
 * a fleet of 1,000 takes 20 MB and a look-up no text keys. Both directions are one path: the smaller of the
 * two measurements counts, since congestion only adds. What was measured earlier is replaced, direction by
 * direction.
 */
import type { CrawlerId } from "#core/ids";
import { mix32 } from "#core/random";

export class PeerMatrix {
  readonly #slots = new Map<CrawlerId, number>();
  readonly #ids: CrawlerId[] = [];
  #capacity = 0;
  /** By direction: what the row's crawler measured (NaN: nothing). */
  #measured: Float64Array[] = [];
  /** The smaller of both directions, symmetric. */
  #best: Float64Array[] = [];
  /** By direction: when it was last measured or asked for, in seconds; 0: never. */
  #touchedAt: Uint32Array[] = [];
  readonly #known: number[] = [];
  #revision = 0;

  /** Counts up whenever an RTT becomes known or changes by more than jitter: what was made from the rows is old then. */
  get revision(): number {
    return this.#revision;
  }

  get size(): number {
    return this.#ids.length;
  }

  /** The slots of all crawlers that were ever named; slots stay. */
  get slots(): ReadonlyMap<CrawlerId, number> {
    return this.#slots;
  }

  /** Per slot the RTTs in ms to all slots (NaN: unknown); live, and longer than the fleet. New rows after a growth. */
  get rows(): readonly Float64Array[] {
    return this.#best;
  }

  /** The crawler's slot, a new one where it has none. */
  slotOf(crawlerId: CrawlerId): number {
    const known = this.#slots.get(crawlerId);
    if (known !== undefined) return known;
    const slot = this.#ids.length;
    if (slot === this.#capacity) this.#grow();
    this.#slots.set(crawlerId, slot);
    this.#ids.push(crawlerId);
    this.#known.push(0);
    return slot;
  }

  /** A measurement in ms; what is none (negative, NaN, of a crawler to itself) is left out. */
  learn(from: number, to: number, rttMs: number, atMs: number): void {
    if (!(rttMs >= 0) || !Number.isFinite(rttMs) || from === to) return;
    if (Number.isNaN(this.#best[from]![to]!)) {
      this.#known[from]! += 1;
      this.#known[to]! += 1;
    }
    this.#measured[from]![to] = rttMs;
    const back = this.#measured[to]![from]!;
    const best = Number.isNaN(back) ? rttMs : Math.min(back, rttMs);
    if (isOther(this.#best[from]![to]!, best)) this.#revision += 1;
    this.#best[from]![to] = best;
    this.#best[to]![from] = best;
    this.touch(from, to, atMs);
  }

  /** It was measured, or asked for, at this time. */
  touch(from: number, to: number, atMs: number): void {
    this.#touchedAt[from]![to] = Math.max(1, Math.floor(atMs / 1000));
  }

  /** The RTT between two slots in ms; NaN where neither has measured the other. */
  rttMs(a: number, b: number): number {
    return this.#best[a]?.[b] ?? Number.NaN;
  }

  hasMeasured(from: number, to: number): boolean {
    const rttMs = this.#measured[from]?.[to];
    return rttMs !== undefined && !Number.isNaN(rttMs);
  }

  /** To how many others a slot's RTT is known. */
  knownOf(slot: number): number {
    return this.#known[slot] ?? 0;
  }

  /** When one direction was last measured or asked for, in seconds; 0: never. */
  touchedAt(from: number, to: number): number {
    return this.#touchedAt[from]![to]!;
  }

  #grow(): void {
    this.#capacity = Math.max(16, this.#capacity * 2);
    const wider = <Row extends Float64Array | Uint32Array>(rows: Row[], make: () => Row) =>
      Array.from({ length: this.#capacity }, (_, slot) => {
        const row = make();
        if (rows[slot]) row.set(rows[slot]);
        return row;
      });
    this.#measured = wider(this.#measured, () => new Float64Array(this.#capacity).fill(Number.NaN));
    this.#best = wider(this.#best, () => new Float64Array(this.#capacity).fill(Number.NaN));
    this.#touchedAt = wider(this.#touchedAt, () => new Uint32Array(this.#capacity));
  }
}

function isOther(beforeMs: number, nowMs: number): boolean {
  return !(Math.abs(nowMs - beforeMs) <= 2 + 0.1 * beforeMs);
}

// RTTs between crawlers that have not measured each other yet, from the landmarks that both have measured. By
// the triangle inequality the RTT from a to b lies, for each landmark l, between |D[a][l] − D[b][l]| and
// D[a][l] + D[b][l]; the estimate is the middle of what all landmarks leave.
//
// Estimates are off by some 20 ms, and by 50 in one of ten (the Internet violates the inequality). They say
// whom a crawler should measure next, and nothing else: given to `nearest` as if measured they cost five to
// ten points of accuracy in simulation, and as hints of whom to ask they saved probes with 200 crawlers and
// cost some with 1,000 (test/bench/results/calibration.md). A pair that is not measured stays unknown to it.

/** In ms from one slot to every slot of the matrix, measured or not; NaN where nothing can be said. */
export function estimatedRow(matrix: PeerMatrix, own: number, landmarks: readonly CrawlerId[]): Float32Array {
  const least = new Float32Array(matrix.size);
  const most = new Float32Array(matrix.size).fill(Number.POSITIVE_INFINITY);
  for (const landmark of landmarks) {
    const slot = matrix.slots.get(landmark);
    const ownMs = slot === undefined ? Number.NaN : matrix.rttMs(own, slot);
    if (slot === undefined || Number.isNaN(ownMs)) continue;
    const row = matrix.rows[slot]!;
    for (let index = 0; index < least.length; index++) {
      const gap = Math.abs(row[index]! - ownMs);
      // Comparisons with NaN are false: what the landmark does not know leaves the bounds alone.
      if (gap > least[index]!) least[index] = gap;
      if (row[index]! + ownMs < most[index]!) most[index] = row[index]! + ownMs;
    }
  }
  for (let index = 0; index < least.length; index++) {
    const isBounded = Number.isFinite(most[index]!) && index !== own;
    least[index] = isBounded ? (least[index]! + most[index]!) / 2 : Number.NaN;
  }
  return least;
}

// Which crawlers measure which others, at a rate that the fleet can afford: 48 each in ten minutes.
//
// up to 49 crawlers    everybody measures everybody
// up to 97             each pair is measured by one of the two
// beyond               16 landmarks, the 16 nearest, and of the rest those that were left alone longest
//
// With landmarks and neighbours fresh, the rest comes round: a fleet of 200 knows all its pairs after 40 minutes,
// one of 1,000 three quarters of them after 160. Until then the landmarks tell who the neighbours are
// (peer-estimates.ts); these matter most, since what is near one crawler is decided between it and them.
// Landmarks are drawn by a hash of the crawler's number: they stay when others come and go, lie where crawlers
// lie, and need no RTTs that nobody has yet, as a farthest-point choice does.

/** Measurements of one crawler in one refresh interval. */
export const peersPerTurn = 48;

/** A pair is measured again when its measurement is so old. */
export const peerRefreshMs = 600_000;

/** One that was asked for and never measured is asked for again. */
const peerRetryMs = 50_000;

export const landmarkCount = 16;
export const neighbourCount = 16;

/** The largest fleet in which every pair is measured in every interval. */
const largestMesh = 2 * peersPerTurn + 1;

/** The landmarks of a fleet; none where every pair is measured anyway. */
export function landmarksOf(online: readonly CrawlerId[]): CrawlerId[] {
  if (online.length <= largestMesh) return [];
  return online.toSorted((a, b) => mix32(a) - mix32(b)).slice(0, landmarkCount);
}

export interface PeerTurn {
  readonly matrix: PeerMatrix;
  /** Those that can be measured now. */
  readonly online: readonly CrawlerId[];
  readonly landmarks: readonly CrawlerId[];
  readonly nowMs: number;
}

/** Whether the crawler is new to the fleet: what it needs first is not known yet. O(1) but for small fleets. */
export function isNewcomer(crawlerId: CrawlerId, { matrix, online, landmarks }: PeerTurn): boolean {
  const slot = matrix.slotOf(crawlerId);
  const needed = landmarks.length === 0 ? online.length - 1 : landmarkCount + neighbourCount;
  return matrix.knownOf(slot) < needed;
}

/**
 * Whom a crawler is to measure now, the most useful first, and marks those as asked for. Pairs that were
 * measured or asked for within the interval, by either side, are left out.
 */
export function peersFor(crawlerId: CrawlerId, turn: PeerTurn): CrawlerId[] {
  const { matrix, online, landmarks, nowMs } = turn;
  const own = matrix.slotOf(crawlerId);
  const others = online.filter((peer) => peer !== crawlerId);
  const chosen = landmarks.length === 0 ? meshPeers(crawlerId, others) : sparsePeers(crawlerId, others, turn);
  const bothWays = online.length - 1 <= peersPerTurn;
  const due: CrawlerId[] = [];
  for (const peer of chosen) {
    if (due.length === peersPerTurn) break;
    const slot = matrix.slotOf(peer);
    const back = bothWays ? 0 : matrix.touchedAt(slot, own);
    const isKnown = bothWays ? matrix.hasMeasured(own, slot) : !Number.isNaN(matrix.rttMs(own, slot));
    const restMs = isKnown ? peerRefreshMs : peerRetryMs;
    if (Math.max(matrix.touchedAt(own, slot), back) * 1000 > nowMs - restMs) continue;
    matrix.touch(own, slot, nowMs);
    due.push(peer);
  }
  return due;
}

/** Everybody, or the half that is this crawler's part: of a pair, the parity of both numbers says whose it is. */
function meshPeers(crawlerId: CrawlerId, others: readonly CrawlerId[]): readonly CrawlerId[] {
  if (others.length <= peersPerTurn) return others;
  return others.filter((peer) => ((crawlerId + peer) % 2 === 0) === crawlerId < peer);
}

function sparsePeers(crawlerId: CrawlerId, others: readonly CrawlerId[], turn: PeerTurn): CrawlerId[] {
  const { matrix, landmarks } = turn;
  const own = matrix.slotOf(crawlerId);
  const slots = others.map((peer) => matrix.slotOf(peer));
  const estimates = estimatedRow(matrix, own, landmarks);
  const distanceMs = (index: number) => {
    const rttMs = matrix.rttMs(own, slots[index]!);
    const guess = Number.isNaN(rttMs) ? (estimates[slots[index]!] ?? Number.NaN) : rttMs;
    return Number.isNaN(guess) ? Number.POSITIVE_INFINITY : guess;
  };
  const age = (index: number) =>
    Math.max(matrix.touchedAt(own, slots[index]!), matrix.touchedAt(slots[index]!, own));
  const near = smallest(others.length, neighbourCount, distanceMs);
  // A hash decides among those that nobody ever measured, so that not all crawlers begin with the same.
  const oldest = smallest(
    others.length,
    2 * peersPerTurn,
    (index) => age(index) + mix32(own * 65_537 + index) / 2 ** 33,
  );
  const named = new Set<CrawlerId>(landmarks.filter((landmark) => landmark !== crawlerId));
  for (const index of [...near, ...oldest]) named.add(others[index]!);
  return [...named];
}

/** The indices with the smallest keys, ascending; sorting numbers alone is several times faster than by keys. */
function smallest(count: number, wanted: number, keyOf: (index: number) => number): number[] {
  const keys = Float64Array.from({ length: count }, (_, index) => keyOf(index));
  const limit = keys.toSorted()[wanted - 1] ?? Number.POSITIVE_INFINITY;
  const indices: number[] = [];
  for (let index = 0; index < count; index++) if (keys[index]! <= limit) indices.push(index);
  return indices.sort((a, b) => keys[a]! - keys[b]! || a - b).slice(0, wanted);
}

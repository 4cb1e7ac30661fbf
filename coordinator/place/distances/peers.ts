/** Chooses which peers crawlers measure, and estimates unmeasured RTTs. `peer-matrix.ts` stores the measurements. */
import type { CrawlerId } from "#core/ids";
import { mix32 } from "#core/random";
import { smallestOf } from "#core/small-collections";
import type { PeerMatrix } from "./peer-matrix.ts";

// Estimates RTTs between crawlers that have not measured each other yet, from the landmarks that both have measured. By the
// triangle inequality, each landmark l bounds the RTT from a to b by |D[a][l] − D[b][l]| and D[a][l] + D[b][l]. The estimate
// is the middle of the tightest bounds.
//
// Estimates are off by some 20 ms, and by 50 in one of ten, because the Internet violates the inequality. They only determine
// what a crawler measures next, since as measurements for `nearest` they cost five to ten points of accuracy
// (test/bench/results/calibration.md).

/** The landmarks' measurements, arranged for many queries. */
export class LandmarkEstimates {
  /** For each landmark the RTT in ms to every slot. NaN if unknown. */
  readonly #fromLandmarks: readonly Float64Array[];

  constructor(matrix: PeerMatrix, landmarks: readonly CrawlerId[]) {
    this.#fromLandmarks = landmarks.flatMap((landmark) => {
      const slot = matrix.slots.get(landmark);
      if (slot === undefined) return [];
      const rttsMs = new Float64Array(matrix.size).fill(Number.NaN);
      matrix.eachKnown(slot, (peer, rttMs) => {
        rttsMs[peer] = rttMs;
      });
      return [rttsMs];
    });
  }

  /** RTT in ms. NaN if no landmark knows both. */
  between(a: number, b: number): number {
    let leastMs = 0;
    let mostMs = Number.POSITIVE_INFINITY;
    for (const rttsMs of this.#fromLandmarks) {
      const gapMs = Math.abs(rttsMs[b]! - rttsMs[a]!);
      const sumMs = rttsMs[b]! + rttsMs[a]!;
      // Comparisons with NaN are false, so unknown values leave the bounds unchanged.
      if (gapMs > leastMs) leastMs = Math.fround(gapMs);
      if (sumMs < mostMs) mostMs = Math.fround(sumMs);
    }
    return Number.isFinite(mostMs) && a !== b ? Math.fround((leastMs + mostMs) / 2) : Number.NaN;
  }

  /** Position of the landmark nearest to a slot, or −1. */
  nearestTo(slot: number): number {
    let nearest = -1;
    let leastMs = Number.POSITIVE_INFINITY;
    this.#fromLandmarks.forEach((rttsMs, landmark) => {
      if (!(rttsMs[slot]! < leastMs)) return;
      leastMs = rttsMs[slot]!;
      nearest = landmark;
    });
    return nearest;
  }
}

// Which crawlers measure which others, at a rate that the fleet can afford: 48 each in ten minutes.
//
//     up to 49 crawlers    everybody measures everybody
//     up to 97             each pair is measured by one of the two
//     beyond               16 landmarks, the 16 nearest, and of the rest those measured longest ago
//
// A fleet of 200 knows all its pairs after 40 minutes, one of 1,000 three quarters of them after 160. Neighbours matter most,
// because subnets near a crawler are decided between it and them. Until they are measured, they are estimated. Landmarks are
// chosen by a hash of the crawler's number, so that they are stable, are spread like the fleet and need no RTTs.
//
// In a fleet of more than 500 crawlers, neighbours and others are searched among a sample of some 500 (`PeerSearch`) that
// changes with every interval, since all pairs would be too many.

/** Measurements per crawler and refresh interval. */
export const peersPerTurn = 48;

/** Age at which a pair is measured again. */
export const peerRefreshMs = 600_000;

/** Delay after which an unanswered request is repeated. */
const peerRetryMs = 50_000;

export const landmarkCount = 16;
export const neighbourCount = 16;

/** Maximum fleet in which every pair is measured in every interval. */
const largestMesh = 2 * peersPerTurn + 1;

/** Empty if every pair is measured anyway. */
export function landmarksOf(online: readonly CrawlerId[]): CrawlerId[] {
  if (online.length <= largestMesh) return [];
  const drawn = Float64Array.from(online, (crawlerId: CrawlerId) => mix32(crawlerId));
  return Array.from(smallestOf(drawn, landmarkCount), (index) => online[index]!);
}

export interface PeerTurn {
  readonly matrix: PeerMatrix;
  readonly online: readonly CrawlerId[];
  readonly landmarks: readonly CrawlerId[];
  readonly nowMs: number;
}

/** True while the crawler lacks what it needs first. O(1) except in small fleets. */
export function isNewcomer(crawlerId: CrawlerId, { matrix, online, landmarks }: PeerTurn): boolean {
  const slot = matrix.slotOf(crawlerId);
  const needed = landmarks.length === 0 ? online.length - 1 : landmarkCount + neighbourCount;
  return matrix.knownOf(slot) < needed;
}

/**
 * The peers to measure now, most useful first, marked as requested. Excludes pairs measured or requested by either side
 * within the interval. Crawlers served together share `search`.
 */
export function peersFor(
  crawlerId: CrawlerId,
  turn: PeerTurn,
  {
    search = null,
    most = peersPerTurn,
  }: { readonly search?: PeerSearch | null; readonly most?: number } = {},
): CrawlerId[] {
  const { matrix, online, landmarks, nowMs } = turn;
  const own = matrix.slotOf(crawlerId);
  const bothWays = online.length - 1 <= peersPerTurn;
  const due: CrawlerId[] = [];
  const chosen =
    landmarks.length === 0
      ? meshPeers(crawlerId, online)
      : (search ?? new PeerSearch(turn)).peersOf(crawlerId);
  for (const peer of chosen) {
    if (due.length === most) break;
    const slot = matrix.slotOf(peer);
    const back = bothWays ? 0 : matrix.touchedAt(slot, own);
    const isKnown = !Number.isNaN(bothWays ? matrix.measuredMsAt(own, slot) : matrix.rttMsAt(own, slot));
    const restMs = isKnown ? peerRefreshMs : peerRetryMs;
    if (Math.max(matrix.touchedAt(own, slot), back) * 1000 > nowMs - restMs) continue;
    matrix.touch(own, slot, nowMs);
    due.push(peer);
  }
  return due;
}

/** All peers, or this crawler's half: the parity of both numbers assigns a pair. */
function meshPeers(crawlerId: CrawlerId, online: readonly CrawlerId[]): readonly CrawlerId[] {
  const others = online.filter((peer) => peer !== crawlerId);
  if (others.length <= peersPerTurn) return others;
  return others.filter((peer) => ((crawlerId + peer) % 2 === 0) === crawlerId < peer);
}

/** Maximum fleet in which all other crawlers are considered. */
export const lookedAtWhole = 500;

/** Candidates in a larger fleet: beside the same landmark, at random, and neighbours of each of the nearest. */
const besideLandmark = 256;
const ofAnybody = 128;
const nearestFollowed = 12;
const nearestOfEach = 12;

/** Finds each crawler's possible neighbours and the longest unmeasured, for all crawlers that are served together. */
export class PeerSearch {
  readonly #turn: PeerTurn;
  readonly #slots: Int32Array;
  readonly #estimates: LandmarkEstimates;
  /** Position among the online crawlers by slot. −1 if offline. */
  readonly #positions: Int32Array;
  /** Positions nearest to each landmark. */
  #besides: readonly number[][] | null = null;

  constructor(turn: PeerTurn) {
    const { matrix, online, landmarks } = turn;
    this.#turn = turn;
    this.#slots = matrix.slotsOf(online);
    this.#estimates = new LandmarkEstimates(matrix, landmarks);
    this.#positions = new Int32Array(matrix.size).fill(-1);
    this.#slots.forEach((slot, position) => {
      this.#positions[slot] = position;
    });
  }

  /** Landmarks, neighbours and others, in this order. */
  peersOf(crawlerId: CrawlerId): CrawlerId[] {
    const { matrix, online, landmarks } = this.#turn;
    const own = matrix.slotOf(crawlerId);
    const looked = this.#lookedAt(own);
    const slotAt = (index: number) => this.#slots[looked[index]!]!;
    const distanceMs = (index: number) => {
      const rttMs = matrix.rttMsAt(own, slotAt(index));
      const guessMs = Number.isNaN(rttMs) ? this.#estimates.between(own, slotAt(index)) : rttMs;
      return Number.isNaN(guessMs) ? Number.POSITIVE_INFINITY : guessMs;
    };
    const age = (index: number) =>
      Math.max(matrix.touchedAt(own, slotAt(index)), matrix.touchedAt(slotAt(index), own));
    const near = smallest(looked.length, neighbourCount, distanceMs);
    // A hash orders those never measured, so that crawlers do not all begin with the same.
    const oldest = smallest(
      looked.length,
      2 * peersPerTurn,
      (index) => age(index) + mix32(own * 65_537 + index) / 2 ** 33,
    );
    const named = new Set<CrawlerId>(landmarks.filter((landmark) => landmark !== crawlerId));
    for (const index of [...near, ...oldest]) named.add(online[looked[index]!]!);
    return [...named];
  }

  /** Positions of the candidates for a crawler, without itself. */
  #lookedAt(own: number): readonly number[] {
    const { matrix, nowMs } = this.#turn;
    const count = this.#slots.length;
    const looked = new Set<number>();
    if (count <= lookedAtWhole) {
      for (let position = 0; position < count; position++) looked.add(position);
    } else {
      for (const peer of matrix.nearestOf(own)) looked.add(this.#positionOf(peer));
      for (const peer of matrix.nearestOf(own).subarray(0, nearestFollowed))
        for (const next of matrix.nearestOf(peer).subarray(0, nearestOfEach))
          looked.add(this.#positionOf(next));
      const turn = mix32(own ^ Math.floor(nowMs / 1000));
      const beside = this.#besideOf(own);
      addSome(looked, { wanted: besideLandmark, of: beside.length, turn }, (index) => beside[index]!);
      addSome(looked, { wanted: ofAnybody, of: count, turn }, (index) => index);
    }
    looked.delete(-1);
    looked.delete(this.#positionOf(own));
    return [...looked];
  }

  #positionOf(slot: number): number {
    return this.#positions[slot] ?? -1;
  }

  /** Crawlers with the same nearest landmark. Empty if that is unknown. */
  #besideOf(own: number): readonly number[] {
    this.#besides ??= this.#findBesides();
    return this.#besides[this.#estimates.nearestTo(own)] ?? [];
  }

  #findBesides(): readonly number[][] {
    const besides: number[][] = Array.from({ length: landmarkCount }, () => []);
    this.#slots.forEach((slot, position) => void besides[this.#estimates.nearestTo(slot)]?.push(position));
    return besides;
  }
}

/** All of a short list, otherwise an evenly spaced sample from a start that changes with every interval. */
function addSome(
  chosen: Set<number>,
  { wanted, of, turn }: { readonly wanted: number; readonly of: number; readonly turn: number },
  at: (index: number) => number,
): void {
  const most = Math.min(wanted, of);
  for (let drawn = 0; drawn < most; drawn++)
    chosen.add(at(Math.floor((turn % of) + (drawn * of) / most) % of));
}

/** Indexes of the smallest keys, ascending. Ties keep their order. */
function smallest(count: number, wanted: number, keyOf: (index: number) => number): number[] {
  return Array.from(
    smallestOf(
      Float64Array.from({ length: count }, (_, index) => keyOf(index)),
      wanted,
    ),
  );
}

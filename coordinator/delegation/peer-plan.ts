/**
 * Which crawlers measure which others, at a rate that the fleet can afford: 48 each in ten minutes.
 *
 *   up to 49 crawlers    everybody measures everybody
 *   up to 97             each pair is measured by one of the two
 *   beyond               16 landmarks, the 16 nearest, and of the rest those that were left alone longest
 *
 * With landmarks and neighbours fresh, the rest comes round: a fleet of 200 knows all its pairs after 40 minutes,
 * one of 1,000 three quarters of them after 160. Until then the landmarks tell who the neighbours are
 * (peer-estimates.ts); these matter most, since what is near one crawler is decided between it and them.
 * Landmarks are drawn by a hash of the crawler's number: they stay when others come and go, lie where crawlers
 * lie, and need no RTTs that nobody has yet, as a farthest-point choice does.
 */
import type { CrawlerId } from "#core/ids";
import { mix32 } from "#core/random";
import { estimatedRow } from "./peer-estimates.ts";
import type { PeerMatrix } from "./peers.ts";

/** Measurements of one crawler in one refresh interval. */
export const peersPerTurn = 48;
/** A pair is measured again when its measurement is so old. */
export const peerRefreshMs = 600_000;
/** One that was asked for and never measured is asked for again. */
const peerRetryMs = 50_000;
export const landmarkCount = 16;
export const neighbourCount = 16;

/** The largest fleet in which every pair is measured in every interval. */
export const largestMesh = 2 * peersPerTurn + 1;

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

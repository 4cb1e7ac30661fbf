/**
 * The crawlers that may take a subnet, as a probe round sees them: the candidates (who is online, not full,
 * not draining and not denied the target is the caller's business), and the round-trip times between them.
 */
import type { CrawlerId } from "#core/ids";
import { type KnownPeers, type NearestStretch, PeerMatrix } from "../distances/peer-matrix.ts";

export interface MeasuredPeer {
  readonly from: CrawlerId;
  readonly to: CrawlerId;
  readonly rttMs: number;
}

/** RTTs between crawlers, in ms, as rounds read them. Both directions are one path: the smaller measurement counts. */
export class PeerRttTable {
  readonly #matrix: PeerMatrix;

  /** `matrix`: where the measurements go to. */
  constructor(
    measurements: readonly MeasuredPeer[],
    matrix = new PeerMatrix(() => Number.POSITIVE_INFINITY),
  ) {
    this.#matrix = matrix;
    for (const { from, to, rttMs } of measurements) {
      const [a, b] = [matrix.slotOf(from), matrix.slotOf(to)];
      if (!(matrix.measuredMs(a, b) <= rttMs)) matrix.learn(a, b, rttMs, 0);
    }
  }

  /** A table over a matrix, live: what is learned later shows here too. */
  static over(matrix: PeerMatrix): PeerRttTable {
    return new PeerRttTable([], matrix);
  }

  /** Another number after every change that matters (see `PeerMatrix`); constant for a table of given measurements. */
  get revision(): number {
    return this.#matrix.revision;
  }

  /** Null when neither side has measured the other. */
  rttMs(a: CrawlerId, b: CrawlerId): number | null {
    const { slots } = this.#matrix;
    const rttMs = this.#matrix.rttMs(slots.get(a) ?? -1, slots.get(b) ?? -1);
    return Number.isNaN(rttMs) ? null : rttMs;
  }

  /** What the first has measured to the second by itself; null: nothing. */
  measuredMs(from: CrawlerId, to: CrawlerId): number | null {
    const { slots } = this.#matrix;
    const rttMs = this.#matrix.measuredMs(slots.get(from) ?? -1, slots.get(to) ?? -1);
    return Number.isNaN(rttMs) ? null : rttMs;
  }

  /** The same by slots; NaN where neither has. */
  rttMsAt(a: number, b: number): number {
    return this.#matrix.rttMs(a, b);
  }

  /** Where the crawlers stand in this table, for the questions below; each gets its slot. */
  slotsOf(crawlerIds: readonly CrawlerId[]): Int32Array {
    return Int32Array.from(crawlerIds, (crawlerId: CrawlerId) => this.#matrix.slotOf(crawlerId));
  }

  /** The RTTs from one slot to many, in their order; NaN where unknown. */
  rttsBetween(from: number, to: Int32Array): Float64Array {
    return this.#matrix.rttsBetween(from, to);
  }

  /** Whom a slot's RTT to is known, in ascending order of their slots; to be read at once. */
  knownTo(slot: number): KnownPeers {
    return this.#matrix.knownTo(slot);
  }

  /** The nearest that are known of a slot, nearest first; good until the next question. */
  nearestAtHand(slot: number): NearestStretch {
    return this.#matrix.nearestAtHand(slot);
  }
}

export interface CandidateFleet {
  readonly candidates: readonly CrawlerId[];
  readonly indexOf: ReadonlyMap<CrawlerId, number>;
  readonly peerRtts: PeerRttTable;
  /** The candidates' slots in that table. */
  readonly peerSlots: Int32Array;
  /** By slot of that table the candidate's position; −1, or beyond the end, for crawlers that are none. */
  readonly indexOfPeer: Int32Array;
}

/** The candidates of one round; a crawler named twice counts once. */
export function candidateFleet(crawlerIds: readonly CrawlerId[], peerRtts: PeerRttTable): CandidateFleet {
  const indexOf = new Map<CrawlerId, number>();
  for (const crawlerId of crawlerIds) if (!indexOf.has(crawlerId)) indexOf.set(crawlerId, indexOf.size);
  const candidates = [...indexOf.keys()];
  const peerSlots = peerRtts.slotsOf(candidates);
  const indexOfPeer = new Int32Array(1 + peerSlots.reduce((most, slot) => Math.max(most, slot), -1)).fill(-1);
  peerSlots.forEach((slot, index) => {
    indexOfPeer[slot] = index;
  });
  return { candidates, indexOf, peerRtts, peerSlots, indexOfPeer };
}

/** How far `to` is from `from` by what others measured: straight, or over a third candidate where that is shorter. */
export function shortestTo(
  { candidates, peerRtts }: CandidateFleet,
  from: CrawlerId,
  to: CrawlerId,
  straightMs: number,
): number {
  let shortestMs = straightMs;
  for (const over of candidates) {
    const rest = over === to || over === from ? null : peerRtts.measuredMs(over, to);
    if (rest === null || rest >= shortestMs) continue;
    const first = peerRtts.measuredMs(from, over);
    if (first !== null) shortestMs = Math.min(shortestMs, first + rest);
  }
  return shortestMs;
}

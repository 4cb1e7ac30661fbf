/**
 * The crawlers that may take a subnet, as a probe round sees them: the candidates (who is online, not full,
 * not draining and not denied the target is the caller's business), and the round-trip times between them.
 */
import type { CrawlerId } from "#core/ids";
import type { PeerMatrix } from "../distances/peer-matrix.ts";

export interface CandidateFleet {
  readonly candidates: readonly CrawlerId[];
  readonly indexOf: ReadonlyMap<CrawlerId, number>;
  readonly peerRtts: PeerMatrix;
  /** The candidates' slots there. */
  readonly peerSlots: Int32Array;
  /** By slot the candidate's position; −1, or beyond the end, for crawlers that are none. */
  readonly indexOfPeer: Int32Array;
}

/** The candidates of one round; a crawler named twice counts once. */
export function candidateFleet(crawlerIds: readonly CrawlerId[], peerRtts: PeerMatrix): CandidateFleet {
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

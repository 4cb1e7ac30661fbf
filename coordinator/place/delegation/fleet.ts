/**
 * The candidates of a probe round and the RTTs between them. The caller excludes crawlers that are offline, full,
 * draining or denied the target.
 */
import type { CrawlerId } from "#core/ids";
import type { PeerMatrix } from "../distances/peer-matrix.ts";

export interface CandidateFleet {
  readonly candidates: readonly CrawlerId[];
  readonly indexOf: ReadonlyMap<CrawlerId, number>;
  readonly peerRtts: PeerMatrix;
  readonly peerSlots: Int32Array;
  /** The candidate's position by slot. −1, or beyond the end, for other crawlers. */
  readonly indexOfPeer: Int32Array;
}

/** A crawler named twice counts once. */
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

/** RTT from `from` to `to` measured by others, directly or over a third candidate. */
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

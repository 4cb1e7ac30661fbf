/**
 * The fleets of the latest rounds. Nearly every round has the candidates of the one before, and a fleet of 200
 * takes longer to make than a whole look-up.
 */

import type { CrawlerId } from "#core/ids";
import { type CandidateFleet, candidateFleet, type PeerRttTable } from "./fleet.ts";

/** As many sets of candidates take turns: partners that deny a target, crawlers that are full for the day. */
const kept = 8;

export class RecentFleets {
  /** The latest first. */
  readonly #recent: { readonly crawlerIds: readonly CrawlerId[]; readonly fleet: CandidateFleet }[] = [];

  /** The fleet of these candidates in this order, made anew where it is not among the latest. */
  of(crawlerIds: readonly CrawlerId[], peerRtts: PeerRttTable): CandidateFleet {
    const at = this.#recent.findIndex(
      (one) => one.fleet.peerRtts === peerRtts && isSame(one.crawlerIds, crawlerIds),
    );
    if (at === 0) return this.#recent[0]!.fleet;
    const known = at < 0 ? null : this.#recent.splice(at, 1)[0]!;
    // The caller's list may change behind our back.
    const one = known ?? { crawlerIds: [...crawlerIds], fleet: candidateFleet(crawlerIds, peerRtts) };
    this.#recent.unshift(one);
    this.#recent.length = Math.min(this.#recent.length, kept);
    return one.fleet;
  }
}

function isSame(some: readonly CrawlerId[], others: readonly CrawlerId[]): boolean {
  return some.length === others.length && some.every((crawlerId, index) => crawlerId === others[index]);
}

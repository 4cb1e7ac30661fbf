/**
 * What is known of the crawlers' round-trip times to each other, and the table that probe rounds read. Pairs
 * that nobody could measure stay unknown, and rule nobody out.
 */

import type { CrawlerId } from "#core/ids";
import type { PeerRtt } from "../crawlers/crawler.ts";
import { PeerRttTable } from "./fleet.ts";
import { landmarksOf } from "./peer-plan.ts";
import { PeerMatrix } from "./peers.ts";

export class PeerRtts {
  readonly matrix = new PeerMatrix();
  #table: PeerRttTable | null = null;
  #tableSize = 0;

  /** Measured at this time; at the start it is not known when, and 0 stands for long ago. */
  learn(rtts: readonly PeerRtt[], atMs: number): void {
    for (const { from, to, rttMs } of rtts) {
      this.matrix.learn(this.matrix.slotOf(from), this.matrix.slotOf(to), rttMs, atMs);
    }
  }

  /** The same table as long as the crawlers that are known are the same; what is learned shows in it. */
  get table(): PeerRttTable {
    if (this.#table === null || this.#tableSize !== this.matrix.size) {
      this.#table = PeerRttTable.over(this.matrix);
      this.#tableSize = this.matrix.size;
    }
    return this.#table;
  }

  hasMeasured(from: CrawlerId, to: CrawlerId): boolean {
    const { slots } = this.matrix;
    return this.matrix.hasMeasured(slots.get(from) ?? -1, slots.get(to) ?? -1);
  }

  /**
   * How far a fleet has got with measuring itself, 0 to 1: the share of its pairs that somebody has measured;
   * in a large fleet, of the pairs with a landmark.
   */
  coverage(crawlerIds: readonly CrawlerId[]): number {
    const slots = crawlerIds.map((crawlerId) => this.matrix.slots.get(crawlerId) ?? -1);
    const landmarks = landmarksOf(crawlerIds).map((crawlerId) => this.matrix.slots.get(crawlerId) ?? -1);
    const rows = landmarks.length > 0 ? landmarks : slots;
    let pairs = 0;
    let known = 0;
    for (const [at, a] of rows.entries()) {
      for (const b of landmarks.length > 0 ? slots : slots.slice(at + 1)) {
        if (a === b && a >= 0) continue;
        pairs += 1;
        if (!Number.isNaN(this.matrix.rttMs(a, b))) known += 1;
      }
    }
    return pairs === 0 ? 1 : known / pairs;
  }
}

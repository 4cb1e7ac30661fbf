/**
 * What was measured for moves that were then put off: the next passes plan with it, or they would plan the
 * same move again and again. Paths change, so it is believed for an hour.
 */
import type { CrawlerId, SubnetId } from "#core/ids";

interface Attempt {
  /** Null: the crawler could not measure the subnet. */
  readonly rttMs: number | null;
  readonly atMs: number;
}

const believedMs = 3_600_000;

export class PutOffMoves {
  readonly #attempts = new Map<SubnetId, Map<CrawlerId, Attempt>>();

  note(attempt: { subnetId: SubnetId; to: CrawlerId; rttMs: number | null }, now: Date): void {
    const { subnetId, to, rttMs } = attempt;
    const known = this.#attempts.get(subnetId) ?? new Map<CrawlerId, Attempt>();
    this.#attempts.set(subnetId, known.set(to, { rttMs, atMs: now.getTime() }));
  }

  /** What is still believed: measured round trips, and crawlers that could not measure this subnet (null). */
  of(subnetId: SubnetId, now: Date): ReadonlyMap<CrawlerId, number | null> {
    const believed = new Map<CrawlerId, number | null>();
    for (const [crawlerId, { rttMs, atMs }] of this.#attempts.get(subnetId) ?? []) {
      if (now.getTime() - atMs <= believedMs) believed.set(crawlerId, rttMs);
    }
    if (believed.size === 0) this.#attempts.delete(subnetId);
    return believed;
  }
}

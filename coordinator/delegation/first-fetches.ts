/**
 * get-first (design section 5): a subnet that will be fetched often is crawled at once by the likeliest
 * crawler, and the connect time of its first fetch there is the round's first observation, for free. Here
 * rounds wait for that fetch; results that come in are held against what is waited for.
 *
 *   a round waits ──► a fetch of that crawler to that subnet connected ──► its time
 *                 └─► it failed, told no time, or none came in time ──► null: the crawler is probed instead
 */

import type { AlarmClock } from "#core/clock";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { ProbeOutcome } from "#protocol/messages";
import type { FetchResult } from "#protocol/result";
import type { ResultBatch } from "../results/take-results.ts";

export interface FirstFetchPorts {
  readonly clock: AlarmClock;
  readonly subnetOf: (address: string) => SubnetId | null;
}

interface Awaited {
  readonly crawlerId: CrawlerId;
  readonly settle: (outcome: ProbeOutcome | null) => void;
}

export class FirstFetches {
  readonly #ports: FirstFetchPorts;
  readonly #waitMs: number;
  readonly #awaited = new Map<SubnetId, Awaited>();

  /** `waitMs`: how long a round waits for the fetch. An idle crawler asks for work every two seconds. */
  constructor(ports: FirstFetchPorts, waitMs: number) {
    this.#ports = ports;
    this.#waitMs = waitMs;
  }

  /** Rounds that wait; they use nothing meanwhile. */
  get waiting(): number {
    return this.#awaited.size;
  }

  /** The crawler's first fetch in this subnet, as a connect probe of one try; null when there was none to speak of. */
  async of(subnetId: SubnetId, crawlerId: CrawlerId): Promise<ProbeOutcome | null> {
    this.#awaited.get(subnetId)?.settle(null);
    return await new Promise((resolve) => {
      const settle = (outcome: ProbeOutcome | null) => {
        callOff();
        this.#awaited.delete(subnetId);
        resolve(outcome);
      };
      const callOff = this.#ports.clock.wake(this.#waitMs, () => settle(null));
      this.#awaited.set(subnetId, { crawlerId, settle });
    });
  }

  /** Results came in. */
  note(batch: Pick<ResultBatch, "crawlerId" | "results">): void {
    if (this.#awaited.size === 0) return;
    for (const { result } of batch.results) this.#take(batch.crawlerId, result);
  }

  /** Nobody waits any longer: the coordinator stops. */
  close(): void {
    for (const { settle } of [...this.#awaited.values()]) settle(null);
  }

  /** A connect time is that of the address that was really connected to, which may lie in another subnet. */
  #take(crawlerId: CrawlerId, { address, timing }: FetchResult): void {
    if (address === null) return;
    const subnetId = this.#ports.subnetOf(address);
    const awaited = subnetId === null ? undefined : this.#awaited.get(subnetId);
    if (awaited?.crawlerId !== crawlerId) return;
    const { connectMs } = timing;
    awaited.settle(
      connectMs === null ? null : { type: "measured", method: "connect", rttMs: connectMs, tries: 1 },
    );
  }
}

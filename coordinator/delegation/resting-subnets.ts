/** Subnets that nobody could take, or whose round failed: each is left alone for a while, longer every time. */
import type { SubnetId } from "#core/ids";

/** The wait grows to so many times the first one. */
const mostTimesLonger = 32;

interface Rest {
  readonly untilMs: number;
  readonly times: number;
}

export class RestingSubnets {
  readonly #firstMs: number;
  readonly #rests = new Map<SubnetId, Rest>();

  constructor(firstMs: number) {
    this.#firstMs = firstMs;
  }

  rest(subnetId: SubnetId, nowMs: number): void {
    const times = this.#rests.get(subnetId)?.times ?? 0;
    const waitMs = this.#firstMs * Math.min(mostTimesLonger, 2 ** times);
    this.#rests.set(subnetId, { untilMs: nowMs + waitMs, times: times + 1 });
  }

  /** It was decided after all. */
  forget(subnetId: SubnetId): void {
    this.#rests.delete(subnetId);
  }

  /** Who rests now. What has been awake for as long as the longest rest starts anew. */
  asleep(nowMs: number): SubnetId[] {
    const asleep: SubnetId[] = [];
    for (const [subnetId, { untilMs }] of this.#rests) {
      if (untilMs > nowMs) asleep.push(subnetId);
      else if (untilMs + mostTimesLonger * this.#firstMs <= nowMs) this.#rests.delete(subnetId);
    }
    return asleep;
  }
}

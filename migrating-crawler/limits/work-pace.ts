/**
 * How many hosts at a time the coordinator asks for, inside what this host allows (WEB-SAILOR section 4.3): as many as
 * there is due work for, one at least; on `hurry-up` as many as the limit allows. The number follows each message up
 * and down at once, whatever was asked for before. Each host still has one request at a time at most, in its own pace.
 */
import type { CoordinatorMessage } from "#protocol/coordinator-messages";

export type PaceMessage = Extract<CoordinatorMessage, { type: "coordinator:work-pace" }>;

export interface AskedPace {
  readonly pace: PaceMessage["pace"];
  /** Host slices, due or in hand; of many, no more than it took to tell. */
  readonly due: number;
  readonly reason: string;
  readonly since: Date;
  /** Hosts at a time, which the host's limit may lower; null: as many as that limit allows. */
  readonly places: number | null;
}

export class WorkPace {
  #asked: AskedPace | null = null;

  /** Null: nobody has asked for anything in this session. */
  get asked(): AskedPace | null {
    return this.#asked;
  }

  /** A session begins or ends: what the last one asked for counts no more. */
  forget(): void {
    this.#asked = null;
  }

  /** Of `limit` places, those that are to be used. */
  places(limit: number): number {
    return Math.min(limit, this.#asked?.places ?? limit);
  }

  take({ pace, due, reason }: PaceMessage, now: Date = new Date()): void {
    const before = this.#asked;
    const since = before?.pace === pace ? before.since : now;
    const places = pace === "hurry-up" ? null : Math.max(1, due);
    this.#asked = { pace, due, reason, since, places };
  }
}

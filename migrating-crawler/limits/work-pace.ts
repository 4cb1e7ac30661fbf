/**
 * Tracks how many hosts at a time the coordinator asks for, within this host's limit (WEB-SAILOR section 4.3): as many
 * as there is due work for, at least one, and the full limit on `hurry-up`. Each message replaces the last one. A host
 * still gets one request at a time, at its own pace.
 */
import type { CoordinatorMessage } from "#protocol/coordinator-messages";

export type PaceMessage = Extract<CoordinatorMessage, { type: "coordinator:work-pace" }>;

export interface AskedPace {
  readonly pace: PaceMessage["pace"];
  /** Host slices due or in hand; of many, only as many as the decision needed. */
  readonly due: number;
  readonly reason: string;
  readonly since: Date;
  /** Hosts at a time, which the host's limit may lower; null means the limit itself. */
  readonly places: number | null;
}

export class WorkPace {
  #asked: AskedPace | null = null;

  /** Null when nothing was asked for in this session. */
  get asked(): AskedPace | null {
    return this.#asked;
  }

  /** Call when a session begins or ends; the last request no longer counts. */
  forget(): void {
    this.#asked = null;
  }

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

/**
 * How many hosts at a time the coordinator asks for, inside what this host allows (WEB-SAILOR section 4.3): `slow-down`
 * halves the places, but leaves as many as there is work for; `hurry-up` doubles them, up to the host's limit. Each
 * host still has one request at a time at most, in its own pace.
 */
import type { CoordinatorMessage } from "#protocol/coordinator-messages";

export type PaceMessage = Extract<CoordinatorMessage, { type: "coordinator:work-pace" }>;

export interface AskedPace {
  readonly pace: PaceMessage["pace"];
  /** Host slices, due or in hand; of many, no more than it took to tell. */
  readonly due: number;
  readonly reason: string;
  readonly since: Date;
  /** Hosts at a time; null: as many as the host's limits allow. */
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

  take({ pace, due, reason }: PaceMessage, limit: number, now: Date = new Date()): void {
    const before = this.#asked;
    this.#asked = {
      ...{ pace, due, reason },
      since: before?.pace === pace ? before.since : now,
      places: nextPlaces({ pace, due, places: before?.places ?? null, limit }),
    };
  }
}

/** Null: as many as the limit allows, whatever that comes to be. */
export function nextPlaces({
  pace,
  due,
  places,
  limit,
}: {
  readonly pace: PaceMessage["pace"];
  readonly due: number;
  readonly places: number | null;
  readonly limit: number;
}): number | null {
  const now = Math.min(limit, places ?? limit);
  const next =
    pace === "steady"
      ? now
      : pace === "hurry-up"
        ? now * 2
        : Math.max(1, Math.min(now, Math.max(due, Math.floor(now / 2))));
  return next >= limit ? null : next;
}

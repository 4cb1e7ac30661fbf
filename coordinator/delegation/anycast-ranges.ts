/**
 * Which subnets are anycast, and what that says of their holders: who announces one range from many places
 * mostly does so with others. Holders that were checked and were not are remembered for a while, so that a
 * range registered abroad is not checked again and again. Read from the database at the start.
 */

import type { CrawlerId, SubnetId } from "#core/ids";
import type { PlaceKey, Placement } from "./placement.ts";

/** A holder that was clear may have become one since. */
const clearMs = 24 * 3_600_000;
const mostClearHolders = 50_000;
/** Suspicions that are remembered; of more, the oldest are forgotten. */
const mostSuspects = 10_000;

export class AnycastRanges {
  /** Null: its holder is not known. */
  readonly #ranges = new Map<SubnetId, PlaceKey | null>();
  readonly #holders = new Map<PlaceKey, number>();
  /** Until when a holder counts as clear; the oldest first. */
  readonly #clear = new Map<PlaceKey, number>();

  /** Who answered so fast that one machine cannot explain it; the oldest first. */
  readonly #suspects = new Map<SubnetId, { readonly witness: CrawlerId | null; readonly untilMs: number }>();

  /** What earlier coordinators found. */
  restore(subnetIds: readonly SubnetId[], placementOf: (subnetId: SubnetId) => Placement | null): void {
    for (const subnetId of subnetIds) this.mark(subnetId, placementOf(subnetId)?.holderKey ?? null);
  }

  has(subnetId: SubnetId): boolean {
    return this.#ranges.has(subnetId);
  }

  /** True: other ranges of the holder are anycast. False: one was looked at lately, and was not. Null: not known. */
  ofHolder(holderKey: PlaceKey | null, nowMs: number): boolean | null {
    if (holderKey === null) return null;
    if (this.#holders.has(holderKey)) return true;
    return (this.#clear.get(holderKey) ?? 0) > nowMs ? false : null;
  }

  /**
   * A probe outside of its rounds contradicts what is known of the subnet. False: it was suspected lately, and
   * whatever came of it counts (parts of a subnet that measure apart contradict with every probe).
   */
  suspect(subnetId: SubnetId, witness: CrawlerId, nowMs: number): boolean {
    const before = this.#suspects.get(subnetId);
    if (before && before.untilMs > nowMs) return false;
    this.#suspects.delete(subnetId);
    this.#suspects.set(subnetId, { witness, untilMs: nowMs + clearMs });
    for (const oldest of this.#suspects.keys()) {
      if (this.#suspects.size <= mostSuspects) break;
      this.#suspects.delete(oldest);
    }
    return true;
  }

  /** Whom the next round of the subnet has to ask, since its answer contradicted; told once. */
  takeWitness(subnetId: SubnetId): CrawlerId | null {
    const suspect = this.#suspects.get(subnetId);
    if (!suspect?.witness) return null;
    this.#suspects.set(subnetId, { ...suspect, witness: null });
    return suspect.witness;
  }

  mark(subnetId: SubnetId, holderKey: PlaceKey | null): void {
    this.unmark(subnetId);
    this.#ranges.set(subnetId, holderKey);
    if (holderKey === null) return;
    this.#holders.set(holderKey, (this.#holders.get(holderKey) ?? 0) + 1);
    this.#clear.delete(holderKey);
  }

  /** A later round found that one machine answers after all. */
  unmark(subnetId: SubnetId): void {
    const holderKey = this.#ranges.get(subnetId);
    this.#ranges.delete(subnetId);
    if (holderKey === undefined || holderKey === null) return;
    const left = (this.#holders.get(holderKey) ?? 0) - 1;
    if (left > 0) this.#holders.set(holderKey, left);
    else this.#holders.delete(holderKey);
  }

  /** A range of the holder was checked and is not anycast. */
  noteClear(holderKey: PlaceKey | null, nowMs: number): void {
    if (holderKey === null || this.#holders.has(holderKey)) return;
    this.#clear.delete(holderKey);
    this.#clear.set(holderKey, nowMs + clearMs);
    for (const oldest of this.#clear.keys()) {
      if (this.#clear.size <= mostClearHolders) return;
      this.#clear.delete(oldest);
    }
  }
}

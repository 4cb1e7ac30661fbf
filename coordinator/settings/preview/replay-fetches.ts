/** Past fetches once more, under another rule of recalibration: how often a subnet would have been probed again. */

import type { SubnetId } from "#core/ids";
import { FetchWatch, type WatchedFetch } from "../../delegation/recalibration/fetch-watch.ts";
import type { RecalibrationRule } from "../../delegation/recalibration/rule.ts";

export interface PastFetch extends WatchedFetch {
  readonly subnetId: SubnetId;
}

/** A subnet that was probed is left alone for so long (delegation/recalibration/recalibrate.ts). */
export const coolDownMs = 3_600_000;

/** Rounds that these fetches would have led to; each host's in the order of time. */
export function roundsBy(rule: RecalibrationRule, fetches: readonly PastFetch[]): number {
  const watch = new FetchWatch(rule, Number.POSITIVE_INFINITY);
  const probedAtMs = new Map<SubnetId, number>();
  let rounds = 0;
  for (const fetch of fetches.toSorted((a, b) => a.atMs - b.atMs)) {
    if (watch.note(fetch) === null) continue;
    const before = probedAtMs.get(fetch.subnetId) ?? Number.NEGATIVE_INFINITY;
    if (fetch.atMs - before <= coolDownMs) continue;
    probedAtMs.set(fetch.subnetId, fetch.atMs);
    rounds += 1;
  }
  return rounds;
}

/** How long the hosts were watched, all together, in days of one host. */
export function hostDays(fetches: readonly PastFetch[]): number {
  const spans = new Map<string, { firstMs: number; lastMs: number }>();
  for (const { hostKey, atMs } of fetches) {
    const span = spans.get(hostKey) ?? { firstMs: atMs, lastMs: atMs };
    span.firstMs = Math.min(span.firstMs, atMs);
    span.lastMs = Math.max(span.lastMs, atMs);
    spans.set(hostKey, span);
  }
  const watchedMs = [...spans.values()].reduce((sum, { firstMs, lastMs }) => sum + lastMs - firstMs, 0);
  return watchedMs / 86_400_000;
}

/**
 * Types and rules for recrawl plans (plan-writes.ts): plans, groups of channels, pages and past fetches. A channel is
 * a configured one, or the rest of a host, which is usually all of it.
 */

import type { HostHash } from "#core/ids";
import type { ToldOf } from "../../web/api-operation.ts";
import type { GroupRecord } from "./priority-groups.ts";
import type { recrawlGroup } from "./recrawl-api.ts";
import type { PlanInForce } from "./recrawl-plan.ts";

export type PlannedGroup = ToldOf<typeof recrawlGroup>;

export interface RecrawlPlan extends PlanInForce, CapacityState {
  readonly madeAt: Date;
  /** When the current unbroken period of this strategy began. */
  readonly since: Date;
  readonly reason: string;
  readonly groups: readonly PlannedGroup[];
  readonly pages: number;
  readonly allowedPerDay: number;
  /** Repeat fetches planned per day; 0 if the strategy plans none. */
  readonly totalPerDay: number;
  /** Repeat fetches measured per day before this plan; null if there are no measurements. */
  readonly achievedPerDay: number | null;
  /** Expected share of pages of which the index has the current version, weighted by importance; null if not computed. */
  readonly freshness: number | null;
  /** The latest lease when the plan was made. Later leases follow this plan. */
  readonly lastLeaseId: string;
}

export interface MeasuredWindow {
  readonly from: Date;
  readonly last: Date;
  readonly now: Date;
  readonly lateSeconds: number;
}

/** Pages in columns, for an optimal plan. If there are too many pages, they are of a sample of hosts. */
export interface SampledPages {
  readonly changesPerDay: Float64Array;
  readonly backLinks: Float64Array;
  readonly pageRank: Float64Array;
  readonly hostOf: Uint32Array;
  readonly hosts: readonly { readonly hostHash: HostHash; readonly crawlDelayMs: number }[];
  readonly share: number;
}

export interface RecrawlGroups {
  readonly records: readonly GroupRecord[];
  /** How many channels of each group have had more than five updates of each page. */
  readonly withEnoughUpdates: readonly number[];
}

/**
 * How many pages the fleet can fetch again per day, learnt from past work because stated limits say too little; and
 * how closely fetches followed the plan, which corrects the next plan.
 */
export interface MeasuredFetches {
  readonly windowDays: number;
  readonly sinceLastDays: number;
  readonly again: number;
  readonly first: number;
  /** Share of hosts whose work is overdue by more than half the mean interval plus the time between two plans. */
  readonly lateShare: number;
}

interface CapacityState {
  readonly capacityPerDay: number;
  /** Factor for the planned total, so that as much is fetched as was meant. */
  readonly correction: number;
}

export interface CapacityInput {
  readonly before: (CapacityState & { readonly totalPerDay: number }) | null;
  readonly allowedPerDay: number;
  readonly measured: MeasuredFetches;
  /** δ: how fast an overestimated capacity is reduced and an underestimated one raised. */
  readonly encourageRate: number;
  /** False while some pages still follow times set before the plan, which hides the effect of its rates. */
  readonly isSettled: boolean;
}

/** If more than this share of the hosts is late, the fleet is behind. Less may be chance. */
const lateLimit = 0.1;

const leastShare = 0.05;

const mostCorrection = 4;

/** With fewer planned fetches in the window, deviations may be chance. */
const fewFetches = 50;

export function nextCapacity(input: CapacityInput): CapacityState {
  const { before, allowedPerDay, measured, encourageRate } = input;
  const newPerDay = measured.windowDays > 0 ? measured.first / measured.windowDays : 0;
  const room = Math.max(allowedPerDay * leastShare, allowedPerDay - newPerDay);
  if (before === null) return { capacityPerDay: room, correction: 1 };
  const againPerDay = measured.windowDays > 0 ? measured.again / measured.windowDays : 0;
  if (measured.lateShare > lateLimit) {
    // Reduces the capacity step by step while the plan is too much, but never below what the fleet achieves.
    const less = Math.min(before.capacityPerDay, before.totalPerDay) * encourageRate;
    return { capacityPerDay: Math.min(room, Math.max(againPerDay, less)), correction: before.correction };
  }
  return {
    capacityPerDay: Math.min(room, before.capacityPerDay / encourageRate),
    correction: input.isSettled ? corrected(before, againPerDay, measured) : before.correction,
  };
}

/** Corrects half of the deviation, because corrections take effect slowly. */
function corrected(
  before: CapacityState & { readonly totalPerDay: number },
  againPerDay: number,
  { windowDays, sinceLastDays }: MeasuredFetches,
): number {
  const planned = before.totalPerDay * windowDays;
  if (!(planned >= fewFetches) || againPerDay === 0) return before.correction;
  const missing = before.totalPerDay / againPerDay;
  const next = before.correction * missing ** (0.5 * Math.min(1, sinceLastDays / windowDays));
  return Math.min(mostCorrection, Math.max(1 / mostCorrection, next));
}

/**
 * What planning recrawls works with (plan-writes.ts): plans, channels in groups, pages, and what was fetched.
 * A channel is a configured one, or what lies in none of a host: most often, the whole host.
 */

import type { HostHash } from "#core/ids";
import type { ToldOf } from "../../web/api-operation.ts";
import type { GroupRecord } from "./priority-groups.ts";
import type { recrawlGroup } from "./recrawl-api.ts";
import type { PlanInForce } from "./recrawl-plan.ts";

/** A priority group in a plan. */
export type PlannedGroup = ToldOf<typeof recrawlGroup>;

/** A plan as it is kept. */
export interface RecrawlPlan extends PlanInForce, CapacityState {
  readonly madeAt: Date;
  /** When this strategy took effect without a break. */
  readonly since: Date;
  /** Why it was made, in words. */
  readonly reason: string;
  readonly groups: readonly PlannedGroup[];
  /** Pages whose changes are estimated. */
  readonly pages: number;
  readonly allowedPerDay: number;
  /** Fetches again that were planned; 0: the strategy plans none. */
  readonly totalPerDay: number;
  /** Fetches again a day as measured before this plan; null: nothing to measure yet. */
  readonly achievedPerDay: number | null;
  /** Expected share of pages whose stored copy is the current one, weighted by importance; null: not worked out. */
  readonly freshness: number | null;
  /** The latest lease when it was made: later ones are its tasks. */
  readonly lastLeaseId: string;
}

export interface MeasuredWindow {
  readonly from: Date;
  /** When the last plan was made. */
  readonly last: Date;
  readonly now: Date;
  readonly lateSeconds: number;
}

/** Pages with what an optimal plan needs, in columns; of a sample of the hosts where there are too many. */
export interface SampledPages {
  readonly changesPerDay: Float64Array;
  readonly backLinks: Float64Array;
  /** NaN: none. */
  readonly pageRank: Float64Array;
  /** Index into `hosts`. */
  readonly hostOf: Uint32Array;
  readonly hosts: readonly { readonly hostHash: HostHash; readonly crawlDelayMs: number }[];
  /** Of all pages, the sample's share. */
  readonly share: number;
}

export interface RecrawlGroups {
  /** Most urgent first. */
  readonly records: readonly GroupRecord[];
  /** Of each group's channels, those with more than five updates of each page. */
  readonly withEnoughUpdates: readonly number[];
}

/**
 * How many pages a fleet can fetch again in a day, learnt from what it did: crawlers state what they may fetch, and how
 * much of that they manage shows only in work that is late. And how far the rates that were planned came true, by which
 * the next plan is set right.
 */
export interface MeasuredFetches {
  /** Days that were looked at. */
  readonly windowDays: number;
  /** Since the last plan, of those. */
  readonly sinceLastDays: number;
  /** Fetches of pages that had been fetched before, and of new ones. */
  readonly again: number;
  readonly first: number;
  /** Of the hosts, those whose work has been due for longer than half the mean interval, and the time between two plans. */
  readonly lateShare: number;
}

interface CapacityState {
  /** Fetches a day of pages that were fetched before. */
  readonly capacityPerDay: number;
  /** What the planned total is multiplied with, so that as much is fetched as planned. */
  readonly correction: number;
}

export interface CapacityInput {
  /** Of the last plan; null: this is the first. */
  readonly before: (CapacityState & { readonly totalPerDay: number }) | null;
  /** Of the crawlers that are online, as their partners state it. */
  readonly allowedPerDay: number;
  readonly measured: MeasuredFetches;
  /** δ: how fast a capacity that was found too large is left, and one that was found too small is tried anew. */
  readonly encourageRate: number;
  /** False: pages still have their times from before the plan, so that its rates cannot be seen yet. */
  readonly isSettled: boolean;
}

/** A tenth of the hosts late is a fleet that is behind, and no accident of one of them. */
const lateLimit = 0.1;

/** New pages never take everything. */
const leastShare = 0.05;

const mostCorrection = 4;

/** Below so many fetches planned in the window, chance decides. */
const fewFetches = 50;

export function nextCapacity(input: CapacityInput): CapacityState {
  const { before, allowedPerDay, measured, encourageRate } = input;
  const newPerDay = measured.windowDays > 0 ? measured.first / measured.windowDays : 0;
  const room = Math.max(allowedPerDay * leastShare, allowedPerDay - newPerDay);
  if (before === null) return { capacityPerDay: room, correction: 1 };
  const againPerDay = measured.windowDays > 0 ? measured.again / measured.windowDays : 0;
  if (measured.lateShare > lateLimit) {
    // Step by step, and no lower than what is managed: less is planned only while that is too much.
    const less = Math.min(before.capacityPerDay, before.totalPerDay) * encourageRate;
    return { capacityPerDay: Math.min(room, Math.max(againPerDay, less)), correction: before.correction };
  }
  return {
    capacityPerDay: Math.min(room, before.capacityPerDay / encourageRate),
    correction: input.isSettled ? corrected(before, againPerDay, measured) : before.correction,
  };
}

/** Half of what is missing, spread over the window, since what is set right shows only in time. */
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

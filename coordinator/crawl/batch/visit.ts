/** What a visit found, and what was known of its page before. */
import type { Challenge } from "#protocol/bot-gate";
import type { ChangeFrequency, FetchOutcome } from "#protocol/result";

/** Sums from which a page's change rate is estimated (recrawl/change-rate). */
export interface VisitSums {
  /** Visits whose content could be compared with the previous one. */
  readonly comparedVisits: number;
  readonly contentChanges: number;
  /** Total time between consecutive visits, with and without a change. */
  readonly changedSeconds: number;
  readonly unchangedSeconds: number;
}

export const noVisits: VisitSums = {
  comparedVisits: 0,
  contentChanges: 0,
  changedSeconds: 0,
  unchangedSeconds: 0,
};

/** What the host's lists state about the page. */
export interface StatedChanges {
  readonly changeFrequency?: ChangeFrequency;
  readonly modifiedAt?: Date;
}

/** The URL before the visit. */
export interface KnownPage {
  readonly sums: VisitSums;
  readonly lastFetchedAt: Date | null;
  /** The planned time of this visit. */
  readonly plannedAt: Date;
  /** SHA-256 of the body in hex. Null if there is nothing to compare. */
  readonly digest: string | null;
  readonly backLinks: number;
  readonly pageRank: number | null;
  /** Statements from the host's sitemaps and feeds. */
  readonly stated?: StatedChanges;
  /** The host's mean changes per day, priority group and multiplier. Null if unknown. */
  readonly channelChangesPerDay: number | null;
  readonly channelGroup: number | null;
  readonly hostMultiplier: number | null;
}

export interface VisitFindings {
  /** Null if there was no comparison. */
  readonly hasChanged: boolean | null;
  /** Time since the previous visit. Null for the first visit or if the times are not believed. */
  readonly gapSeconds: number | null;
  readonly sums: VisitSums;
  /** The new estimate. Null if the visit gives no evidence either way. */
  readonly changesPerDay: number | null;
  /** Time to the next visit. Null means the fixed interval. */
  readonly intervalSeconds: number | null;
  /** While too little is known about the page, the fixed interval is its maximum wait. */
  readonly isLearning: boolean;
}

/** 402: the site wants payment for the page. That is no error, and retries do not help. */
export function asksPayment(outcome: FetchOutcome): boolean {
  return outcome.type === "http-error" && outcome.status === 402;
}

/** A bot gate's answer, or null. */
export function challengeOf(outcome: FetchOutcome): Challenge | null {
  return outcome.type === "failed" ? (outcome.challenge ?? null) : null;
}

/** Whether the outcome counts as a consecutive failure. Any other outcome resets the count. */
export function isFailure(outcome: FetchOutcome): boolean {
  return outcome.type === "failed" || outcome.type === "http-error";
}

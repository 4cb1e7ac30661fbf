/** What a visit found, and what was known of its page before. */
import type { Challenge } from "#protocol/bot-gate";
import type { ChangeFrequency, FetchOutcome } from "#protocol/result";

/** What the estimate of a page's changes is made from (recrawl/change-rate). */
export interface VisitSums {
  /** Visits whose content could be compared with the one before. */
  readonly comparedVisits: number;
  readonly contentChanges: number;
  /** Time between a visit and the one before it, in all: where a change was found, and where none was. */
  readonly changedSeconds: number;
  readonly unchangedSeconds: number;
}

export const noVisits: VisitSums = {
  comparedVisits: 0,
  contentChanges: 0,
  changedSeconds: 0,
  unchangedSeconds: 0,
};

/** What the lists of a page's host state of it. */
export interface StatedChanges {
  readonly changeFrequency?: ChangeFrequency;
  readonly modifiedAt?: Date;
}

/** Of a URL before the visit. */
export interface KnownPage {
  readonly sums: VisitSums;
  readonly lastFetchedAt: Date | null;
  /** When this visit was to be. */
  readonly plannedAt: Date;
  /** SHA-256 of the body, hex; null: nothing to compare with. */
  readonly digest: string | null;
  readonly backLinks: number;
  readonly pageRank: number | null;
  /** By the host's sitemaps and feeds; absent: nothing. */
  readonly stated?: StatedChanges;
  /** Of its host: mean changes a day, priority group, multiplier; null: not known. */
  readonly channelChangesPerDay: number | null;
  readonly channelGroup: number | null;
  readonly hostMultiplier: number | null;
}

export interface VisitFindings {
  /** Null: nothing to compare with. */
  readonly hasChanged: boolean | null;
  /** Since the visit before; null: the first one, or not to be believed. */
  readonly gapSeconds: number | null;
  /** What the visit adds. */
  readonly sums: VisitSums;
  /** The estimate after it; null: the visit says nothing of it. */
  readonly changesPerDay: number | null;
  /** To the next visit; null: as the fixed interval says. */
  readonly intervalSeconds: number | null;
  /** Too little is known of the page yet: it waits no longer than the fixed interval, whatever is estimated. */
  readonly isLearning: boolean;
}

/** 402: the site wants to be paid for the page. That is no error, and no more tries change it. */
export function asksPayment(outcome: FetchOutcome): boolean {
  return outcome.type === "http-error" && outcome.status === 402;
}

/** A bot gate's answer in place of the site's; null: it is none. */
export function challengeOf(outcome: FetchOutcome): Challenge | null {
  return outcome.type === "failed" ? (outcome.challenge ?? null) : null;
}

/** Whether this outcome counts as a failure in a row; anything else sets the count back to zero. */
export function isFailure(outcome: FetchOutcome): boolean {
  return outcome.type === "failed" || outcome.type === "http-error";
}

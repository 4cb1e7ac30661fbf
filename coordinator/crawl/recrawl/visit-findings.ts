/**
 * Decides what a visit shows about a page's changes and when to visit it next, from the visit's result, what was
 * known of the URL, and the plan.
 */

import type { FetchOutcome } from "#protocol/result";
import { asksPayment, challengeOf, type KnownPage, noVisits, type VisitFindings } from "../batch/visit.ts";
import {
  addSums,
  believableGap,
  expectedChangesPerDay,
  likelyChangesPerDay,
  visitSums,
} from "./change-rate.ts";
import { importanceOf, type PlanInForce, plannedIntervalSeconds } from "./recrawl-plan.ts";

export interface ThisVisit {
  readonly fetchedAt: Date;
  readonly outcome: FetchOutcome;
  /** Digest of the fetched body; null if there is none. */
  readonly digest: string | null;
  /** Time of the last change as stated by server or page. */
  readonly changedAt: Date | null;
}

/** Minimum compared visits for a page to have an estimate of its own. */
export const learningVisits = 3;

export function findingsOf(visit: ThisVisit, known: KnownPage, plan: PlanInForce): VisitFindings {
  const elapsedSeconds = secondsBetween(known.lastFetchedAt, visit.fetchedAt);
  const plannedSeconds = secondsBetween(known.lastFetchedAt, known.plannedAt) ?? 0;
  const gapSeconds = believableGap(elapsedSeconds ?? 0, plannedSeconds) ? elapsedSeconds : null;
  const hasChanged = changedOf(visit, known);
  const isSeen = visit.outcome.type === "fetched" || visit.outcome.type === "unchanged";
  if (!isSeen) return { ...nothingSeen, hasChanged, gapSeconds };
  const unchangedSeconds = secondsBetween(visit.changedAt, visit.fetchedAt);
  const compared =
    hasChanged === null || gapSeconds === null
      ? null
      : { elapsedSeconds: gapSeconds, hasChanged, lastChangeSecondsAgo: unchangedSeconds, plannedSeconds };
  const sums = (compared && visitSums(compared)) ?? noVisits;
  // A list's statement is only a hint. Findings rely on the page and its server.
  const stated = unchangedSeconds ?? secondsBetween(known.stated?.modifiedAt ?? null, visit.fetchedAt);
  const expected = expectedChangesPerDay({
    usualPerDay: plan.usualChangesPerDay,
    ...(known.stated?.changeFrequency === undefined ? {} : { changeFrequency: known.stated.changeFrequency }),
    ...(stated === null || hasChanged === true ? {} : { unchangedSeconds: stated }),
    ...(known.channelChangesPerDay === null ? {} : { othersPerDay: known.channelChangesPerDay }),
  });
  const all = addSums(known.sums, sums);
  const changesPerDay = likelyChangesPerDay(all, expected);
  const intervalSeconds = interval(known, changesPerDay, plan);
  const isLearning = all.comparedVisits < learningVisits;
  return { hasChanged, gapSeconds, sums, changesPerDay, intervalSeconds, isLearning };
}

const nothingSeen = { sums: noVisits, changesPerDay: null, intervalSeconds: null, isLearning: false };

function interval(known: KnownPage, changesPerDay: number, plan: PlanInForce): number | null {
  const importance = importanceOf(known, plan.rankedPages);
  const { channelGroup: group, hostMultiplier } = known;
  return plannedIntervalSeconds({ changesPerDay, importance, group, hostMultiplier }, plan);
}

/** A 304 or the same digest means that the page is the same; another digest means that it has changed. */
function changedOf({ outcome, digest }: ThisVisit, known: KnownPage): boolean | null {
  if (outcome.type === "unchanged") return false;
  if (outcome.type !== "fetched" || digest === null || known.digest === null) return null;
  return digest !== known.digest;
}

function secondsBetween(from: Date | null, to: Date): number | null {
  const ms = from === null ? Number.NaN : to.getTime() - from.getTime();
  return Number.isNaN(ms) ? null : ms / 1000;
}

// Decides when a URL is fetched again: a fixed interval after a success, otherwise a wait that fits the reason.
// Lasting refusals wait a day. Temporary trouble waits a minute, doubling up to a day. Retry-After (RFC 9110 section
// 10.2.3) is always the minimum.

export interface RecrawlSettings {
  /** Interval between successful fetches. */
  readonly intervalSeconds: number;
  /** First wait after temporary trouble. It doubles with each consecutive failure. */
  readonly firstRetrySeconds: number;
  /** Maximum wait after temporary trouble. */
  readonly longestRetrySeconds: number;
  /** Wait after a refusal: by robots.txt, a refused address, or a missing or inaccessible page. */
  readonly refusedRetrySeconds: number;
  /** Consecutive 404 or 410 answers after which a URL is considered gone. */
  readonly goneAfter: number;
  /** Interval at which a URL that is gone or asks for payment is tried again, in case it came back. */
  readonly goneRetrySeconds: number;
}

const daySeconds = 86_400;

export const defaultRecrawlSettings: RecrawlSettings = {
  intervalSeconds: 7 * daySeconds,
  firstRetrySeconds: 60,
  longestRetrySeconds: daySeconds,
  // RFC 9309 section 2.4: a robots.txt must not be used for longer than 24 hours.
  refusedRetrySeconds: daySeconds,
  goneAfter: 3,
  goneRetrySeconds: 30 * daySeconds,
};

interface FetchAttempt {
  readonly now: Date;
  readonly outcome: FetchOutcome;
  /** Consecutive failures before this one. Default: 0. */
  readonly failures?: number;
}

/** Returns the earliest time of the next fetch. */
export function nextFetchAt(attempt: FetchAttempt, settings: RecrawlSettings): Date {
  return new Date(attempt.now.getTime() + Math.ceil(waitSeconds(attempt, settings) * 1000));
}

/** Whether the URL leaves the frontier, because it was missing often enough (this visit included) or asks for payment. */
export function isGone({ outcome, failures = 0 }: FetchAttempt, { goneAfter }: RecrawlSettings): boolean {
  return asksPayment(outcome) || (isMissing(outcome) && failures + 1 >= goneAfter);
}

/** How many days a URL rests after consecutive answers by a bot gate: one, doubling to two weeks. */
export const firstGateRestDays = 1;
export const longestGateRestDays = 14;

function waitSeconds(attempt: FetchAttempt, settings: RecrawlSettings): number {
  const { outcome } = attempt;
  switch (outcome.type) {
    case "fetched":
    case "unchanged":
    case "redirected":
    case "unsupported":
      return settings.intervalSeconds;
    case "refused-by-robots":
    case "refused-address":
      return settings.refusedRetrySeconds;
    case "failed":
      // If the whole host is gated, it rests as a whole. A gate in front of this URL alone does not affect the others.
      return challengeOf(outcome) === null
        ? retrySeconds(attempt, settings)
        : daySeconds *
            Math.min(longestGateRestDays, firstGateRestDays * 2 ** Math.min(attempt.failures ?? 0, 30));
    case "http-error": {
      const asked = outcome.retryAfterSeconds ?? 0;
      if (isGone(attempt, settings)) return Math.max(asked, settings.goneRetrySeconds);
      const ours = mayPass(outcome.status) ? retrySeconds(attempt, settings) : settings.refusedRetrySeconds;
      return Math.max(asked, ours);
    }
  }
}

function retrySeconds({ failures = 0 }: FetchAttempt, settings: RecrawlSettings): number {
  const doubled = settings.firstRetrySeconds * 2 ** Math.min(failures, 30);
  return Math.min(settings.longestRetrySeconds, doubled);
}

function isMissing(outcome: FetchOutcome): boolean {
  return outcome.type === "http-error" && (outcome.status === 404 || outcome.status === 410);
}

/** Whether the status is of a temporary condition: time-out, too early, too many requests, or a server error. */
function mayPass(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

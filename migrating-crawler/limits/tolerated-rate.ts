/**
 * The rate that a site, or an address, tolerates, found as TCP finds a path's (Chiu and Jain 1989; RFC 5681 section 3.1):
 * a little more per minute while answers are good and quick, at most half of it as soon as one is refused, missing, or
 * several times slower than usual. As in CUBIC (RFC 9438 section 4.6 and 4.7) the rate of the last refusal is
 * remembered and come near to, not passed; unlike a path's, a site's limit holds for days, so the memory fades over days. Departs
 * from both where a limiter says more than a path: what got through between two refusals, pauses included, is what its quota
 * allows, so the rate falls to that, and not blindly to half. Pure: times are arguments. The bounds are never passed.
 */

import { z } from "zod";
import type { ToleratedReport } from "#protocol/result";

const amount = (most = Number.MAX_VALUE) => z.number().min(0).max(most).default(0);
/** No rate is above one request a millisecond, however low the floor. */
export const highestPerHour = 3_600_000;

/** As it lies on the disk, too. */
export const toleratedRate = z.object({
  /** Requests an hour; 0: nothing is known to limit it, so it is the rate of the start. */
  perHour: amount(highestPerHour),
  /** Why the rate is below what the settings allow. */
  limitedBy: z.enum(["refused", "silent", "slow"]).nullable().default(null),
  /** The rate at which it was turned away last, and when; 0: never, or forgotten. */
  refusedPerHour: amount(highestPerHour),
  refusedAtMs: amount(),
  /** Since then: answers, and the time they took with the pauses between them. */
  answers: amount(1e6),
  activeMs: amount(),
});

export type ToleratedRate = Readonly<z.infer<typeof toleratedRate>>;

export interface RateBounds {
  /** With which one begins of whom nothing is known. */
  readonly startPerHour: number;
  /** Never more; not below the start, which is where it ends unless the settings allow more. */
  readonly mostPerHour: number;
}

/** What came of a request, and for how long nothing had been asked before its end. */
export interface RateEvent {
  readonly gapMs: number;
  readonly nowMs: number;
}

export const unlimitedRate: ToleratedRate = toleratedRate.parse({});

const hourMs = 3_600_000;
const dayMs = 86_400_000;

/** One request in five minutes: who tolerates less is left to pauses, which double. */
const leastPerHour = 12;
/** Being slow is no refusal: one a minute is slow enough. */
const leastForSlownessPerHour = 60;

/** From nothing to the rate of the start in an hour of asking. */
const minutesToStart = 60;
/** A single answer speaks for a tenth more, however long the gap before it. */
const mostGrowth = 1.1;
const growthAfterSlowness = 1.25;
/** Nothing is learned from hours in which nobody asked. */
const longestGapMs = 60_000;

/** Under the rate of the last refusal by so much, at first; the memory of it doubles every two days, until it is twice that. */
const cautiousPart = 0.9;
const doublesInMs = 2 * dayMs;
const forgottenAtTimes = 2;

const decrease = 0.5;
/** A quota that is known by as many answers since the last refusal: never above, nor far below what was asked. */
const answersForQuota = 10;
const quotaPart = 0.95;
const [leastQuotaPart, mostQuotaPart] = [0.25, 0.9];

/** Requests an hour that may be made now. */
export function rateNow(rate: ToleratedRate, bounds: RateBounds, nowMs: number): number {
  const known = rate.perHour === 0 ? bounds.startPerHour : rate.perHour;
  return Math.min(bounds.mostPerHour, known, ceiling(rate, nowMs));
}

/** Of two that were found for the same host. */
export function lowerRate(one: ToleratedRate, other: ToleratedRate): ToleratedRate {
  if (one.perHour === 0 || other.perHour === 0) return one.perHour === 0 ? other : one;
  return other.perHour < one.perHour ? other : one;
}

/** From the end of one request to the end of the next. */
export const intervalMs = (perHour: number): number => hourMs / perHour;

/** After an answer that was no refusal. `isQuick`: in the time that it usually takes; others say nothing for a higher rate. */
export function afterGoodAnswer(
  rate: ToleratedRate,
  { gapMs, nowMs, isQuick }: RateEvent & { readonly isQuick: boolean },
  bounds: RateBounds,
): ToleratedRate {
  const { startPerHour, mostPerHour } = bounds;
  const gap = Math.min(gapMs, longestGapMs);
  const known = { ...rate, answers: Math.min(1e6, rate.answers + 1), activeMs: rate.activeMs + gap };
  const isForgotten = ceiling(rate, nowMs) >= forgottenAtTimes * rate.refusedPerHour;
  const met = isForgotten ? { ...known, refusedPerHour: 0, refusedAtMs: 0 } : known;
  const isAtStart = rate.perHour === 0 && mostPerHour <= startPerHour;
  if (isAtStart || !isQuick) return met;
  const perHour = rateNow(rate, bounds, nowMs);
  const step = ((startPerHour / minutesToStart) * gap) / 60_000;
  // Back to where it was before it was slow there is nothing to be found out.
  const raised =
    rate.limitedBy === "slow" && perHour < startPerHour
      ? perHour * growthAfterSlowness
      : Math.min(perHour * mostGrowth, perHour + step);
  const grown = Math.min(raised, ceiling(rate, nowMs), mostPerHour);
  const isFree = grown >= mostPerHour;
  // At the top of what the settings allow nothing limits it; where that is the start, nothing need be known.
  if (isFree && mostPerHour <= startPerHour) return { ...met, perHour: 0, limitedBy: null };
  return {
    ...met,
    perHour: Math.max(perHour, grown),
    limitedBy: grown >= startPerHour ? null : rate.limitedBy,
  };
}

/** After a refusal, or answers that stayed away; once for those that follow each other. */
export function afterRefusal(
  rate: ToleratedRate,
  { gapMs, nowMs }: RateEvent,
  { bounds, limitedBy }: { readonly bounds: RateBounds; readonly limitedBy: "refused" | "silent" },
): ToleratedRate {
  const asked = askedPerHour(rate, { gapMs, nowMs }, bounds);
  return {
    perHour: Math.max(leastPerHour, Math.min(asked * mostQuotaPart, loweredPerHour(rate, asked))),
    limitedBy,
    refusedPerHour: Math.max(leastPerHour, asked),
    refusedAtMs: nowMs,
    answers: 0,
    activeMs: 0,
  };
}

/** After answers that took several times longer than usual. */
export function afterSlowAnswers(rate: ToleratedRate, event: RateEvent, bounds: RateBounds): ToleratedRate {
  const asked = askedPerHour(rate, event, bounds);
  const least = Math.min(asked, leastForSlownessPerHour);
  return { ...rate, perHour: Math.max(least, asked * decrease), limitedBy: rate.limitedBy ?? "slow" };
}

/** As it goes with a host to another crawler; null: nothing limits it. */
export function toldRate(rate: ToleratedRate, nowMs: number): ToleratedReport | null {
  const { perHour, limitedBy, refusedPerHour, refusedAtMs } = rate;
  if (perHour === 0 || limitedBy === null) return null;
  const refusedMsAgo = refusedPerHour === 0 ? 0 : Math.max(0, nowMs - refusedAtMs);
  return { perHour, limitedBy, refusedPerHour, refusedMsAgo, saidMsAgo: 0 };
}

/** And comes from one. Whoever sent it may send anything within the bounds of the protocol. */
export function rateFrom(told: ToleratedReport, nowMs: number): ToleratedRate {
  const { limitedBy, refusedPerHour, refusedMsAgo } = told;
  const perHour = Math.max(leastPerHour, told.perHour);
  const known = refusedPerHour === 0 ? 0 : Math.max(leastPerHour, refusedPerHour);
  return { ...unlimitedRate, perHour, limitedBy, refusedPerHour: known, refusedAtMs: nowMs - refusedMsAgo };
}

/** The pause after a refusal is a part of the time in which what got through got through. */
export function withPause(rate: ToleratedRate, pauseMs: number): ToleratedRate {
  return rate.refusedPerHour === 0 ? rate : { ...rate, activeMs: rate.activeMs + pauseMs };
}

const throughPerHour = ({ answers, activeMs }: ToleratedRate) => (answers * hourMs) / activeMs;

/** Half of it; or what got through since the last refusal, where that is known. */
function loweredPerHour(rate: ToleratedRate, asked: number): number {
  const isKnown = rate.refusedPerHour > 0 && rate.answers >= answersForQuota && rate.activeMs > 0;
  return isKnown ? Math.max(asked * leastQuotaPart, throughPerHour(rate) * quotaPart) : asked * decrease;
}

/** What it was asked in fact, which other limits may have kept lower: the host's answers take their time, too. */
function askedPerHour(rate: ToleratedRate, { gapMs, nowMs }: RateEvent, bounds: RateBounds): number {
  const allowed = rateNow(rate, bounds, nowMs);
  const isInFlow = gapMs > 0 && gapMs <= Math.max(longestGapMs, 2 * intervalMs(allowed));
  return isInFlow ? Math.min(allowed, hourMs / gapMs) : allowed;
}

/** What the memory of the last refusal allows; it fades. */
function ceiling({ refusedPerHour, refusedAtMs }: ToleratedRate, nowMs: number): number {
  if (refusedPerHour === 0) return Number.POSITIVE_INFINITY;
  const agoMs = Math.max(0, nowMs - refusedAtMs);
  return refusedPerHour * cautiousPart * 2 ** Math.min(64, agoMs / doublesInMs);
}

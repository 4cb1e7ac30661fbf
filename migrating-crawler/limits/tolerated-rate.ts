/**
 * Estimates the rate that a site or address tolerates, as TCP does for a path (Chiu and Jain 1989, RFC 5681 section 3.1): it
 * rises slowly while answers are good and quick, and falls to at most half when one is refused, missing or several times
 * slower than usual. As in CUBIC (RFC 9438 sections 4.6 and 4.7), the rate approaches that of the last refusal without passing
 * it. Because a site's limit holds for days, the memory of the refusal fades over days. Unlike TCP, the estimate uses what a
 * rate limiter reveals: the number of answers between two refusals, pauses included, is the quota, so the rate falls to the
 * quota instead of to half. The result always stays within the configured bounds. Pure functions: times are arguments.
 */

import { z } from "zod";
import type { ToleratedReport } from "#protocol/result";

const amount = (most = Number.MAX_VALUE) => z.number().min(0).max(most).default(0);
/** No rate exceeds one request a millisecond, however low the floor. */
export const highestPerHour = 3_600_000;

/** This is also the format on disk. */
export const toleratedRate = z.object({
  /** Requests an hour. 0 means that no limit is known and the start rate applies. */
  perHour: amount(highestPerHour),
  limitedBy: z.enum(["refused", "silent", "slow"]).nullable().default(null),
  /** The rate and time of the last refusal. Both are 0 if there was none or it is forgotten. */
  refusedPerHour: amount(highestPerHour),
  refusedAtMs: amount(),
  /** How many answers came since that refusal, and their total time with the pauses between them. */
  answers: amount(1e6),
  activeMs: amount(),
});

export type ToleratedRate = Readonly<z.infer<typeof toleratedRate>>;

export interface RateBounds {
  readonly startPerHour: number;
  /** Maximum rate, equal to the start rate unless the settings allow more. */
  readonly mostPerHour: number;
}

export interface RateEvent {
  readonly gapMs: number;
  readonly nowMs: number;
}

export const unlimitedRate: ToleratedRate = toleratedRate.parse({});

const hourMs = 3_600_000;
const dayMs = 86_400_000;

/** One request in five minutes. For hosts that tolerate even less, there are pauses, which double. */
const leastPerHour = 12;
/** A slow host has not refused, so slowing down to one request a minute is enough. */
const leastForSlownessPerHour = 60;

/** At this growth, the rate rises from nothing to the start rate in an hour of requests. */
const minutesToStart = 60;
/** A single answer raises the rate by at most a tenth, however long the gap before it. */
const mostGrowth = 1.1;
const growthAfterSlowness = 1.25;
/** A longer gap counts as this long, because hours without requests teach nothing. */
const longestGapMs = 60_000;

/** The ceiling starts at this fraction of the last refused rate. It doubles every two days until it is twice that rate. */
const cautiousPart = 0.9;
const doublesInMs = 2 * dayMs;
const forgottenAtTimes = 2;

const decrease = 0.5;
/**
 * After this many answers since the last refusal, the quota is known. The rate then stays below it, and not far below the rate
 * that was asked.
 */
const answersForQuota = 10;
const quotaPart = 0.95;
const [leastQuotaPart, mostQuotaPart] = [0.25, 0.9];

export function rateNow(rate: ToleratedRate, bounds: RateBounds, nowMs: number): number {
  const known = rate.perHour === 0 ? bounds.startPerHour : rate.perHour;
  return Math.min(bounds.mostPerHour, known, ceiling(rate, nowMs));
}

export function lowerRate(one: ToleratedRate, other: ToleratedRate): ToleratedRate {
  if (one.perHour === 0 || other.perHour === 0) return one.perHour === 0 ? other : one;
  return other.perHour < one.perHour ? other : one;
}

/** The interval from the end of one request to the end of the next. */
export const intervalMs = (perHour: number): number => hourMs / perHour;

/** `isQuick` means within the usual time. Other answers do not justify a higher rate. */
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
  // Returning to the rate before a slow phase requires no probing.
  const raised =
    rate.limitedBy === "slow" && perHour < startPerHour
      ? perHour * growthAfterSlowness
      : Math.min(perHour * mostGrowth, perHour + step);
  const grown = Math.min(raised, ceiling(rate, nowMs), mostPerHour);
  const isFree = grown >= mostPerHour;
  // At the maximum of the settings, nothing limits the rate. If that is the start rate, no state is needed.
  if (isFree && mostPerHour <= startPerHour) return { ...met, perHour: 0, limitedBy: null };
  return {
    ...met,
    perHour: Math.max(perHour, grown),
    limitedBy: grown >= startPerHour ? null : rate.limitedBy,
  };
}

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

export function afterSlowAnswers(rate: ToleratedRate, event: RateEvent, bounds: RateBounds): ToleratedRate {
  const asked = askedPerHour(rate, event, bounds);
  const least = Math.min(asked, leastForSlownessPerHour);
  return { ...rate, perHour: Math.max(least, asked * decrease), limitedBy: rate.limitedBy ?? "slow" };
}

/** The form in which the rate travels with the host to another crawler. Null if nothing limits the rate. */
export function toldRate(rate: ToleratedRate, nowMs: number): ToleratedReport | null {
  const { perHour, limitedBy, refusedPerHour, refusedAtMs } = rate;
  if (perHour === 0 || limitedBy === null) return null;
  const refusedMsAgo = refusedPerHour === 0 ? 0 : Math.max(0, nowMs - refusedAtMs);
  return { perHour, limitedBy, refusedPerHour, refusedMsAgo, saidMsAgo: 0 };
}

/** Reads another crawler's report, whose values may be anything within the protocol's bounds. */
export function rateFrom(told: ToleratedReport, nowMs: number): ToleratedRate {
  const { limitedBy, refusedPerHour, refusedMsAgo } = told;
  const perHour = Math.max(leastPerHour, told.perHour);
  const known = refusedPerHour === 0 ? 0 : Math.max(leastPerHour, refusedPerHour);
  return { ...unlimitedRate, perHour, limitedBy, refusedPerHour: known, refusedAtMs: nowMs - refusedMsAgo };
}

/** The pause after a refusal counts towards the time over which the quota is measured. */
export function withPause(rate: ToleratedRate, pauseMs: number): ToleratedRate {
  return rate.refusedPerHour === 0 ? rate : { ...rate, activeMs: rate.activeMs + pauseMs };
}

const throughPerHour = ({ answers, activeMs }: ToleratedRate) => (answers * hourMs) / activeMs;

/** Returns half of the rate, or the quota since the last refusal if it is known. */
function loweredPerHour(rate: ToleratedRate, asked: number): number {
  const isKnown = rate.refusedPerHour > 0 && rate.answers >= answersForQuota && rate.activeMs > 0;
  return isKnown ? Math.max(asked * leastQuotaPart, throughPerHour(rate) * quotaPart) : asked * decrease;
}

/** The rate actually asked, which other limits and the answer times may have kept lower. */
function askedPerHour(rate: ToleratedRate, { gapMs, nowMs }: RateEvent, bounds: RateBounds): number {
  const allowed = rateNow(rate, bounds, nowMs);
  const isInFlow = gapMs > 0 && gapMs <= Math.max(longestGapMs, 2 * intervalMs(allowed));
  return isInFlow ? Math.min(allowed, hourMs / gapMs) : allowed;
}

function ceiling({ refusedPerHour, refusedAtMs }: ToleratedRate, nowMs: number): number {
  if (refusedPerHour === 0) return Number.POSITIVE_INFINITY;
  const agoMs = Math.max(0, nowMs - refusedAtMs);
  return refusedPerHour * cautiousPart * 2 ** Math.min(64, agoMs / doublesInMs);
}

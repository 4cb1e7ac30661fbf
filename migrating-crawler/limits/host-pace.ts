/**
 * Decides how fast one host may be asked. The delay after an answer is the maximum of the configured floor, the host's
 * Crawl-delay, a multiple of its last answer time, and the interval that the host tolerates (tolerated-rate: lowered by 429
 * and 503, by silence and by answers several times slower than usual, and raised in steps by good and quick ones). Retry-After
 * is a minimum. A 429 or 503 without it causes a pause of 60 s, with jitter, which doubles up to a day while it does not help
 * (RFC 9110 section 10.2.3, RFC 6585 section 4). A host that is silent twice in a row rests for up to an hour. Pure functions:
 * time and randomness are arguments.
 */

import { z } from "zod";
import { type HostPaceReport, perHourWords, rateLimitWords } from "#protocol/result";
import type { FailureCode } from "../core/failure.ts";
import {
  afterGoodAnswer,
  afterRefusal,
  afterSlowAnswers,
  highestPerHour,
  intervalMs,
  type RateBounds,
  type RateEvent,
  rateFrom,
  rateNow,
  type ToleratedRate,
  toldRate,
  toleratedRate,
  unlimitedRate,
  withPause,
} from "./tolerated-rate.ts";

export interface PaceSettings {
  readonly floorMs: number;
  /** The shortest rest that a host can reach by answering well and quickly. Default: the floor. */
  readonly fastestMs?: number;
  readonly responseTimeFactor: number;
}

const amount = (most = Number.MAX_VALUE) => z.number().min(0).max(most).default(0);

/** This is also the format on disk. */
export const hostPace = z.object({
  /** No request may start earlier (same clock as `nowMs`). */
  notBeforeMs: amount(),
  crawlDelayMs: amount(3_600_000),
  /** The pause after the last refusal, and its time. Both are 0 if there was no recent refusal. */
  backOffMs: amount(86_400_000),
  backedOffAtMs: amount(),
  refusals: amount(100),
  /** The moving average of the answer time, and the number of answers in it. */
  usualMs: amount(),
  answers: amount(),
  lastMs: amount(),
  /** Slow answers are ignored for this many answers, so that a lowered rate can take effect. */
  slowIn: amount(100),
  endedAtMs: amount(),
  rate: toleratedRate.default(unlimitedRate),
  failures: amount(100),
});

export type HostPace = Readonly<z.infer<typeof hostPace>>;

interface PaceCircumstances {
  readonly settings: PaceSettings;
  readonly nowMs: number;
  /** A number in [0, 1) that lengthens a back-off by up to a quarter. */
  readonly random: number;
}

export const newPace: HostPace = hostPace.parse({});

const firstBackOffMs = 60_000;
const mostBackOffMs = 86_400_000;
/** Counts from the end of a pause. A back-off within this time starts at half of the last one. */
const forgivenAfterMs = 86_400_000;
const mostFailureBackOffMs = 3_600_000;
/** A report that is newer than the last local answer by at most this much is about that answer. */
const clocksApartMs = 2000;
/** A very long Crawl-delay must not block a host indefinitely. */
const mostCrawlDelayMs = 3_600_000;
const mostWorkMs = 60_000;

/** Two consecutive answers this many times slower than usual are too slow. One below twice the usual time is quick. */
const slowTimes = 3;
const quickTimes = 2;
const slowAgainAfter = 3;
/** The average follows quicker answers faster than slower ones, so that a gradual slowdown remains noticeable. */
const [quickerPart, slowerPart] = [1 / 8, 1 / 32];
/** After this many answers, the average counts as the host's usual time. */
const answersUntilUsual = 3;
/** Smaller differences are ordinary jitter of network and server. */
const restlessMs = 50;

export function withCrawlDelay(pace: HostPace, seconds: number | null): HostPace {
  return { ...pace, crawlDelayMs: Math.min(mostCrawlDelayMs, (seconds ?? 0) * 1000) };
}

export function notBefore(pace: HostPace, atMs: number): HostPace {
  return { ...pace, notBeforeMs: Math.max(pace.notBeforeMs, atMs) };
}

export function afterAnswer(pace: HostPace, answer: HostAnswer, now: PaceCircumstances): HostPace {
  const met = { ...pace, endedAtMs: now.nowMs };
  if (answer.status === null) return afterSilence(met, answer, eventOf(pace, now), now);
  const answered = { ...met, failures: 0 };
  if (isRefusal(answer)) return afterRefused(pace, answer, eventOf(pace, now), now);
  const timed = withTime(answered, answer, eventOf(pace, now), now);
  const { nowMs } = now;
  const waitMs = Math.max(delayMs(timed, answer.tookMs, now), retryAfterMs(answer));
  const backOffMs = isForgiven(pace, nowMs) ? 0 : pace.backOffMs;
  // Sites that turn crawlers away usually still serve robots.txt.
  const refusals = answer.isSmall === true ? pace.refusals : 0;
  return { ...timed, refusals, backOffMs, notBeforeMs: nowMs + waitMs };
}

/** "slow" means too slow twice in a row. "neither" does not justify a higher rate. */
export type AnswerSpeed = "quick" | "neither" | "slow";

export function answerSpeed(pace: HostPace, { tookMs, status, isSmall }: HostAnswer): AnswerSpeed {
  if (status === null || isSmall === true) return "neither";
  const beyondUsual = (ms: number, times: number) =>
    pace.answers >= answersUntilUsual && ms > times * pace.usualMs && ms - pace.usualMs > restlessMs;
  if (pace.slowIn === 0 && beyondUsual(Math.min(tookMs, pace.lastMs), slowTimes)) return "slow";
  return beyondUsual(tookMs, quickTimes) ? "neither" : "quick";
}

/**
 * Lowers the rate once for consecutive refusals, and doubles the pause. The first refusal may state the pause. If that did not
 * help, the crawler's own pause is the minimum.
 */
function afterRefused(
  pace: HostPace,
  answer: HostAnswer,
  event: RateEvent,
  now: PaceCircumstances,
): HostPace {
  const isFirst = pace.refusals === 0;
  const wasSilent = pace.failures > 1;
  const before = isForgiven(pace, now.nowMs) ? 0 : pace.backOffMs;
  const backOffMs = Math.min(mostBackOffMs, Math.max(firstBackOffMs, isFirst ? before / 2 : 2 * before));
  const ownMs = Math.min(mostBackOffMs, jittered(backOffMs, now));
  const statedMs = answer.retryAfterSeconds === null ? null : retryAfterMs(answer);
  const pauseMs = statedMs === null ? ownMs : isFirst ? statedMs : Math.max(statedMs, ownMs);
  const bounds = boundsOf(pace, now.settings);
  const lowered =
    isFirst && !wasSilent ? afterRefusal(pace.rate, event, { bounds, limitedBy: "refused" }) : pace.rate;
  const refused = {
    ...pace,
    rate: withPause(lowered, pauseMs),
    refusals: Math.min(100, pace.refusals + 1),
    failures: 0,
    endedAtMs: now.nowMs,
  };
  const notBeforeMs = now.nowMs + Math.max(delayMs(refused, answer.tookMs, now), pauseMs);
  return { ...refused, backOffMs, backedOffAtMs: now.nowMs, notBeforeMs };
}

export function paceReport(pace: HostPace, nowMs: number): HostPaceReport | null {
  const { crawlDelayMs, backOffMs } = pace;
  const usualMs = pace.answers >= answersUntilUsual ? Math.min(mostBackOffMs, pace.usualMs) : 0;
  const tolerated = toldRate(pace.rate, nowMs);
  if (crawlDelayMs === 0 && backOffMs === 0 && usualMs === 0 && tolerated === null) return null;
  const backedOffMsAgo = backOffMs === 0 ? 0 : Math.max(0, nowMs - pace.backedOffAtMs);
  return { crawlDelayMs, backOffMs, backedOffMsAgo, usualMs, ...(tolerated === null ? {} : { tolerated }) };
}

/** Merges another crawler's report. The stricter value counts. */
export function withReport(
  pace: HostPace,
  report: HostPaceReport,
  { settings, nowMs }: Omit<PaceCircumstances, "random">,
): HostPace {
  const theirs = { backOffMs: report.backOffMs, backedOffAtMs: nowMs - report.backedOffMsAgo };
  const stricter = report.backOffMs > pace.backOffMs && !isForgiven(theirs, nowMs);
  const knowsUsual = pace.answers >= answersUntilUsual || report.usualMs === 0;
  const crawlDelayMs = Math.min(mostCrawlDelayMs, Math.max(pace.crawlDelayMs, report.crawlDelayMs));
  return {
    ...pace,
    crawlDelayMs,
    // Whether that pause helped is unknown, so the next one is longer.
    ...(stricter ? { ...theirs, refusals: Math.max(1, pace.refusals) } : {}),
    ...(knowsUsual ? {} : { usualMs: report.usualMs, answers: answersUntilUsual, lastMs: report.usualMs }),
    rate: stricterRate({ ...pace, crawlDelayMs }, report.tolerated, { settings, nowMs }),
  };
}

/** Adopts a reported rate that is lower and newer than this crawler's last request. An older report may be its own. */
function stricterRate(
  pace: HostPace,
  told: HostPaceReport["tolerated"],
  { settings, nowMs }: Omit<PaceCircumstances, "random">,
): ToleratedRate {
  if (told === undefined || nowMs - told.saidMsAgo <= pace.endedAtMs + clocksApartMs) return pace.rate;
  const theirs = rateFrom(told, nowMs);
  const bounds = boundsOf(pace, settings);
  return rateNow(theirs, bounds, nowMs) < rateNow(pace.rate, bounds, nowMs) ? theirs : pace.rate;
}

export function slownessWords(
  pace: HostPace,
  { settings, nowMs }: Omit<PaceCircumstances, "random">,
): string | null {
  const { rate, crawlDelayMs, backedOffAtMs, refusals } = pace;
  const waitMs = pace.notBeforeMs - nowMs;
  const bounds = boundsOf(pace, settings);
  const perHour = rateNow(rate, bounds, nowMs);
  const isPause = waitMs > intervalMs(perHour);
  if (refusals > 0 && isPause) {
    const times = refusals > 1 ? `, ${refusals} times in a row` : "";
    return `left alone for another ${secondsWords(waitMs)}: it answered 429 or 503 ${secondsWords(nowMs - backedOffAtMs)} ago${times}`;
  }
  if (pace.failures > 1 && isPause)
    return `left alone for another ${secondsWords(waitMs)}: it did not answer ${pace.failures} times in a row`;
  if (rate.limitedBy !== null && perHour < Math.min(bounds.startPerHour, bounds.mostPerHour))
    return `${perHourWords(perHour)} at most: ${rateLimitWords({ ...rate, limitedBy: rate.limitedBy })}`;
  if (crawlDelayMs > settings.floorMs) return `one request in ${secondsWords(crawlDelayMs)}: its Crawl-delay`;
  const workMs = Math.min(mostWorkMs, settings.responseTimeFactor * pace.lastMs);
  if (workMs > Math.max(settings.floorMs, crawlDelayMs) && waitMs > 0)
    return `rests for ${secondsWords(workMs)}: its last answer took ${secondsWords(pace.lastMs)}`;
  return null;
}

const secondsWords = (ms: number) =>
  `${ms < 10_000 ? Math.max(0, Math.round(ms / 100) / 10) : Math.round(ms / 1000)} s`;

export function boundsOf(
  { crawlDelayMs }: Pick<HostPace, "crawlDelayMs">,
  settings: PaceSettings,
): RateBounds {
  const { floorMs, fastestMs = floorMs } = settings;
  const perHour = (ms: number) => highestPerHour / Math.max(1, ms, crawlDelayMs);
  return { startPerHour: perHour(floorMs), mostPerHour: perHour(Math.min(floorMs, fastestMs)) };
}

function delayMs(pace: HostPace, tookMs: number, { settings, nowMs }: PaceCircumstances): number {
  const { floorMs, fastestMs = floorMs, responseTimeFactor } = settings;
  const forItsWorkMs = Math.min(mostWorkMs, responseTimeFactor * tookMs);
  const leastMs = pace.rate.perHour === 0 ? floorMs : Math.min(floorMs, fastestMs);
  const rate = rateNow(pace.rate, boundsOf(pace, settings), nowMs);
  const toleratedMs = pace.rate.perHour === 0 ? 0 : intervalMs(rate) - tookMs;
  return Math.max(leastMs, pace.crawlDelayMs, forItsWorkMs, toleratedMs);
}

function withTime(pace: HostPace, answer: HostAnswer, event: RateEvent, now: PaceCircumstances): HostPace {
  const bounds = boundsOf(pace, now.settings);
  const speed = answerSpeed(pace, answer);
  const rate =
    speed === "slow"
      ? afterSlowAnswers(pace.rate, event, bounds)
      : afterGoodAnswer(pace.rate, { ...event, isQuick: speed === "quick" }, bounds);
  if (answer.isSmall === true) return { ...pace, rate };
  const { tookMs } = answer;
  const part = tookMs < pace.usualMs ? quickerPart : slowerPart;
  const usualMs = pace.answers === 0 ? tookMs : pace.usualMs + (tookMs - pace.usualMs) * part;
  const slowIn = speed === "slow" ? slowAgainAfter : Math.max(0, pace.slowIn - 1);
  return { ...pace, rate, slowIn, usualMs, lastMs: tookMs, answers: Math.min(1e6, pace.answers + 1) };
}

function afterSilence(
  pace: HostPace,
  answer: HostAnswer,
  event: RateEvent,
  now: PaceCircumstances,
): HostPace {
  const failures = Math.min(100, pace.failures + 1);
  const backOffMs = failures < 2 ? 0 : firstBackOffMs * 2 ** Math.min(10, failures - 2);
  const waitMs = jittered(Math.min(mostFailureBackOffMs, backOffMs), now);
  const bounds = boundsOf(pace, now.settings);
  const isFirst = failures === 2 && pace.refusals === 0;
  const lowered = isFirst ? afterRefusal(pace.rate, event, { bounds, limitedBy: "silent" }) : pace.rate;
  const silent = { ...pace, failures, rate: withPause(lowered, waitMs) };
  return { ...silent, notBeforeMs: now.nowMs + Math.max(delayMs(silent, answer.tookMs, now), waitMs) };
}

/** The gap after a refusal or silence is a pause, which is counted separately. */
function eventOf({ endedAtMs, refusals, failures }: HostPace, { nowMs }: PaceCircumstances): RateEvent {
  const isPause = endedAtMs === 0 || refusals > 0 || failures > 1;
  return { nowMs, gapMs: isPause ? 0 : Math.max(0, nowMs - endedAtMs) };
}

const retryAfterMs = ({ retryAfterSeconds }: HostAnswer) => (retryAfterSeconds ?? 0) * 1000;

const jittered = (ms: number, { random }: PaceCircumstances) => ms * (1 + random / 4);

function isForgiven(pace: Pick<HostPace, "backOffMs" | "backedOffAtMs">, nowMs: number): boolean {
  return nowMs - pace.backedOffAtMs - pace.backOffMs > forgivenAfterMs;
}

// Classifies a request for its host's pace: answered, silent, or never sent.

export interface HostAnswer {
  /** Null if nobody answered, and 0 if the answer was unusable. */
  readonly status: number | null;
  readonly tookMs: number;
  readonly retryAfterSeconds: number | null;
  /** Small files such as robots.txt say nothing about the usual time of a page. */
  readonly isSmall?: boolean;
}

/** No request was sent, and trying again soon would not help. */
const final: ReadonlySet<string> = new Set<FailureCode>([
  "dns-no-such-name",
  "refused-address",
  "not-allowed",
]);
/** Nobody answered. Other failures are unusable answers. */
const silent: ReadonlySet<string> = new Set<FailureCode>([
  "dns-no-answer",
  "connect-refused",
  "connect-unreachable",
  "connect-timeout",
  "connection-lost",
  "proxy",
  "tls",
  "first-byte-timeout",
]);

export function isFinalFailure(code: string): boolean {
  return final.has(code);
}

export function answerOfFailure(code: string, tookMs: number): HostAnswer | null {
  if (isFinalFailure(code)) return null;
  // The speed and status of a bot gate say nothing about the site behind it.
  if (code === ("challenged" satisfies FailureCode))
    return { status: 0, tookMs, retryAfterSeconds: null, isSmall: true };
  return { status: silent.has(code) ? null : 0, tookMs, retryAfterSeconds: null };
}

/** 429 means too many requests from this crawler, and 503 that the host is overloaded. */
export const isRefusal = ({ status }: Pick<HostAnswer, "status">): boolean =>
  status === 429 || status === 503;

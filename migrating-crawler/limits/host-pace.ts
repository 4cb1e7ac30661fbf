/**
 * How fast one host may be asked. The delay after an answer is the largest of our floor, the host's Crawl-delay, a
 * multiple of the time its last answer took, and what is left of the interval that the host tolerates (tolerated-rate:
 * lowered by 429 and 503, by silence, and by answers several times slower than usual; raised step by step by good and quick
 * ones). Retry-After is a minimum; 429 and 503 without it are followed by a pause of 60 s, with jitter, which doubles to a day for as
 * long as it is no use (RFC 9110 section 10.2.3, RFC 6585 section 4); a host that does not answer at
 * all twice in a row is left alone for up to an hour. Pure: the time and chance are arguments.
 */
import { z } from "zod";
import { perHourWords, rateLimitWords } from "#protocol/pace-words";
import type { HostPaceReport } from "#protocol/result";
import { type HostAnswer, isRefusal } from "./request-outcome.ts";
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
  /** The rest after a request of a host of which nothing is known. */
  readonly floorMs: number;
  /** The least rest, which a host that answers well and quickly comes to step by step; absent: the same. */
  readonly fastestMs?: number;
  readonly responseTimeFactor: number;
}

const amount = (most = Number.MAX_VALUE) => z.number().min(0).max(most).default(0);

/** As it lies on the disk, too. */
export const hostPace = z.object({
  /** No request earlier (same clock as `nowMs`). */
  notBeforeMs: amount(),
  /** What robots.txt asks for. */
  crawlDelayMs: amount(3_600_000),
  /** The pause after the last refusal, and when that was; 0 when there was none for long. */
  backOffMs: amount(86_400_000),
  backedOffAtMs: amount(),
  /** Refusals in a row. */
  refusals: amount(100),
  /** How long an answer of this host usually takes (a slow moving average), and of how many answers that is. */
  usualMs: amount(),
  answers: amount(),
  lastMs: amount(),
  /** Answers until slowness may count again: what was lowered has to show first. */
  slowIn: amount(100),
  /** When the last request ended. */
  endedAtMs: amount(),
  rate: toleratedRate.default(unlimitedRate),
  /** Requests in a row that nobody answered. */
  failures: amount(100),
});

export type HostPace = Readonly<z.infer<typeof hostPace>>;

interface PaceCircumstances {
  readonly settings: PaceSettings;
  readonly nowMs: number;
  /** In [0, 1): spreads a back-off by up to a quarter. */
  readonly random: number;
}

export const newPace: HostPace = hostPace.parse({});

const firstBackOffMs = 60_000;
const mostBackOffMs = 86_400_000;
/** From the end of the pause on; until then the next one begins with half of it. */
const forgivenAfterMs = 86_400_000;
const mostFailureBackOffMs = 3_600_000;
/** A report that is no more than so much younger than the last answer here is of that answer. */
const clocksApartMs = 2000;
/** A very long Crawl-delay makes a host slow, not forgotten. */
const mostCrawlDelayMs = 3_600_000;
/** However long an answer took. */
const mostWorkMs = 60_000;

/** Two answers in a row so many times slower than usual are too slow; one that is under twice the usual is quick. */
const slowTimes = 3;
const quickTimes = 2;
const slowAgainAfter = 3;
/** The moving average takes in this part of a quicker answer, and that of a slower one: what is usual is not soon forgotten. */
const [quickerPart, slowerPart] = [1 / 8, 1 / 32];
/** It counts as "usual" from the third answer on. */
const answersUntilUsual = 3;
/** Differences below this are the network's and the server's ordinary restlessness. */
const restlessMs = 50;

export function withCrawlDelay(pace: HostPace, seconds: number | null): HostPace {
  return { ...pace, crawlDelayMs: Math.min(mostCrawlDelayMs, (seconds ?? 0) * 1000) };
}

export function notBefore(pace: HostPace, atMs: number): HostPace {
  return { ...pace, notBeforeMs: Math.max(pace.notBeforeMs, atMs) };
}

/** The pace after an answer, or after none. */
export function afterAnswer(pace: HostPace, answer: HostAnswer, now: PaceCircumstances): HostPace {
  const met = { ...pace, endedAtMs: now.nowMs };
  if (answer.status === null) return afterSilence(met, answer, eventOf(pace, now), now);
  const answered = { ...met, failures: 0 };
  if (isRefusal(answer)) return afterRefused(pace, answer, eventOf(pace, now), now);
  const timed = withTime(answered, answer, eventOf(pace, now), now);
  const { nowMs } = now;
  const waitMs = Math.max(delayMs(timed, answer.tookMs, now), retryAfterMs(answer));
  const backOffMs = isForgiven(pace, nowMs) ? 0 : pace.backOffMs;
  // Sites that turn crawlers away tend to let robots.txt through.
  const refusals = answer.isSmall === true ? pace.refusals : 0;
  return { ...timed, refusals, backOffMs, notBeforeMs: nowMs + waitMs };
}

/** What an answer's time says: "slow" is too slow, twice in a row; "neither" says nothing for a higher rate. */
export type AnswerSpeed = "quick" | "neither" | "slow";

export function answerSpeed(pace: HostPace, { tookMs, status, isSmall }: HostAnswer): AnswerSpeed {
  if (status === null || isSmall === true) return "neither";
  const beyondUsual = (ms: number, times: number) =>
    pace.answers >= answersUntilUsual && ms > times * pace.usualMs && ms - pace.usualMs > restlessMs;
  if (pace.slowIn === 0 && beyondUsual(Math.min(tookMs, pace.lastMs), slowTimes)) return "slow";
  return beyondUsual(tookMs, quickTimes) ? "neither" : "quick";
}

/**
 * The rate is lowered once for refusals in a row, and the pause doubles. The first of them may state how long it is to
 * be; where what it stated was no use, it is no shorter than ours.
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

/** What another crawler of this host has to know; null when there is nothing. */
export function paceReport(pace: HostPace, nowMs: number): HostPaceReport | null {
  const { crawlDelayMs, backOffMs } = pace;
  const usualMs = pace.answers >= answersUntilUsual ? Math.min(mostBackOffMs, pace.usualMs) : 0;
  const tolerated = toldRate(pace.rate, nowMs);
  if (crawlDelayMs === 0 && backOffMs === 0 && usualMs === 0 && tolerated === null) return null;
  const backedOffMsAgo = backOffMs === 0 ? 0 : Math.max(0, nowMs - pace.backedOffAtMs);
  return { crawlDelayMs, backOffMs, backedOffMsAgo, usualMs, ...(tolerated === null ? {} : { tolerated }) };
}

/** What others have learned, taken in: the stricter of both counts. */
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
    // Whether it was of use nobody knows: the next one is longer.
    ...(stricter ? { ...theirs, refusals: Math.max(1, pace.refusals) } : {}),
    ...(knowsUsual ? {} : { usualMs: report.usualMs, answers: answersUntilUsual, lastMs: report.usualMs }),
    rate: stricterRate({ ...pace, crawlDelayMs }, report.tolerated, { settings, nowMs }),
  };
}

/** Their rate, where it is lower and was found after this crawler asked the host last: older word may be its own. */
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

/** How fast the host is asked, and why, where anything but the floor slows it down; null: nothing does. */
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

/** Bounds of the host's rate: what the settings and its Crawl-delay allow, however it answers. */
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

/** Takes in how long the answer took, and what it says of the rate. */
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

/** The gap behind a refusal or a silence is their pause, which is counted with them. */
function eventOf({ endedAtMs, refusals, failures }: HostPace, { nowMs }: PaceCircumstances): RateEvent {
  const isPause = endedAtMs === 0 || refusals > 0 || failures > 1;
  return { nowMs, gapMs: isPause ? 0 : Math.max(0, nowMs - endedAtMs) };
}

const retryAfterMs = ({ retryAfterSeconds }: HostAnswer) => (retryAfterSeconds ?? 0) * 1000;

const jittered = (ms: number, { random }: PaceCircumstances) => ms * (1 + random / 4);

/** Quiet time counts from the end of the pause. */
function isForgiven(pace: Pick<HostPace, "backOffMs" | "backedOffAtMs">, nowMs: number): boolean {
  return nowMs - pace.backedOffAtMs - pace.backOffMs > forgivenAfterMs;
}

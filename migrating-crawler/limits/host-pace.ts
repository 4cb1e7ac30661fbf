/**
 * How fast one host may be asked. The delay after an answer is the largest of our floor, the host's Crawl-delay
 * and a multiple of the time its last answer took, stretched while the host answers several times slower than it
 * usually does. Retry-After is a minimum; 429 and 503 without it back off 60 s, doubling to a day, with jitter,
 * forgiven after 30 quiet minutes (RFC 9110 section 10.2.3, RFC 6585 section 4); a host that does not answer at
 * all twice in a row backs off up to an hour. Pure: the time and chance are arguments.
 */
import type { HostPaceReport } from "#protocol/result";
import type { HostAnswer } from "./request-outcome.ts";

export interface PaceSettings {
  readonly floorMs: number;
  readonly responseTimeFactor: number;
}

export interface HostPace {
  /** No request earlier (same clock as `nowMs`). */
  readonly notBeforeMs: number;
  /** What robots.txt asks for. */
  readonly crawlDelayMs: number;
  /** The back-off in force; 0 when there is none. */
  readonly backOffMs: number;
  readonly backedOffAtMs: number;
  /** How long an answer of this host usually takes (a slow moving average), and of how many answers that is. */
  readonly usualMs: number;
  readonly answers: number;
  readonly lastMs: number;
  /** How many times longer the delay is because the host is slower than usual; 1: it is not. */
  readonly stretch: number;
  /** Requests in a row that nobody answered. */
  readonly failures: number;
}

export interface PaceCircumstances {
  readonly settings: PaceSettings;
  readonly nowMs: number;
  /** In [0, 1): spreads a back-off by up to a quarter. */
  readonly random: number;
}

export const newPace: HostPace = {
  notBeforeMs: 0,
  crawlDelayMs: 0,
  backOffMs: 0,
  backedOffAtMs: 0,
  usualMs: 0,
  answers: 0,
  lastMs: 0,
  stretch: 1,
  failures: 0,
};

const firstBackOffMs = 60_000;
const mostBackOffMs = 86_400_000;
const forgivenAfterMs = 30 * 60_000;
const mostFailureBackOffMs = 3_600_000;
/** A year: what the protocol can tell. */
const longestRetryAfterSeconds = 31_536_000;
/** A very long Crawl-delay makes a host slow, not forgotten. */
const mostCrawlDelayMs = 3_600_000;
/** A slow answer stretches the delay, but not beyond this. */
const mostStretchedMs = 60_000;

/** Two answers in a row so many times slower than usual stretch the delay in proportion, up to ten times. */
const slowTimes = 3;
const mostStretch = 10;
/** With each answer that is not slow the stretch goes back by a tenth of itself. */
const recovery = 0.9;
/** The moving average takes in this part of each answer; it counts as "usual" from the third answer on. */
const usualPart = 1 / 8;
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
  if (answer.status === null) return afterSilence(pace, answer, now);
  const met = withTime({ ...pace, failures: 0 }, answer);
  const usualWaitMs = delayMs(met, answer.tookMs, now.settings);
  const retryAfterMs = (answer.retryAfterSeconds ?? 0) * 1000;
  if (answer.status !== 429 && answer.status !== 503) {
    const backOffMs = isForgiven(pace, now.nowMs) ? 0 : pace.backOffMs;
    return { ...met, backOffMs, notBeforeMs: now.nowMs + Math.max(usualWaitMs, retryAfterMs) };
  }
  const backOffMs = Math.min(mostBackOffMs, Math.max(firstBackOffMs, 2 * pace.backOffMs));
  const jitteredMs = Math.min(mostBackOffMs, jittered(backOffMs, now));
  const waitMs = answer.retryAfterSeconds === null ? jitteredMs : retryAfterMs;
  const notBeforeMs = now.nowMs + Math.max(usualWaitMs, waitMs);
  return { ...met, backOffMs, backedOffAtMs: now.nowMs, notBeforeMs };
}

/** What another crawler of this host has to know; null when there is nothing. */
export function paceReport(pace: HostPace, nowMs: number): HostPaceReport | null {
  const { crawlDelayMs, backOffMs } = pace;
  const usualMs = pace.answers >= answersUntilUsual ? Math.min(mostBackOffMs, pace.usualMs) : 0;
  if (crawlDelayMs === 0 && backOffMs === 0 && usualMs === 0) return null;
  const backedOffMsAgo = backOffMs === 0 ? 0 : Math.max(0, nowMs - pace.backedOffAtMs);
  return { crawlDelayMs, backOffMs, backedOffMsAgo, usualMs };
}

/** What others have learned, taken in: the stricter of both counts. */
export function withReport(pace: HostPace, report: HostPaceReport, nowMs: number): HostPace {
  const theirs = { backOffMs: report.backOffMs, backedOffAtMs: nowMs - report.backedOffMsAgo };
  const stricter = report.backOffMs > pace.backOffMs && !isForgiven(theirs, nowMs);
  const knowsUsual = pace.answers >= answersUntilUsual || report.usualMs === 0;
  return {
    ...pace,
    crawlDelayMs: Math.min(mostCrawlDelayMs, Math.max(pace.crawlDelayMs, report.crawlDelayMs)),
    ...(stricter ? theirs : {}),
    ...(knowsUsual ? {} : { usualMs: report.usualMs, answers: answersUntilUsual, lastMs: report.usualMs }),
  };
}

/** Retry-After as seconds or an HTTP date; null when absent or neither. */
export function retryAfterSeconds(header: string | readonly string[] | undefined, now: Date): number | null {
  const text = [header ?? []].flat()[0]?.trim();
  if (text === undefined || text === "" || text.length > 60) return null;
  if (/^\d+$/.test(text)) return Math.min(longestRetryAfterSeconds, Number(text));
  const at = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isFinite(at)) return null;
  return Math.min(longestRetryAfterSeconds, Math.max(0, Math.ceil((at - now.getTime()) / 1000)));
}

function delayMs(pace: HostPace, tookMs: number, { floorMs, responseTimeFactor }: PaceSettings): number {
  const forItsWorkMs = Math.min(mostStretchedMs, responseTimeFactor * tookMs);
  const plainMs = Math.max(floorMs, pace.crawlDelayMs, forItsWorkMs);
  return Math.max(plainMs, Math.min(mostStretchedMs, plainMs * pace.stretch));
}

function withTime(pace: HostPace, answer: HostAnswer): HostPace {
  if (answer.isSmall === true) return pace;
  const { tookMs } = answer;
  const slowMs = Math.min(tookMs, pace.lastMs);
  const isSlow =
    pace.answers >= answersUntilUsual &&
    slowMs > slowTimes * pace.usualMs &&
    slowMs - pace.usualMs > restlessMs;
  const stretch = isSlow
    ? Math.max(pace.stretch, Math.min(mostStretch, slowMs / Math.max(1, pace.usualMs)))
    : Math.max(1, pace.stretch * recovery);
  const usualMs = pace.answers === 0 ? tookMs : pace.usualMs + (tookMs - pace.usualMs) * usualPart;
  return { ...pace, stretch, usualMs, lastMs: tookMs, answers: Math.min(1e6, pace.answers + 1) };
}

function afterSilence(pace: HostPace, answer: HostAnswer, now: PaceCircumstances): HostPace {
  const failures = Math.min(100, pace.failures + 1);
  const backOffMs = failures < 2 ? 0 : firstBackOffMs * 2 ** Math.min(10, failures - 2);
  const waitMs = jittered(Math.min(mostFailureBackOffMs, backOffMs), now);
  const usualWaitMs = delayMs(pace, answer.tookMs, now.settings);
  return { ...pace, failures, notBeforeMs: now.nowMs + Math.max(usualWaitMs, waitMs) };
}

const jittered = (ms: number, { random }: PaceCircumstances) => ms * (1 + random / 4);

/** Quiet minutes count from the end of the back-off. */
function isForgiven(pace: Pick<HostPace, "backOffMs" | "backedOffAtMs">, nowMs: number): boolean {
  return nowMs - pace.backedOffAtMs - pace.backOffMs > forgivenAfterMs;
}

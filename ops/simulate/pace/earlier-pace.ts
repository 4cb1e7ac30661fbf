/**
 * The pace of a host as it was before decision 0032, for comparison: 429 and 503 without Retry-After back off 60 s, doubling
 * to a day, forgiven after 30 quiet minutes, and the rate in between stays what the settings allow. Answers several times
 * slower than usual stretch the delay. Nothing but the simulation uses it.
 */
import type { PaceCircumstances } from "#crawler/limits/host-pace";
import type { HostAnswer } from "#crawler/limits/request-outcome";

export interface EarlierPace {
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

export const newEarlierPace: EarlierPace = {
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

/** The pace after an answer, or after none. */
export function afterAnswerEarlier(
  pace: EarlierPace,
  answer: HostAnswer,
  now: PaceCircumstances,
): EarlierPace {
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

function delayMs(
  pace: EarlierPace,
  tookMs: number,
  { floorMs, responseTimeFactor }: PaceCircumstances["settings"],
): number {
  const forItsWorkMs = Math.min(mostStretchedMs, responseTimeFactor * tookMs);
  const plainMs = Math.max(floorMs, pace.crawlDelayMs, forItsWorkMs);
  return Math.max(plainMs, Math.min(mostStretchedMs, plainMs * pace.stretch));
}

function withTime(pace: EarlierPace, answer: HostAnswer): EarlierPace {
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

function afterSilence(pace: EarlierPace, answer: HostAnswer, now: PaceCircumstances): EarlierPace {
  const failures = Math.min(100, pace.failures + 1);
  const backOffMs = failures < 2 ? 0 : firstBackOffMs * 2 ** Math.min(10, failures - 2);
  const waitMs = jittered(Math.min(mostFailureBackOffMs, backOffMs), now);
  const usualWaitMs = delayMs(pace, answer.tookMs, now.settings);
  return { ...pace, failures, notBeforeMs: now.nowMs + Math.max(usualWaitMs, waitMs) };
}

const jittered = (ms: number, { random }: PaceCircumstances) => ms * (1 + random / 4);

/** Quiet minutes count from the end of the back-off. */
function isForgiven(pace: Pick<EarlierPace, "backOffMs" | "backedOffAtMs">, nowMs: number): boolean {
  return nowMs - pace.backedOffAtMs - pace.backOffMs > forgivenAfterMs;
}

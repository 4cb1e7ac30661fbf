/**
 * When a URL is fetched again: a fixed interval after a success, and after anything else a wait that fits the
 * reason. A refusal that a minute will not change waits a day; trouble that may pass waits a minute, doubling
 * up to a day; what a server asks for with Retry-After (RFC 9110 section 10.2.3) is the least wait in any case.
 */
import type { FetchOutcome } from "#protocol/result";

export interface RecrawlSettings {
  /** From one successful fetch to the next. */
  readonly intervalSeconds: number;
  /** First wait after trouble that may pass; doubles with each failure in a row. */
  readonly firstRetrySeconds: number;
  /** Longest wait after trouble that may pass. */
  readonly longestRetrySeconds: number;
  /** Wait after a refusal: robots, a refused address, a page that is missing or not ours to read. */
  readonly refusedRetrySeconds: number;
  /** A URL that is missing (404, 410) so many times in a row is gone. */
  readonly goneAfter: number;
  /** A URL that is gone is looked at again so much later, in case the site came back. */
  readonly goneRetrySeconds: number;
}

const daySeconds = 86_400;

export const defaultRecrawlSettings: RecrawlSettings = {
  intervalSeconds: 7 * daySeconds,
  firstRetrySeconds: 60,
  longestRetrySeconds: daySeconds,
  // RFC 9309 section 2.4: a robots.txt is not used for longer than 24 hours.
  refusedRetrySeconds: daySeconds,
  goneAfter: 3,
  goneRetrySeconds: 30 * daySeconds,
};

export interface FetchAttempt {
  readonly now: Date;
  readonly outcome: FetchOutcome;
  /** Failures in a row before this one; 0 when not told. */
  readonly failures?: number;
  /** A random number in [0, 1) that lengthens a retry by up to a quarter, so that URLs that failed together do not return together. */
  readonly jitter?: number;
}

/** The earliest time of the next fetch. */
export function nextFetchAt(attempt: FetchAttempt, settings: RecrawlSettings): Date {
  return new Date(attempt.now.getTime() + Math.ceil(waitSeconds(attempt, settings) * 1000));
}

/** Whether the URL has been missing often enough, this time included, to leave the frontier. */
export function isGone({ outcome, failures = 0 }: FetchAttempt, { goneAfter }: RecrawlSettings): boolean {
  return isMissing(outcome) && failures + 1 >= goneAfter;
}

/** Whether this outcome counts as a failure in a row; anything else sets the count back to zero. */
export function isFailure(outcome: FetchOutcome): boolean {
  return outcome.type === "failed" || outcome.type === "http-error";
}

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
      return retrySeconds(attempt, settings);
    case "http-error": {
      const asked = outcome.retryAfterSeconds ?? 0;
      if (isGone(attempt, settings)) return Math.max(asked, settings.goneRetrySeconds);
      const ours = mayPass(outcome.status) ? retrySeconds(attempt, settings) : settings.refusedRetrySeconds;
      return Math.max(asked, ours);
    }
  }
}

function retrySeconds({ failures = 0, jitter = 0 }: FetchAttempt, settings: RecrawlSettings): number {
  const doubled = settings.firstRetrySeconds * 2 ** Math.min(failures, 30);
  return Math.min(settings.longestRetrySeconds, doubled) * (1 + jitter / 4);
}

function isMissing(outcome: FetchOutcome): boolean {
  return outcome.type === "http-error" && (outcome.status === 404 || outcome.status === 410);
}

/** Statuses that tell of the moment, not of the URL: time-out, too early, too many requests, any server error. */
function mayPass(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500;
}

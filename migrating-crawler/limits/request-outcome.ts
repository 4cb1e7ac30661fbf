/** Classifies a request for its host's pace: answered, silent, or never sent. */
import type { FailureCode } from "../core/failure.ts";

export interface HostAnswer {
  /** Null when nobody answered; 0 when the answer was unusable. */
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

/** Returns null when the host was not asked. */
export function answerOfFailure(code: string, tookMs: number): HostAnswer | null {
  if (isFinalFailure(code)) return null;
  // A bot gate's speed and status say nothing about the site behind it.
  if (code === ("challenged" satisfies FailureCode))
    return { status: 0, tookMs, retryAfterSeconds: null, isSmall: true };
  return { status: silent.has(code) ? null : 0, tookMs, retryAfterSeconds: null };
}

/** 429 means too many requests from us, 503 that the host is overloaded. */
export const isRefusal = ({ status }: Pick<HostAnswer, "status">): boolean =>
  status === 429 || status === 503;

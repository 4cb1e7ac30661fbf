/** How a request went, as the pace of its host sees it: answered, silent, or never asked at all. */
import type { FailureCode } from "../core/failure.ts";

export interface HostAnswer {
  /** Null when nobody answered; 0 when the answer was of no use to us. */
  readonly status: number | null;
  /** How long the answer took, or the failure. */
  readonly tookMs: number;
  readonly retryAfterSeconds: number | null;
  /** robots.txt and the like: says nothing of how long a page usually takes. */
  readonly isSmall?: boolean;
}

/** Nobody was asked, and asking again soon would give the same. */
const final: ReadonlySet<string> = new Set<FailureCode>([
  "dns-no-such-name",
  "refused-address",
  "not-allowed",
]);
/** Nobody answered. The other failures are answers that we could not use. */
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

/** Null when the host was not asked. */
export function answerOfFailure(code: string, tookMs: number): HostAnswer | null {
  if (isFinalFailure(code)) return null;
  // How soon a gate answers, and with which status, says nothing of the site behind it.
  if (code === ("challenged" satisfies FailureCode))
    return { status: 0, tookMs, retryAfterSeconds: null, isSmall: true };
  return { status: silent.has(code) ? null : 0, tookMs, retryAfterSeconds: null };
}

/** Too much for the host (429), or for anybody just now (503). */
export const isRefusal = ({ status }: Pick<HostAnswer, "status">): boolean =>
  status === 429 || status === 503;

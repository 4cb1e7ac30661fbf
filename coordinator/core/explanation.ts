/**
 * Why something is in its state or is not crawled: one line of an explanation with its code, and whether it blocks the crawl.
 */

export interface Standing {
  readonly code: StandingCode;
  /** No fetch takes place while this holds. */
  readonly stops: boolean;
  readonly words: string;
}

type StandingCode =
  | "unreadable"
  | "opted-out"
  | "complaints"
  | "url-rejected"
  | "url-unknown"
  /** Its channel excludes it. */
  | "outside-channel"
  | "host-unknown"
  | "other-coordinator"
  | "host-budget-reached"
  | "host-budget-used-up"
  | "host-urls-left-out"
  | "domain-budget-used-up"
  | "robots-closed"
  | "slow-pace"
  | "redirects"
  | "near-duplicate"
  | "host-unresolved"
  | "host-unresolvable"
  | "host-refused"
  | "special-purpose"
  | "not-in-registry"
  | "differs-by-place"
  | "leaf-split"
  /** The content of a space could not be counted in time. */
  | "too-large-to-count"
  /** Domain sets decide who may fetch it, and it is outside those of all crawlers or of its own crawler. */
  | "domain-set"
  | "no-domain-set"
  | "other-domain-set"
  | "waits-for-round"
  | "nobody-could-take-it"
  | "no-ipv6"
  | "crawler-offline"
  | "crawler-draining"
  | "crawler-held-back"
  | "lease-open"
  | "politeness"
  | "robots-refused"
  | "address-refused"
  | "refused"
  | "gone"
  /** The site asks for payment (402), for this URL or for all recent requests to the host. */
  | "payment-required"
  /** A bot gate answers instead of the host. */
  | "bot-gate"
  /** The site states that it must not be searched. */
  | "not-searched"
  | "not-due"
  | "failing"
  | "nothing-due"
  | "ready";

export const stop = (code: StandingCode, words: string): Standing => ({ code, stops: true, words });

export const note = (code: StandingCode, words: string): Standing => ({ code, stops: false, words });

/** Returns `: reason` without the reason's full stop, or nothing. */
export function because(reason: string | null): string {
  const text = reason?.trim().replace(/[.\s]+$/, "") ?? "";
  return text === "" ? "" : `: ${text}`;
}

/** Why something is as it is, or is not crawled: one line of an explanation, with its code and whether it stops the crawl. */

export interface Standing {
  readonly code: StandingCode;
  /** True: no fetch takes place while this holds. */
  readonly stops: boolean;
  readonly words: string;
}

type StandingCode =
  | "unreadable"
  | "opted-out"
  | "complaints"
  | "url-rejected"
  | "url-unknown"
  /** Its channel leaves it out. */
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
  /** What lies in a space could not be counted in time. */
  | "too-large-to-count"
  /** Which network announces an address is not in the registries' files. */
  /** May be had by its domain sets; in no crawler's or not in this coordinator's; in none of its crawler's. */
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
  /** The site asks to be paid (402): for the URL, or for all that was asked of the host lately. */
  | "payment-required"
  /** A bot gate answers in the host's place. */
  | "bot-gate"
  /** Its site states that it is not to be searched. */
  | "not-searched"
  | "not-due"
  | "failing"
  | "nothing-due"
  | "ready";

export const stop = (code: StandingCode, words: string): Standing => ({ code, stops: true, words });

export const note = (code: StandingCode, words: string): Standing => ({ code, stops: false, words });

/** `: reason` without the reason's own full stop; nothing when there is none. */
export function because(reason: string | null): string {
  const text = reason?.trim().replace(/[.\s]+$/, "") ?? "";
  return text === "" ? "" : `: ${text}`;
}

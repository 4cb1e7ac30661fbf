/**
 * Why something is in its state or is not crawled: an explanation consists of lines, each with a code and whether it blocks
 * the crawl.
 */

export interface Standing {
  readonly code: StandingCode;
  /** Whether this prevents every fetch. */
  readonly stops: boolean;
  readonly words: string;
}

type StandingCode =
  | "unreadable"
  | "opted-out"
  | "complaints"
  | "url-rejected"
  | "url-unknown"
  /** The URL's channel excludes it. */
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
  /** The space holds too much to count in time. */
  | "too-large-to-count"
  /** Domain sets decide who may fetch the URL, and no crawler's set (or not that of its own crawler) contains it. */
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
  /** The site demands payment (402) for this URL, or did so for all recent requests to the host. */
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

export const delegationCauseWords = {
  "own-subnet": "its own subnet, without a probe",
  "probe-round": "nearest in a probe round",
  "first-fetch":
    "for the time being: it crawls while it is being decided, and its first fetch counts as a measurement",
  overload: "moved to relieve a full crawler",
  home: "moved to a nearer crawler that has room again",
  "crawler-left": "taken over from a crawler that left",
  drained: "taken over from a crawler that is being drained",
  joined: "taken over by a crawler that joined and is nearer",
  operator: "set by an operator",
  "crawler-moved": "its crawler has moved since it was measured; it will be measured again",
  "differs-by-place": "the name resolves differently by place; nearest to what it sees",
  "measures-apart": "this part of the subnet measures apart; nearest to it",
  "domain-set": "in none of the domain sets of its subnet's crawler; nearest of those whose sets hold it",
} as const;

/** `joined` means that a crawler connected which may be nearer and was not compared yet. */
export const roundCauseWords = {
  "new-subnet": "the subnet was new",
  "slow-fetches": "fetches had become slow",
  "crawler-left": "its crawler had left",
  drained: "its crawler is being drained",
  overload: "its crawler was overloaded",
  operator: "an operator asked for it",
  retry: "no crawler had been measured for it yet",
  joined: "another crawler had joined",
  denied: "its crawler may not, or cannot, reach it",
  "differs-by-place": "the name resolves differently by place",
  "measures-apart": "its addresses measure apart from the rest of their subnet",
  "domain-set": "its hosts were in none of the domain sets of its crawler",
  review: "it was to be seen whether it is still so",
  refresh: "the last decision was old",
  sampled: "a sample found its crawler far from the nearest",
} as const;

export const changeCauseWords = {
  ...roundCauseWords,
  ...delegationCauseWords,
  "joined-again": "it no longer differs from its subnet",
} as const;

export type DelegationCause = keyof typeof delegationCauseWords;
export type RoundCause = keyof typeof roundCauseWords;
/** The cause of the delegation, or of the round that decided it. */
export type ChangeCause = keyof typeof changeCauseWords;

/** The keys in declaration order. */
export const namesOf = <Name extends string>(words: Readonly<Record<Name, string>>): Name[] =>
  Object.keys(words) as Name[];

/** Whether a crawler is believed and why, as operators read it. */

export interface TrustReport {
  readonly crawler: string;
  readonly standing: TrustStanding;
  /** Fetched under leases since the comparisons began, or since it was restored. */
  readonly pages: number;
  readonly comparisons: TrustComparisons;
  /** Of the evidence, when it was last weighed. */
  readonly score: number;
  readonly distrusted: { readonly since: Date; readonly words: string } | null;
  readonly probesDoubted: { readonly since: Date; readonly words: string } | null;
  readonly restoredAt: Date | null;
  /** Connected crawlers, this one included: with fewer than three nobody can say who is right. */
  readonly connected: number;
  /** The latest first. */
  readonly evidence: readonly TrustEvidence[];
}

/** What a crawler's comparisons came to; `untold`: to nothing that can be concluded, within the last 30 days. */
export interface TrustComparisons {
  readonly agreed: number;
  readonly alone: number;
  readonly once: number;
  readonly untold: number;
}

/**
 * not-compared: no page of it was yet. watched: it stood alone of late, and more of its pages are compared. unproven:
 * too many of its comparisons came to nothing for anybody to say that it is honest; more of them are made.
 */
export type TrustStanding =
  | "trusted"
  | "not-compared"
  | "unproven"
  | "watched"
  | "distrusted"
  | "probes-doubted";

export interface TrustEvidence {
  readonly url: string;
  readonly at: Date;
  /** Each fetch differed from all others', or the first alone did. */
  readonly verdict: "alone" | "once";
  /** How it differs. */
  readonly words: string;
  readonly counts: boolean;
  /** Why it counts, or does not. */
  readonly why: string;
  /** In the order in which they were given. */
  readonly opinions: readonly SaidOfPage[];
}

export interface SaidOfPage {
  readonly crawler: string;
  readonly at: string;
  readonly said: string;
}

export const standingWords: Readonly<Record<TrustStanding, string>> = {
  trusted: "trusted",
  "not-compared": "not compared yet",
  unproven: "unproven",
  watched: "watched",
  distrusted: "not trusted",
  "probes-doubted": "probes doubted",
};

/** Why it is unproven, in words. */
export function unprovenWords({ agreed, alone, once, untold }: TrustComparisons): string {
  const of = `${untold} of ${untold + agreed + alone + once} comparisons of its pages came to nothing`;
  const why =
    "it runs another version than the others, sites did not answer, or there are too few crawlers to say who is right";
  return `${of}: ${why}. So nobody knows whether it is honest, and more of its pages are compared.`;
}

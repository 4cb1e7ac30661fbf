/** Whether a crawler is believed and why, as operators read it. */

export interface TrustReport {
  readonly crawler: string;
  readonly standing: TrustStanding;
  /** Fetched under leases since the comparisons began, or since it was restored. */
  readonly pages: number;
  readonly comparisons: { readonly agreed: number; readonly alone: number; readonly once: number };
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

/** not-compared: no page of it was yet. watched: it stood alone of late, and more of its pages are compared. */
export type TrustStanding = "trusted" | "not-compared" | "watched" | "distrusted" | "probes-doubted";

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
  watched: "watched",
  distrusted: "not trusted",
  "probes-doubted": "probes doubted",
};

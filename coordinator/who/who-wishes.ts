/** What a site has asked of us by itself: that we leave it alone, or that somebody looks at what we did. */

import { howMany, whenWords } from "#core/format";
import { optOutWords } from "../opt-outs/honour.ts";
import { note, stop } from "./explain.ts";
import type { Standing } from "./who-answer.ts";

/** Without who asked and what was said, for everybody may look. */
export interface OptOutReport {
  /** The domain (with everything below it) or network that opted out. */
  readonly target: string;
  readonly kind: "site" | "network";
  readonly state: "unconfirmed" | "confirmed";
  readonly since: string;
  /** Unconfirmed ones end then. */
  readonly lapsesAt: string | null;
}

export interface ComplaintLine {
  readonly complaintId: number;
  readonly target: string;
  readonly at: string;
  readonly open: boolean;
}

export interface SiteWishes {
  readonly optOut: OptOutReport | null;
  /** The latest first. */
  readonly complaints: readonly ComplaintLine[];
}

export const noWishes: SiteWishes = { optOut: null, complaints: [] };

export function wishLines({ optOut, complaints }: SiteWishes, now: Date): Standing[] {
  const lines = optOut === null ? [] : [stop("opted-out", optOutWords(optOut))];
  const latest = complaints[0];
  if (latest === undefined) return lines;
  const open = complaints.filter((complaint) => complaint.open).length;
  const state = open === 0 ? "all are closed" : open === 1 ? "one is open" : `${open} are open`;
  const words = `${howMany(complaints.length, "complaint")} about ${latest.target}, the latest ${whenWords(latest.at, now)} (number ${latest.complaintId}); ${state}.`;
  return [...lines, note("complaints", words)];
}

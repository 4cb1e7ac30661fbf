/** What a site's operators asked of the crawl: its opt-out and their complaints. */

// What a site has asked of us by itself: that we leave it alone, or that somebody looks at what we did.

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

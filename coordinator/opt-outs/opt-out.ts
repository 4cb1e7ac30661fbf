/**
 * Opt-outs: sites (a domain with everything below it) and networks that the whole fleet leaves alone because
 * somebody asked for it. One that nobody has confirmed is honoured all the same, but lapses.
 *
 *   waiting ──(confirmed)──┐
 *                          ▼
 *   in force, unconfirmed → in force, confirmed → ended (lifted)
 *        └──────────────→ ended (lifted, or lapsed)
 */
import type { CrawlerId } from "#core/ids";

/** An unconfirmed opt-out is honoured for so long. */
export const unconfirmedDays = 30;
/** So many unconfirmed ones by the form take force in a day; more wait until they are confirmed. */
export const mostUnconfirmedADay = 200;
/** An unconfirmed one by the form that covers more hosts of the frontier waits until it is confirmed. */
export const mostHostsUnconfirmed = 100;
/**
 * So does one that covers several hosts (a name and its `www.` count as one) with more pages in the index: who takes
 * out others' sites does most harm there, and who runs such a domain can publish a record in its DNS.
 */
export const mostPagesUnconfirmed = 1000;

/** A domain with everything below it, or a network from its first address to its last. */
export type OptOutTarget =
  | { readonly site: string; readonly network: null }
  | { readonly site: null; readonly network: { readonly first: string; readonly last: string } };

export interface OptOutRequest {
  readonly target: OptOutTarget;
  readonly source: "form" | "operator";
  /** What the requester says; may be empty. */
  readonly words: string;
  /** Where the requester can be reached; null: not told. */
  readonly replyTo: string | null;
  /** Where the form came from. */
  readonly requester: string | null;
  /** By the operator, who knows that it is genuine. */
  readonly confirmed: boolean;
}

export type OptOutState = "waiting" | "unconfirmed" | "confirmed" | "lifted" | "lapsed";

export interface OptOut {
  readonly optOutId: number;
  /** The domain, or the network as text. */
  readonly target: string;
  readonly kind: "site" | "network";
  readonly state: OptOutState;
  readonly source: "form" | "operator";
  /** What the site publishes in DNS to confirm it. */
  readonly token: string;
  readonly words: string;
  readonly replyTo: string | null;
  readonly requester: string | null;
  readonly createdAt: Date;
  readonly inForceAt: Date | null;
  readonly lapsesAt: Date | null;
  readonly confirmedAt: Date | null;
  readonly confirmedBy: "site" | "operator" | null;
  readonly endedAt: Date | null;
  readonly endingWords: string;
  /** Hosts of the frontier that it covers, and their pages in the index. */
  readonly hosts: number;
  readonly pages: number;
}

/** A lease that ended because its host opted out. */
export interface EndedLease {
  readonly crawlerId: CrawlerId;
  readonly host: string;
}

/** What one pass has brought in line with the opt-outs. */
export interface AppliedOptOuts {
  /** Marked just now; how many of each crawler's leases ended by it. */
  readonly hosts: number;
  readonly leases: readonly EndedLease[];
  /** Deleted from the index. */
  readonly pages: number;
}

export interface OptOutStore {
  /**
   * Records it, or gives the open one of the same site or network: an operator's word confirms that one. Running
   * coordinators are told.
   */
  request(request: OptOutRequest, now: Date): Promise<OptOut>;
  /** `open`: without what has ended. The latest first; at most `most`. */
  list(query: { readonly open: boolean; readonly most: number }): Promise<OptOut[]>;
  /** The open one of a number or a site; null when there is none. */
  find(target: OptOutTarget | number): Promise<OptOut | null>;
  /** Null when it is not open. */
  confirm(optOutId: number, by: "site" | "operator", now: Date): Promise<OptOut | null>;
  lift(optOutId: number, words: string, now: Date): Promise<OptOut | null>;
  /** Unconfirmed ones whose time is over end; how many did. */
  lapse(now: Date): Promise<number>;
  /** Sites to ask DNS about: unconfirmed ones, the longest not looked at first. Counts as looked at now. */
  toConfirm(limit: number, now: Date): Promise<{ optOutId: number; site: string; token: string }[]>;
  /** Sites that opted out since then and still are, and hosts of such networks, the latest first; at most `most`. */
  sitesSince(since: Date, most: number): Promise<string[]>;
  /** The one in force that covers this host or one of its addresses; null: none does. */
  covering(host: string | null, addresses: readonly string[]): Promise<OptOut | null>;
  /** Calls back whenever an opt-out was recorded, confirmed or ended (Postgres NOTIFY `nearcrawl_opt_outs`). */
  onChange(changed: () => void): Promise<{ stop(): Promise<void> }>;
}

/** Brings the frontier and the index in line with the opt-outs (idempotent; several coordinators may do it at once). */
export interface OptOutMarks {
  apply(now: Date): Promise<AppliedOptOuts>;
}

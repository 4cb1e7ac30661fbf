/**
 * Complaints: reports of trouble with our requests, by a site, a network or whoever runs one, with what we did to
 * that target when the report came. The record is made then, since fetches are forgotten and paces change.
 */
import type { OptOutTarget } from "./opt-out.ts";

/** Requests of so long before the report count. */
export const deedsHours = 24;
/** Reports by the form in a day; more are turned away with a word on how to write to us. */
export const mostReportsADay = 500;

export interface ComplaintReport {
  readonly target: OptOutTarget;
  /** As it was typed. */
  readonly targetText: string;
  readonly source: "form" | "operator";
  /** Who complains, and where to answer. */
  readonly reporter: string;
  readonly words: string;
  /** Where the form came from. */
  readonly requester: string | null;
}

/** What we did to a target in the 24 hours before a report. Lists are bounded. */
export interface Deeds {
  readonly since: string;
  /** Hosts of the frontier that belong to it; at most 2,000 are looked at. */
  readonly hosts: number;
  readonly requests: number;
  /** Most requests within one hour of the clock (UTC), all hosts and crawlers together. */
  readonly mostInAnHour: number;
  readonly bytes: number;
  readonly firstAt: string | null;
  readonly lastAt: string | null;
  /** Times that a crawler measured how far away it is (a HEAD request, a TCP connection or a ping each). */
  readonly measurements: number;
  /** Who asked, the busiest first. */
  readonly crawlers: readonly DeedsCrawler[];
  /** What it answered, the most frequent first. */
  readonly answers: readonly {
    readonly outcome: string;
    readonly status: number | null;
    readonly requests: number;
  }[];
  /** How its robots.txt was found last, by host. */
  readonly robots: Readonly<Record<string, number>>;
  /** The longest that any of its hosts asks for, and the longest back-off after a 429 or 503; null: none does. */
  readonly crawlDelayMs: number | null;
  readonly backOffMs: number | null;
  /** Crawlers that had work on it in hand. */
  readonly atWork: readonly string[];
}

export interface DeedsCrawler {
  readonly name: string;
  readonly address: string | null;
  readonly place: string | null;
  /** Whom to reach at the partner who hosts it, as it says itself. */
  readonly contact: string | null;
  readonly requests: number;
  readonly lastAt: string;
}

export interface Complaint {
  readonly complaintId: number;
  readonly target: string;
  readonly source: "form" | "operator";
  readonly reporter: string;
  readonly words: string;
  readonly requester: string | null;
  readonly createdAt: Date;
  readonly deeds: Deeds;
  readonly closedAt: Date | null;
  readonly closingWords: string | null;
}

export interface ComplaintStore {
  /** Records it with what we did; null: too many came by the form today. */
  add(report: ComplaintReport, now: Date): Promise<Complaint | null>;
  /** The latest first. */
  list(query: { readonly open: boolean; readonly most: number }): Promise<Complaint[]>;
  find(complaintId: number): Promise<Complaint | null>;
  /** Null when there is none, or it is closed already. */
  close(complaintId: number, words: string, now: Date): Promise<Complaint | null>;
  /** Of this host or one of its addresses, the latest first. */
  of(host: string | null, addresses: readonly string[], most: number): Promise<Complaint[]>;
}

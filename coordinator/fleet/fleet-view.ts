/** What people see of the fleet: every crawler in a line, one of them in full, and what happened to it. */
import type { blames } from "#protocol/result";
import type { Absence, IssuedKey } from "../crawlers/crawler.ts";
import type { MoveLine } from "../crawlers/move-store.ts";
import type { TrustReport } from "../trust/judge-crawler.ts";
import type { TrustLine } from "../trust/reads.ts";
import type { FleetEntry } from "./fleet-entry.ts";
import type { CrawlerWork } from "./fleet-list-reads.ts";

/** Whose fault it is that a fetch failed. */
export type Blame = (typeof blames)[number];

export interface FetchedOfLate {
  readonly at: Date;
  /** Null: the frontier knows it no more. */
  readonly url: string | null;
  readonly outcome: string;
  readonly blame: Blame | null;
  readonly status: number | null;
  readonly totalMs: number;
  readonly bodyBytes: number;
  readonly shippedBytes: number;
}

export interface CrawlerActivity {
  /** The latest first, of the latest 5,000 of the whole fleet. */
  readonly fetches: readonly FetchedOfLate[];
  /** In the latest 5,000 probe rounds of the whole fleet; `measured`: those that were answered. */
  readonly probes: { readonly asked: number; readonly measured: number; readonly rounds: number };
}

/** What became of a release that a crawler was offered. */
export interface OfferEntry {
  readonly version: string;
  readonly offeredAt: Date;
  /** Null: nothing was heard yet. */
  readonly state: string | null;
  readonly reason: string;
  readonly reportedAt: Date | null;
}

export interface FleetReads {
  /** By name; figures may be some seconds old. */
  /** Of a large fleet, as it was some seconds ago. */
  fleet(): Promise<readonly FleetEntry[]>;
  crawler(name: string, now: Date): Promise<FleetEntry | null>;
  activityOf(crawlerId: number): Promise<CrawlerActivity>;
  workOf(name: string): Promise<CrawlerWork>;
  absencesOf(name: string): Promise<readonly Absence[]>;
  keysOf(name: string): Promise<readonly IssuedKey[]>;
  logOf(name: string, page: number): Promise<CrawlerLogPage>;
  offersOf(crawlerId: number): Promise<readonly OfferEntry[]>;
  trustOf(name: string): Promise<TrustReport | null>;
  trust(): Promise<readonly TrustLine[]>;
  moves(name: string | null): Promise<readonly MoveLine[]>;
  failures(query: FailureQuery): Promise<readonly FailureLine[]>;
  /** Of the last hour, or of the last day; may be some seconds old. */
  failureShares(hours: 1 | 24): Promise<FailureShares>;
}

export interface FailureQuery {
  readonly since: Date;
  readonly blame?: Blame;
  readonly crawler?: string;
  readonly host?: string;
  readonly most: number;
}

export interface FailureLine {
  readonly at: Date;
  readonly crawler: string | null;
  readonly blame: Blame;
  readonly status: number | null;
  /** Null: the frontier knows it no more. */
  readonly url: string | null;
  readonly host: string | null;
  /** Null: it was fetched again since. */
  readonly words: string | null;
}

export interface FailureShares {
  /** From when on fetches are counted. */
  readonly since: Date;
  readonly fetches: number;
  readonly failures: Readonly<Record<Blame, number>>;
  readonly byCrawler: readonly {
    readonly crawler: string;
    readonly fetches: number;
    readonly failures: Readonly<Record<Blame, number>>;
  }[];
}

export type CrawlerLogKind =
  | "connected"
  | "away"
  | "incident"
  | "move"
  | "key"
  | "invitation"
  | "release"
  | "trust"
  | "change";

export interface CrawlerLogPage {
  readonly lines: readonly {
    readonly at: Date;
    readonly kind: CrawlerLogKind;
    readonly words: string;
    /** Who did it, or where it came from; null: nothing is known of that. */
    readonly by: string | null;
  }[];
  /** From 1. */
  readonly page: number;
  readonly more: boolean;
}

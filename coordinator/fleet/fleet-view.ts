/** What people see of the fleet: every crawler in a line, one of them in full, and what happened to it. */
import type { KeyScope } from "#protocol/identity";
import type { blames } from "#protocol/result";
import type { Absence, Budget, IssuedKey } from "../crawlers/crawler.ts";
import type { MoveLine } from "../crawlers/move-store.ts";
import type { HeirLine } from "../delegation/successor-reads.ts";
import type { WorkPace } from "../frontier/pace.ts";
import type { TrustReport, TrustStanding } from "../trust/judge-crawler.ts";
import type { TrustLine } from "../trust/reads.ts";

/** Whose fault it is that a fetch failed. */
export type Blame = (typeof blames)[number];

export interface FleetEntry {
  readonly crawlerId: number;
  readonly name: string;
  readonly place: string | null;
  /** ISO 3166 code; null: not told. */
  readonly country: string | null;
  readonly state: "online" | "offline" | "draining";
  readonly offlineReason: string | null;
  readonly lastSeenAt: Date | null;
  /** Of its last session, whether it is open or not. */
  readonly connectedAt: Date | null;
  readonly revoked: boolean;
  readonly softwareVersion: string | null;
  readonly subnets: number;
  /** To the subnets that it has, as measured; null: none was. */
  readonly meanRttMs: number | null;
  readonly openLeases: number;
  /** Fetches since midnight (UTC), and their bytes, beside the limits of a day. */
  readonly pagesToday: number;
  readonly bytesToday: number;
  /** The bodies of these fetches, decoded, and what their results took on the wire to here, compressed. */
  readonly bodyBytesToday: number;
  readonly shippedBytesToday: number;
  readonly pagesPerDay: number;
  readonly bytesPerDay: number;
  /** What operators give it at most, and what its partner allows, as it said last. */
  readonly granted: Budget;
  readonly partnerAllows: Budget;
  /** Null: it is not draining. */
  readonly draining: Draining | null;
  /** Since when it waits to be given what is nearest to it; null: it has it. */
  readonly joiningSince: Date | null;
  /** Whether its pages and probe reports are believed. */
  readonly trust: TrustStanding;
  /** In the last seven days. */
  readonly incidents: number;
  /** What its dock runs, and its partner's policy on releases, in words; null: no dock runs it. */
  readonly release: {
    readonly version: string;
    readonly dockVersion: string;
    readonly policy: string;
  } | null;
  readonly identity: FleetIdentity;
}

export interface Draining {
  readonly since: Date;
  /** `trust`: it is not trusted. */
  readonly askedBy: "operator" | "crawler" | "trust" | "partner";
  /** That it had when the draining began. */
  readonly subnets: number;
}

export interface FleetIdentity {
  /** Ed25519, 32 bytes in base64url; null: it has none, and its key is all that it shows. */
  readonly publicKey: string | null;
  /** Of the newest key that it has; null: none is good. */
  readonly keySince: Date | null;
  readonly scopes: readonly KeyScope[];
  /** Where its last connection came from, and where those before it, when that was elsewhere. */
  readonly seenAddress: string | null;
  readonly addressBefore: string | null;
  readonly addressChangedAt: Date | null;
  /** The coordinator's own record of why it was away the last time; of now there is `offlineReason`. */
  readonly lastAway: { readonly since: Date; readonly reason: string } | null;
  /** How its process before this one ended, in its own words. */
  readonly lastEnd: { readonly at: Date; readonly reason: string } | null;
  /** When the folder of this identity was last seen twice, within the last week. */
  readonly copiedAt: Date | null;
  /** Whom to reach at its partner, as the crawler says; null: not told. */
  readonly contact: string | null;
  /** False: its partner wants it in no list that others see. */
  readonly isListed: boolean;
}

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

/** What it may have by its domain sets, and at what pace it was told to work. */
export interface CrawlerWork {
  /** As text, each one set; without any, every host. A host must be in one of both parties'. */
  readonly domainSets: { readonly operator: readonly string[]; readonly partner: readonly string[] };
  /** Null: nothing in this session. */
  readonly pace: {
    readonly pace: WorkPace;
    /** Due or in hand; of many, no more than it took to tell. */
    readonly dueSlices: number;
    readonly since: Date;
  } | null;
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
  fleet(now: Date): Promise<readonly FleetEntry[]>;
  crawler(name: string, now: Date): Promise<FleetEntry | null>;
  activityOf(crawlerId: number): Promise<CrawlerActivity>;
  workOf(name: string): Promise<CrawlerWork>;
  absencesOf(name: string): Promise<readonly Absence[]>;
  keysOf(name: string): Promise<readonly IssuedKey[]>;
  logOf(name: string, page: number): Promise<CrawlerLogPage>;
  offersOf(crawlerId: number): Promise<readonly OfferEntry[]>;
  heirsOf(name: string): Promise<readonly HeirLine[]>;
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

/** What the flows know of comparisons as they are stored: pages that are fetched again, and what came of it. */

import type { CrawlerId, HostHash, LeaseId } from "#core/ids";
import type { UrlKey } from "#core/url-key";
import type { Lease } from "#protocol/lease";
import type { ProbeMethod } from "#protocol/messages";
import type { Opinion, Verdict } from "./arbitration.ts";
import type { CheckOutcome, HostRecord, UntoldChecks } from "./evidence.ts";
import type { PageSketch, SampledCrawler } from "./page-sketch.ts";
import type { ProbedSubnet } from "./probe-plausibility.ts";

/** What a crawler said of the page, and when it fetched it. */
export interface StoredOpinion extends Opinion {
  readonly at: string;
}

/** A page that was fetched just now, and who may fetch it again. */
export interface NewCheck {
  readonly key: UrlKey;
  readonly cause: "sample" | "follow-up";
  /** Null: as the index holds the page. */
  readonly sketch: PageSketch | null;
  readonly fetchedAt: Date;
  readonly wanted: readonly CrawlerId[];
  /** Until when the next one may fetch it. */
  readonly nextBy: Date;
}

export interface OpenCheck {
  readonly checkId: string;
  readonly key: UrlKey;
  readonly crawlerId: CrawlerId;
  readonly cause: NewCheck["cause"];
  /** The new one included. */
  readonly opinions: readonly StoredOpinion[];
  readonly host: HostRecord;
  /** What one of the opinions takes for the site's error page is what another page of the host reads in the index. */
  readonly isErrorPage: boolean;
  /** The host's first address and subnet, as the frontier has them. */
  readonly target: CheckTarget;
}

export interface CheckTarget {
  readonly address: string;
  readonly subnetId: number;
}

/** What becomes of a check: another opinion is wanted, or it is decided. */
export type CheckStep =
  | { readonly type: "ask"; readonly wanted: readonly CrawlerId[]; readonly nextBy: Date }
  | { readonly type: "verdict"; readonly verdict: Verdict };

/** A result that came under the lease of a check. */
export interface ArrivedOpinion {
  readonly crawlerId: CrawlerId;
  readonly leaseId: LeaseId;
  readonly key: UrlKey;
  readonly sketch: PageSketch;
  readonly fetchedAt: Date;
  /** Politeness: the host is left alone until then. */
  readonly hostNotBefore: Date;
}

export interface CheckLeaseRequest {
  readonly crawlerId: CrawlerId;
  /** So many hosts at most. */
  readonly hosts: number;
  readonly urlsPerHost: number;
  readonly leaseSeconds: number;
  /** An address rests so long between two crawlers. */
  readonly addressRestSeconds?: number;
  readonly now: Date;
}

/** What the evidence is made of: comparisons of late, oldest first, and the hosts that say nothing. */
export interface TrustHistory {
  readonly outcomes: readonly (CheckOutcome & { readonly at: Date })[];
  readonly silent: ReadonlySet<HostHash>;
  readonly distrusted: ReadonlySet<CrawlerId>;
}

export interface TrustStore {
  /** This version has run here as a coordinator: crawlers of it are ours. */
  ranAs(version: string): Promise<void>;
  /** False: what the crawler says that it runs is nothing that we ever offered to it. */
  isOffered(crawlerId: CrawlerId, runs: StatedSoftware): Promise<boolean>;
  /** Counts pages that a crawler fetched under leases; what its sampling depends on, before them. */
  countPages(crawlerId: CrawlerId, pages: number): Promise<SampledCrawler>;
  /** Hosts of these on which a comparison would say nothing. */
  silentHosts(hosts: readonly HostHash[]): Promise<ReadonlySet<HostHash>>;
  /** First address and subnet of these hosts. */
  targets(hosts: readonly HostHash[]): Promise<ReadonlyMap<HostHash, CheckTarget>>;
  /** Opens those whose page this crawler has indeed just fetched and that are not open already; gives their number. */
  open(crawlerId: CrawlerId, checks: readonly NewCheck[]): Promise<number>;
  /** Other pages of the host that this crawler fetched last, within the time. */
  recentPages(
    of: { readonly crawlerId: CrawlerId; readonly hostHash: HostHash; readonly since: Date },
    most: number,
  ): Promise<{ readonly key: UrlKey; readonly fetchedAt: Date }[]>;
  /** Leases on what this crawler is wanted for, as any other; hosts that are leased, rest or share a busy address wait. */
  lease(request: CheckLeaseRequest): Promise<Lease[]>;
  /** Of these leases those that are of checks. */
  leasesOfChecks(leaseIds: readonly LeaseId[]): Promise<ReadonlySet<LeaseId>>;
  /** One transaction; null: it was not under an open lease of this crawler, or arrived before. */
  takeOpinion(
    opinion: ArrivedOpinion,
    step: (check: OpenCheck) => CheckStep,
    now: Date,
  ): Promise<{ readonly check: OpenCheck; readonly step: CheckStep } | null>;
  /**
   * Who was asked once more, had the lease and was connected all the while, but shipped nothing in time, has given an
   * opinion that says nothing; each in one transaction. To be called before `dropStale`.
   */
  takeSilences(
    step: (check: OpenCheck) => CheckStep,
    now: Date,
  ): Promise<{ readonly check: OpenCheck; readonly step: CheckStep }[]>;
  /** Those that nobody fetched in time; gives their number. Decided ones are forgotten from `before` on. */
  dropStale(now: Date, before: Date): Promise<number>;
  history(since: Date, now: Date): Promise<TrustHistory>;
  /** Its comparisons that came to nothing, and those that came to something, since then or since it was restored. */
  untold(crawlerId: CrawlerId, since: Date): Promise<UntoldChecks>;
  /** So many of its next pages are compared more often. */
  watch(crawlerId: CrawlerId, pages: number): Promise<void>;
  /** The score as it is now; with it the crawler's pages are watched more closely for so many. */
  setScore(crawlerId: CrawlerId, score: number, watchedPages: number): Promise<void>;
  /** Not trusted from now on; false when it was so already. Running coordinators are told. */
  distrust(distrust: Distrust): Promise<{ readonly isNew: boolean; readonly dueAgain: number }>;
  /** What crawlers shipped after they were distrusted is fetched again, at most so many pages of each; gives their number. */
  fetchLeftovers(now: Date, mostPages: number): Promise<number>;
  /** What crawlers whose reports are believed measured of distinct subnets since then, the latest round of each; by method. */
  probedSubnets(since: Date): Promise<ReadonlyMap<ProbeMethod, readonly ProbedSubnet[]>>;
  /** Its probe reports are not believed from now on; false when it was so already. Running coordinators are told. */
  doubtProbes(doubt: {
    readonly crawlerId: CrawlerId;
    readonly words: string;
    readonly now: Date;
  }): Promise<boolean>;
}

/** As a hello states it. */
export interface StatedSoftware {
  readonly softwareVersion: string;
  /** Where a dock runs it. */
  readonly release?: { readonly version: string; readonly digest: string } | undefined;
}

export interface Distrust {
  readonly crawlerId: CrawlerId;
  readonly words: string;
  readonly now: Date;
  /** Its subnets are handed over, and what it fetched since then is fetched again, the latest first, at most so many. */
  readonly drain: { readonly pagesSince: Date; readonly mostPages: number } | null;
}

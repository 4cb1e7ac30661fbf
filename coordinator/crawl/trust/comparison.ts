/** What the flows know of comparisons as they are stored: pages that are fetched again, and what came of it. */

import type { CrawlerId, HostHash, LeaseId } from "#core/ids";
import type { UrlKey } from "#core/url-key";
import type { Opinion, Verdict } from "./arbitration.ts";
import type { CheckOutcome, HostRecord } from "./evidence.ts";
import type { PageSketch } from "./page-sketch.ts";

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

export type NextOfCheck = (check: OpenCheck) => CheckStep;

/** A check to which an opinion was added, and what follows from it. */
export interface TakenCheck {
  readonly check: OpenCheck;
  readonly step: CheckStep;
}

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

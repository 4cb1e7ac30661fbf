/** Types of stored comparisons: pages fetched again, and the results. */

import type { CrawlerId, HostHash, LeaseId } from "#core/ids";
import type { UrlKey } from "#core/url-key";
import type { Opinion, Verdict } from "./arbitration.ts";
import type { CheckOutcome, HostRecord } from "./evidence.ts";
import type { PageSketch } from "./page-sketch.ts";

/** A crawler's report of the page, with its time. */
export interface StoredOpinion extends Opinion {
  readonly at: string;
}

/** A page just fetched, and who may fetch it again. */
export interface NewCheck {
  readonly key: UrlKey;
  readonly cause: "sample" | "follow-up";
  /** Null when the page is as in the index. */
  readonly sketch: PageSketch | null;
  readonly fetchedAt: Date;
  readonly wanted: readonly CrawlerId[];
  /** Deadline of the next fetch. */
  readonly nextBy: Date;
}

export interface OpenCheck {
  readonly checkId: string;
  readonly key: UrlKey;
  readonly crawlerId: CrawlerId;
  readonly cause: NewCheck["cause"];
  /** Including the new one. */
  readonly opinions: readonly StoredOpinion[];
  readonly host: HostRecord;
  /** What an opinion takes for the site's error page matches another page of the host in the index. */
  readonly isErrorPage: boolean;
  /** The host's first address and subnet. */
  readonly target: CheckTarget;
}

export interface CheckTarget {
  readonly address: string;
  readonly subnetId: number;
}

/** The next step of a check: another opinion, or a verdict. */
export type CheckStep =
  | { readonly type: "ask"; readonly wanted: readonly CrawlerId[]; readonly nextBy: Date }
  | { readonly type: "verdict"; readonly verdict: Verdict };

export type NextOfCheck = (check: OpenCheck) => CheckStep;

/** A check with a new opinion and its consequence. */
export interface TakenCheck {
  readonly check: OpenCheck;
  readonly step: CheckStep;
}

/** A result under a check's lease. */
export interface ArrivedOpinion {
  readonly crawlerId: CrawlerId;
  readonly leaseId: LeaseId;
  readonly key: UrlKey;
  readonly sketch: PageSketch;
  readonly fetchedAt: Date;
  /** The host is left alone until then. */
  readonly hostNotBefore: Date;
}

export interface CheckLeaseRequest {
  readonly crawlerId: CrawlerId;
  /** Maximum number of hosts. */
  readonly hosts: number;
  readonly urlsPerHost: number;
  readonly leaseSeconds: number;
  /** Rest of an address between two crawlers. */
  readonly addressRestSeconds?: number;
  readonly now: Date;
}

/** Recent comparisons, oldest first, and hosts whose differences prove nothing. */
export interface TrustHistory {
  readonly outcomes: readonly (CheckOutcome & { readonly at: Date })[];
  readonly silent: ReadonlySet<HostHash>;
  readonly distrusted: ReadonlySet<CrawlerId>;
}

/** As stated in a hello. */
export interface StatedSoftware {
  readonly softwareVersion: string;
  /** Set when a dock runs it. */
  readonly release?: { readonly version: string; readonly digest: string } | undefined;
}

export interface Distrust {
  readonly crawlerId: CrawlerId;
  readonly words: string;
  readonly now: Date;
  /** Drains the crawler and fetches its pages since then again, latest first, up to a limit. */
  readonly drain: { readonly pagesSince: Date; readonly mostPages: number } | null;
}

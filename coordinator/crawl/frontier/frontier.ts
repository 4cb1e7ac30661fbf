/** What the frontier keeps: URLs as they are admitted, the scope of the crawl, and how far it is. */
import type { CrawlerId, LeaseId, SubnetId } from "#core/ids";
import type { Partition } from "../../place/domain-sets/partition.ts";
import type { FrontierOrder } from "./order/strategies.ts";

/** Outcome (`last_outcome`) of a URL that is refused because it opted out; its reason names the opt-out. */
export const optedOutUrl = "opted-out";

/* ------------------------------------------------------------------ frontier */

/** Where and how far the crawl goes. */
export interface CrawlScope {
  /** Pages per host, at most; how many of them is for the host to earn (budgets.ts). */
  readonly pagesPerHost: number;
  readonly maxDepth: number;
  /** False: links to hosts that the frontier does not hold yet are recorded as links but not admitted. */
  readonly admitNewHosts: boolean;
  /** True: links with rel=nofollow are followed like others. Absent: they are not. */
  readonly followNofollow?: boolean;
  /** Hosts that nobody knew and that one crawler's results may bring in, a day; absent: any number. */
  readonly newHostsPerCrawlerAndDay?: number;
  /** The same of one registrable domain, which begins with fewer (frontier/budgets.ts); absent: any number. */
  readonly newHostsPerDomainAndDay?: number;
  /** The same of all that the pages of one registrable domain link to; absent: any number. */
  readonly newHostsPerLinkingSiteAndDay?: number;
}

export type Resolution =
  | {
      readonly type: "resolved";
      readonly host: string;
      readonly addresses: readonly string[];
      readonly subnetId: SubnetId | null;
      readonly ttlSeconds: number;
    }
  | {
      readonly type: "refused";
      readonly host: string;
      readonly addresses: readonly string[];
      readonly reason: string;
    }
  | { readonly type: "failed"; readonly host: string; readonly reason: string };

/** A lease that its crawler gives back before all of its URLs have results. */
export interface ReturnedLease {
  readonly leaseId: LeaseId;
  readonly crawlerId: CrawlerId;
  /** The host must be left alone for so long; without it, as long as its results have said. */
  readonly hostWaitMs?: number;
}

export interface LeaseRequest {
  readonly crawlerId: CrawlerId;
  /** The coordinator's own domain sets, beside those that are stored of the crawler; left out: every host. */
  readonly partition?: Partition;
  readonly hosts: number;
  readonly urlsPerHost: number;
  readonly leaseSeconds: number;
  /** An address is left alone for so long before another crawler than the last one asks it; 10 when left out. */
  readonly addressRestSeconds?: number;
  /** Which due URLs of a host go first; the longest due when left out. */
  readonly order?: FrontierOrder;
  /**
   * The crawler's subnets that are known to have something due, the longest due first: hosts are sought there alone, and in
   * its finer delegations. Left out: wherever the crawler's subnets have something.
   */
  readonly dueSubnets?: readonly SubnetId[];
  readonly now: Date;
}

export interface FrontierProgress {
  readonly hosts: number;
  readonly hostsUnresolved: number;
  readonly hostsRefused: number;
  readonly hostsFetched: number;
  /** Hosts whose subnet has a delegation. */
  readonly hostsDelegated: number;
  readonly urls: number;
  /** Never fetched yet and still to be: due or leased. */
  readonly urlsPending: number;
  /** URLs of other hosts that results named or linked to, and that wait in the outbox. */
  readonly linksWaiting: number;
  readonly subnetsWaiting: number;
  readonly subnetsDelegated: number;
  readonly pages: number;
  readonly probes: number;
  readonly rounds: number;
}

/** Types of the frontier: admitted URLs, the scope of the crawl, and its progress. */
import type { CrawlerId, LeaseId, SubnetId } from "#core/ids";
import type { Partition } from "../../place/domain-sets/partition.ts";
import type { FrontierOrder } from "./order/strategies.ts";

/** `last_outcome` of a URL refused by an opt-out. Its reason names the opt-out. */
export const optedOutUrl = "opted-out";

export interface CrawlScope {
  /** Maximum pages per host. The limit in force grows with the host's good pages (budgets.ts). */
  readonly pagesPerHost: number;
  readonly maxDepth: number;
  /** If false, links to unknown hosts are recorded but not admitted. */
  readonly admitNewHosts: boolean;
  readonly followNofollow?: boolean;
  /** Daily limit of unknown hosts named by one crawler's results. Unlimited if absent. */
  readonly newHostsPerCrawlerAndDay?: number;
  /** Daily limit per registrable domain, which begins lower (frontier/budgets.ts). Unlimited if absent. */
  readonly newHostsPerDomainAndDay?: number;
  /** Daily limit for all links from one registrable domain's pages. Unlimited if absent. */
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

/** A lease that its crawler returns before all URLs have results. */
export interface ReturnedLease {
  readonly leaseId: LeaseId;
  readonly crawlerId: CrawlerId;
  /** How long the host must be left alone. By default, as long as its results said. */
  readonly hostWaitMs?: number;
}

export interface LeaseRequest {
  readonly crawlerId: CrawlerId;
  /** The coordinator's own domain sets, in addition to the crawler's. If omitted, every host is allowed. */
  readonly partition?: Partition;
  readonly hosts: number;
  readonly urlsPerHost: number;
  readonly leaseSeconds: number;
  /** Seconds before another crawler may use an address. Default: 10. */
  readonly addressRestSeconds?: number;
  readonly order?: FrontierOrder;
  readonly now: Date;
}

export interface FrontierProgress {
  readonly hosts: number;
  readonly hostsUnresolved: number;
  readonly hostsRefused: number;
  readonly hostsFetched: number;
  readonly hostsDelegated: number;
  readonly urls: number;
  /** URLs that were never fetched and are due or leased. */
  readonly urlsPending: number;
  readonly linksWaiting: number;
  readonly subnetsWaiting: number;
  readonly subnetsDelegated: number;
  readonly pages: number;
  readonly probes: number;
  readonly rounds: number;
}

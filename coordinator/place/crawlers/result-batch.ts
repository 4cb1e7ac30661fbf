/** A batch of results as a crawler sent it, shared by all rooms. */
import type { CrawlerId, HostHash, LeaseId, SubnetId } from "#core/ids";
import type { FetchResult } from "#protocol/result";

export interface WireResult {
  readonly sequence: number;
  readonly leaseId: LeaseId;
  readonly result: FetchResult;
  readonly wireBytes: number;
}

export interface ResultBatch {
  readonly crawlerId: CrawlerId;
  readonly spoolId: string;
  readonly results: readonly WireResult[];
}

/** A stored fetch with its times. */
export interface RecentFetch {
  readonly hostHash: HostHash;
  readonly host: string;
  readonly crawlerId: CrawlerId;
  readonly subnetId: SubnetId | null;
  readonly fetchedAt: Date;
  readonly firstByteMs: number | null;
  readonly connectMs: number | null;
  readonly totalMs: number;
}

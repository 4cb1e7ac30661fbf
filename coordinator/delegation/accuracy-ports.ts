/** What is kept of samples of how near the delegations are (sample-accuracy.ts). */

import type { CrawlerId, SubnetId } from "#core/ids";
import type { ProbeMethod } from "#protocol/messages";
import type { AccuracyCounts } from "./accuracy-estimate.ts";

/** One subnet, measured by every crawler at about the same time, by one method. */
export interface AccuracySample {
  readonly subnetId: SubnetId;
  readonly targetAddress: string;
  readonly targetHost: string;
  readonly method: ProbeMethod;
  /** Who has the subnet, and what it measured; null: it got no answer. */
  readonly ownerId: CrawlerId;
  readonly ownerRttMs: number | null;
  /** Null: nobody got an answer. */
  readonly bestId: CrawlerId | null;
  readonly bestRttMs: number | null;
  readonly asked: number;
  readonly answered: number;
  readonly sampledAt: Date;
}

/** A sample as people read it. */
export interface AccuracySampleEntry
  extends Omit<AccuracySample, "subnetId" | "ownerId" | "bestId" | "sampledAt"> {
  readonly range: string;
  readonly name: string;
  readonly country: string | null;
  readonly owner: string;
  readonly best: string | null;
  readonly sampledAt: string;
}

export interface AccuracyStore {
  add(sample: AccuracySample): Promise<void>;
  /** Whether this address was part of a sample after then. */
  wasSampled(address: string, after: Date): Promise<boolean>;
  /** Null: there is no sample. */
  lastSampledAt(): Promise<Date | null>;
  counts(after: Date): Promise<AccuracyCounts>;
  /** The latest first; `farOnly`: those whose owner was not nearly the best. */
  list(query: {
    readonly after: Date;
    readonly most: number;
    readonly farOnly: boolean;
  }): Promise<AccuracySampleEntry[]>;
  /** Removes what is older; returns how many. */
  forget(before: Date): Promise<number>;
}

/** What the flows know of the delegations as they are stored: who crawls which subnet, and the rounds that decided it. */

import type { RoundCause } from "#core/delegation-cause";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { ProbeMethod, ProbeOutcome } from "#protocol/messages";
import type { HostToHold } from "../domain-sets/domain-set.ts";

export interface Delegation {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  /** Somebody measured that it is near: false where nobody answered, and for anycast, which says nothing of it. */
  readonly measured: boolean;
  readonly rttMs: number | null;
  readonly runnerUpId: CrawlerId | null;
  readonly runnerUpRttMs: number | null;
}

export interface FinishedRound {
  readonly subnetId: SubnetId;
  readonly cause: RoundCause;
  readonly policy: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly targetUrl: string;
  readonly targetAddress: string;
  readonly startedAt: Date;
  readonly decidedAt: Date;
  readonly probes: readonly RoundProbe[];
  /** Of the probes, those by this method were compared. */
  readonly method?: ProbeMethod;
  /** Null when no crawler could take it: the subnet waits and is tried again. */
  readonly crawlerId: CrawlerId | null;
  readonly measured: boolean;
  readonly rttMs: number | null;
  readonly runnerUpId: CrawlerId | null;
  readonly runnerUpRttMs: number | null;
  /** A `{type, …}` value; core/delegation puts it into words. */
  readonly reason: Readonly<Record<string, unknown>>;
  /** The range answers from many places at once, and was given away by load. */
  readonly anycast?: boolean;
  /** On a cloud's list, and found not to be anycast there: what need not be found out again. */
  readonly notAnycast?: string;
}

export interface RoundProbe {
  readonly crawlerId: CrawlerId;
  readonly outcome: ProbeOutcome;
  /** `get`: the connect time of the crawl's own fetch, which cost no probe. */
  readonly how?: "probe" | "get";
}

export interface DelegationMove {
  readonly subnetId: SubnetId;
  readonly from: CrawlerId;
  readonly to: CrawlerId;
  readonly cause: "overload" | "home" | "crawler-left" | "drained" | "joined" | "operator";
  readonly reason: string;
  /** What is known of the new crawler's RTT; null when predicted only. */
  readonly rttMs: number | null;
}

/** A subnet with URLs waiting and no delegation of its own. */
export interface WaitingSubnet {
  readonly subnetId: SubnetId;
  /** A URL in it, and the address it resolved to: what gets probed. */
  readonly url: string;
  readonly host: string;
  readonly address: string;
  /** URLs that wait in the subnet for their first fetch, as far as they were counted. */
  readonly dueUrls?: number;
  /**
   * Hosts of it, up to a bound, those first that somebody's domain sets hold: whoever holds none of them is no candidate.
   * Left out: nobody has domain sets.
   */
  readonly hosts?: readonly HostToHold[];
}

export interface CrawlerLoad {
  readonly crawlerId: CrawlerId;
  readonly subnets: number;
  /** Of those, how many it has only to relieve another. */
  readonly displaced: number;
  readonly pagesPerDay: number;
  readonly bytesPerDay: number;
}

export interface SubnetLoad {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  readonly pagesPerDay: number;
  readonly bytesPerDay: number;
  readonly rttMs: number | null;
}

/** A delegation by a probe round, and when it was decided (to the ms). */
export interface AgedDelegation {
  readonly subnetId: SubnetId;
  readonly decidedAt: Date;
  /** Fetched in it in the last week, by day. */
  readonly pagesPerDay: number;
}

/** What a finished round measured, by the one method that it compared. */
export interface MeasuredRound {
  readonly subnetId: SubnetId;
  readonly method: ProbeMethod;
  /** In the order in which they were asked. */
  readonly probes: readonly { readonly crawlerId: CrawlerId; readonly rttMs: number }[];
}

export interface UnmeasuredAsked {
  readonly limit: number;
  /** Those whose next try is due by then; null: those for which nobody has been asked, which can be compared at any time. */
  readonly dueBy: Date | null;
  readonly except: readonly SubnetId[];
  readonly recrawlDays: number;
}

export interface UnmeasuredSubnet {
  readonly subnetId: SubnetId;
  readonly pagesPerDay: number;
}

// What is kept of samples of how near the delegations are (accuracy.ts).

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

/** So close to the best is as good as the best: what the delegation policies are measured by (evaluation). */
export const nearlyBestMs = 5;

export interface AccuracyCounts {
  /** With an answer by anybody. */
  readonly samples: number;
  /** Of those, with an owner within `nearlyBestMs` of the best. */
  readonly nearlyBest: number;
}

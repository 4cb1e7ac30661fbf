/** The delegations as stored: who crawls which subnet, and the rounds that decided it. */

import type { RoundCause } from "#core/explanation";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { ProbeMethod, ProbeOutcome } from "#protocol/messages";
import type { DayLimits } from "../crawlers/crawler.ts";
import type { HostToHold } from "../domain-sets/domain-set.ts";

export interface Delegation {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  /** Whether it was measured to be near. False if no crawler answered, and for anycast, where times show no distance. */
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
  readonly method?: ProbeMethod;
  /** Null if no crawler could take it, so that the subnet waits for another try. */
  readonly crawlerId: CrawlerId | null;
  readonly measured: boolean;
  readonly rttMs: number | null;
  readonly runnerUpId: CrawlerId | null;
  readonly runnerUpRttMs: number | null;
  /** A `{type, …}` value. delegation/policies/reason puts it into words. */
  readonly reason: Readonly<Record<string, unknown>>;
  /** True for a range that answers from many places and was assigned by load. */
  readonly anycast?: boolean;
  /** The listed place that was found not to be anycast and needs no further check. */
  readonly notAnycast?: string;
}

export interface RoundProbe {
  readonly crawlerId: CrawlerId;
  readonly outcome: ProbeOutcome;
  /** `get` is the connect time of the crawl's own fetch, which costs no probe. */
  readonly how?: "probe" | "get";
}

export interface DelegationMove {
  readonly subnetId: SubnetId;
  readonly from: CrawlerId;
  readonly to: CrawlerId;
  readonly cause: "overload" | "home" | "crawler-left" | "drained" | "joined" | "operator";
  readonly reason: string;
  /** The new crawler's RTT. Null if it is only predicted. */
  readonly rttMs: number | null;
}

export interface WaitingSubnet {
  readonly subnetId: SubnetId;
  /** One of its URLs, whose resolved address is probed. */
  readonly url: string;
  readonly host: string;
  readonly address: string;
  /** Number of URLs that wait for their first fetch, counted up to a limit. */
  readonly dueUrls?: number;
  /**
   * Some of its hosts, starting with those that some crawler's domain sets hold. Only crawlers that hold one are candidates.
   * Omitted if no crawler has domain sets.
   */
  readonly hosts?: readonly HostToHold[];
}

export interface CrawlerLoad extends DayLimits {
  readonly crawlerId: CrawlerId;
  readonly subnets: number;
  /** How many of those it holds only to relieve another crawler. */
  readonly displaced: number;
}

export interface SubnetLoad extends DayLimits, Pick<Delegation, "subnetId" | "crawlerId" | "rttMs"> {}

/** A delegation by a probe round, with its time (to the ms). */
export interface AgedDelegation extends UnmeasuredSubnet {
  readonly decidedAt: Date;
}

/** A finished round's measurements, by the method that it compared. */
export interface MeasuredRound {
  readonly subnetId: SubnetId;
  readonly method: ProbeMethod;
  /** Probes in the order asked. */
  readonly probes: readonly { readonly crawlerId: CrawlerId; readonly rttMs: number }[];
}

export interface UnmeasuredAsked {
  readonly limit: number;
  /** Selects the subnets due by `dueBy`. Null selects those for which no crawler has been asked yet. */
  readonly dueBy: Date | null;
  readonly except: readonly SubnetId[];
  readonly recrawlDays: number;
}

export type UnmeasuredSubnet = Pick<SubnetLoad, "subnetId" | "pagesPerDay">;

/** One subnet, measured by every crawler at about the same time by one method, to show how near its owner is (accuracy.ts). */
export interface AccuracySample {
  readonly subnetId: SubnetId;
  readonly targetAddress: string;
  readonly targetHost: string;
  readonly method: ProbeMethod;
  /** The owner and its measurement. The RTT is null if it did not answer. */
  readonly ownerId: CrawlerId;
  readonly ownerRttMs: number | null;
  /** Null if no crawler answered. */
  readonly bestId: CrawlerId | null;
  readonly bestRttMs: number | null;
  readonly asked: number;
  readonly answered: number;
  readonly sampledAt: Date;
}

export interface AccuracySampleEntry
  extends Omit<AccuracySample, "subnetId" | "ownerId" | "bestId" | "sampledAt"> {
  readonly range: string;
  readonly name: string;
  readonly country: string | null;
  readonly owner: string;
  readonly best: string | null;
  readonly sampledAt: string;
}

/** An RTT this close to the best counts as the best. The evaluation of policies uses the same limit. */
export const nearlyBestMs = 5;

export interface AccuracyCounts {
  /** Number of samples that at least one crawler answered. */
  readonly samples: number;
  /** How many of `samples` have an owner within `nearlyBestMs` of the best. */
  readonly nearlyBest: number;
}

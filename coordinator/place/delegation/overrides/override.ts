/**
 * A delegation finer than a subnet: of a host whose name resolves by place, or of a part of a leaf that measures apart. A
 * host belongs to the crawler of its finer delegation if it has one, otherwise to its subnet's.
 */
import type { CrawlerId, HostHash, RoundId, SubnetId } from "#core/ids";
import type { FinishedRound } from "../delegation.ts";

declare const brand: unique symbol;
export type FinerId = number & { readonly [brand]: "FinerId" };

/** Maximum number in total. When it is reached, hosts stay with their subnets. */
export const maxFinerDelegations = 20_000;

/** A round for one host or an address of a part. It changes nothing about the surrounding subnet. */
export type FinerRound = Omit<FinishedRound, "subnetId"> & { readonly withinSubnetId: SubnetId };

/** A part's addresses are stored as text. */
type FinerPlace =
  | { readonly type: "host"; readonly hostHash: HostHash; readonly host: string }
  | { readonly type: "part"; readonly first: string; readonly last: string };

export interface FinerDelegation extends FinerDecision {
  readonly finerId: FinerId;
  readonly place: FinerPlace;
  /** The split leaf or, for a host, the subnet in which it was found. */
  readonly subnetId: SubnetId;
  readonly subnetCrawlerId: CrawlerId | null;
  readonly target: ProbedTarget;
}

export interface ProbedTarget {
  readonly url: string;
  readonly host: string;
  readonly address: string;
}

export interface FinerDecision {
  readonly roundId: RoundId;
  readonly crawlerId: CrawlerId;
  readonly rttMs: number | null;
  readonly runnerUpId: CrawlerId | null;
  readonly runnerUpRttMs: number | null;
  /** What the subnet's own crawler measured in the same round. */
  readonly subnetRttMs: number | null;
}

export interface PlannedPart extends FinerDecision {
  readonly first: string;
  readonly last: string;
  /** Words for the history. */
  readonly reason: string;
}

/** A vantage point's answer. Null is the coordinator. */
export interface SeenAnswer {
  readonly crawlerId: CrawlerId | null;
  readonly addresses: readonly string[];
}

export interface DelegatedHost extends FinerDecision {
  readonly hostHash: HostHash;
  readonly subnetId: SubnetId;
  readonly seen: readonly SeenAnswer[];
  /** Words for the history. */
  readonly reason: string;
}

export interface HostPlace {
  readonly hostHash: HostHash;
  readonly host: string;
  readonly url: string;
  /** Addresses that the coordinator resolved, in order. */
  readonly addresses: readonly string[];
  readonly subnetId: SubnetId;
  readonly byItself: boolean;
}

export interface ReviewTimes {
  readonly now: Date;
  readonly reviewAt: Date;
}

const reviewEveryMs = 6 * 3_600_000;

export function reviewTimes(now: Date): ReviewTimes {
  return { now, reviewAt: new Date(now.getTime() + reviewEveryMs) };
}

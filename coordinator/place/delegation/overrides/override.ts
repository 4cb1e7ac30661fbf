/**
 * Delegations finer than a subnet: one host whose name resolves differently by place, or a part of a leaf that
 * measures apart. One rule for all: a host is crawled by the crawler of its
 * finer delegation, if it has one, else by its subnet's.
 */
import type { CrawlerId, HostHash, RoundId, SubnetId } from "#core/ids";
import type { FinishedRound } from "../delegation.ts";

declare const brand: unique symbol;
export type FinerId = number & { readonly [brand]: "FinerId" };

/** Most finer delegations in all; beyond that, hosts go with their subnets. */
export const maxFinerDelegations = 20_000;

/** A round for one host or for an address of a part; what is known of the subnet around it stays as it is. */
export type FinerRound = Omit<FinishedRound, "subnetId"> & { readonly withinSubnetId: SubnetId };

/** What a finer delegation is for. The addresses of a part are text. */
export type FinerPlace =
  | { readonly type: "host"; readonly hostHash: HostHash; readonly host: string }
  | { readonly type: "part"; readonly first: string; readonly last: string };

export interface FinerDelegation extends FinerDecision {
  readonly finerId: FinerId;
  readonly place: FinerPlace;
  /** The leaf that is split; for a host, the subnet in which it was found. */
  readonly subnetId: SubnetId;
  /** Who has the subnet as a whole now; null: nobody. */
  readonly subnetCrawlerId: CrawlerId | null;
  /** What its latest round probed. */
  readonly target: ProbedTarget;
}

export interface ProbedTarget {
  readonly url: string;
  readonly host: string;
  readonly address: string;
}

/** Who gets it, by which round. */
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
  /** For the history, in words. */
  readonly reason: string;
}

/** What one vantage point was told; null stands for the coordinator. */
export interface SeenAnswer {
  readonly crawlerId: CrawlerId | null;
  readonly addresses: readonly string[];
}

export interface DelegatedHost extends FinerDecision {
  readonly hostHash: HostHash;
  readonly subnetId: SubnetId;
  readonly seen: readonly SeenAnswer[];
  /** For the history, in words. */
  readonly reason: string;
}

/** A host as the frontier has it. */
export interface HostPlace {
  readonly hostHash: HostHash;
  readonly host: string;
  /** One of its URLs. */
  readonly url: string;
  /** As the coordinator resolved it, the first one first. */
  readonly addresses: readonly string[];
  readonly subnetId: SubnetId;
  /** True: it is delegated by itself already. */
  readonly byItself: boolean;
}

export interface ReviewTimes {
  readonly now: Date;
  /** When it is to be probed again. */
  readonly reviewAt: Date;
}

const reviewEveryMs = 6 * 3_600_000;

/** What is decided now is looked at again so much later. */
export function reviewTimes(now: Date): ReviewTimes {
  return { now, reviewAt: new Date(now.getTime() + reviewEveryMs) };
}

/** What the flows know of the delegations as they are stored: who crawls which subnet, and the rounds that decided it. */

import type { RoundCause } from "#core/delegation-cause";
import type { CrawlerId, HostHash, RoundId, SubnetId } from "#core/ids";
import type { ProbeMethod, ProbeOutcome } from "#protocol/messages";
import type { HostToHold } from "../domain-sets/domain-set.ts";
import type { CheckOutcome, MoveRates } from "./recalibration/ageing.ts";

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

export interface DelegationStore {
  /** Hands over every delegation, by ascending subnet, without a list of them all; returns how many. */
  readEach(visit: (delegation: Delegation) => void): Promise<number>;
  /** Of these subnets; those that nobody has are missing. */
  read(subnetIds: readonly SubnetId[]): Promise<Delegation[]>;
  /**
   * Subnets with due URLs that nobody owns, in the order in which their first URL was admitted; without those
   * in `except`, and only the first few of one holder, so that a large one does not keep the others waiting.
   */
  waiting(limit: number, except: readonly SubnetId[]): Promise<WaitingSubnet[]>;
  /** A URL and address to probe for these subnets (recalibration and retries). */
  targetsFor(subnetIds: readonly SubnetId[]): Promise<WaitingSubnet[]>;
  /** The latest rounds of whole subnets that a crawler's measurement decided, oldest first. */
  latestRounds(limit: number): Promise<MeasuredRound[]>;
  /** Stores round and probes and, when a crawler was decided, the delegation and its history: one transaction. */
  saveRound(round: FinishedRound): Promise<RoundId>;
  /** For the time being, until the crawler's own first fetch is held against others. False: it is delegated already. */
  delegateProvisionally(subnetId: SubnetId, crawlerId: CrawlerId, now: Date): Promise<boolean>;
  /** Subnets that were found to be anycast. */
  anycastSubnets(): Promise<SubnetId[]>;
  /** What rounds found not to be anycast in clouds' lists. */
  notAnycast(): Promise<string[]>;
  /** The subnets that these hosts lie in; hosts without one are left out. */
  subnetsOfHosts(hosts: readonly HostHash[]): Promise<SubnetId[]>;
  /** A crawler's own subnet, without a probe (paper 4.1). Nothing happens when the subnet is delegated already. */
  delegateOwnSubnet(subnetId: SubnetId, crawlerId: CrawlerId, now: Date): Promise<boolean>;
  /** Moves that still apply (the `from` still owns it), one transaction; returns those made. */
  move(moves: readonly DelegationMove[], now: Date): Promise<SubnetId[]>;
  /** What each crawler that has a subnet is to fetch a day, where every page is fetched once in so many days. */
  crawlerLoads(recrawlDays: number): Promise<CrawlerLoad[]>;
  /**
   * The same for each subnet of these crawlers, with the RTT that its crawler measured; `displaced`: and of those that went to
   * relieve a crawler, whoever has them.
   */
  loads(
    recrawlDays: number,
    crawlerIds: readonly CrawlerId[],
    which?: { readonly displaced: boolean },
  ): Promise<SubnetLoad[]>;
  /** What went from this crawler to others because it left or was drained, and the RTT it had measured. */
  formerSubnets(
    crawlerId: CrawlerId,
    since: Date,
  ): Promise<{ readonly subnetId: SubnetId; readonly rttMs: number | null }[]>;
  /** Measured RTTs per subnet from the latest round: what the variance rule and the runner-up search need. */
  probedRtts(
    subnetIds: readonly SubnetId[],
  ): Promise<{ subnetId: SubnetId; crawlerId: CrawlerId; rttMs: number; method: ProbeMethod }[]>;
  /** Delegations that nobody measured and something can be probed in, those first of which most is fetched a day. */
  unmeasured(asked: UnmeasuredAsked): Promise<UnmeasuredSubnet[]>;
  /** The crawler is elsewhere now: what it measured of its subnets, and others of it, is void. Returns the delegations that are others now. */
  leavePlace(crawlerId: CrawlerId, now: Date): Promise<SubnetId[]>;
  /** Decided by a probe round before a moment, oldest first, behind a place in that order (null: from the beginning). */
  decidedBefore(before: Date, behind: AgedDelegation | null, limit: number): Promise<AgedDelegation[]>;
  /** What the latest rounds tell of how long decisions last. */
  checkOutcomes(mostRounds: number): Promise<(CheckOutcome & { readonly subnetId: SubnetId })[]>;
  /** For those who explain; the rounds teach it again. */
  saveMoveRates(rates: MoveRates): Promise<void>;
}

/** What the flows of domain sets read and write: the sets of crawlers, and the hosts that are not where they may be. */

import type { CrawlerId, HostHash, RoundId, SubnetId } from "#core/ids";
import type { Partition } from "./partition.ts";

/** As text, each in its one form (`domainSetText`). */
export interface DomainSetsOf {
  readonly name: string;
  readonly operator: readonly string[];
  /** As its partner narrows them; without the crawler's saying so, none. */
  readonly partner: readonly string[];
}

export interface ChangedDomainSets extends DomainSetsOf {
  readonly before: readonly string[];
}

/** A host with due URLs whose crawler may not have it. */
export interface MisplacedHost {
  readonly hostHash: HostHash;
  readonly host: string;
  readonly language: string | null;
  readonly subnetId: SubnetId;
  readonly url: string;
  readonly address: string;
}

export interface HostsBySet {
  readonly subnetId: SubnetId;
  readonly hosts: readonly HostHash[];
  readonly crawlerId: CrawlerId;
  readonly roundId: RoundId;
  readonly rttMs: number | null;
  readonly runnerUpId: CrawlerId | null;
  readonly runnerUpRttMs: number | null;
  /** For the history, in words. */
  readonly reason: string;
}

export interface DomainSetStore {
  of(name: string): Promise<DomainSetsOf | null>;
  /** Null: there is no crawler of that name. Running coordinators are told. */
  give(name: string, sets: readonly string[]): Promise<ChangedDomainSets | null>;
  /**
   * Hosts that this crawler has by a delegation, and may not have, while another may: at most `limit`. `others`: the
   * partitions of those that could take them.
   */
  misplaced(
    crawler: { readonly crawlerId: CrawlerId; readonly partition: Partition },
    others: readonly Partition[],
    limit: number,
  ): Promise<MisplacedHost[]>;
  /** Of these subnets, those that this crawler has, and that have hosts without one that it may have. */
  holdsNothingOf(
    crawler: { readonly crawlerId: CrawlerId; readonly partition: Partition },
    subnetIds: readonly SubnetId[],
  ): Promise<SubnetId[]>;
  /** Gives the hosts to the crawler one by one; the number of those for which there was room. */
  delegate(given: HostsBySet, times: { readonly now: Date; readonly reviewAt: Date }): Promise<number>;
  /** What was delegated by set and the subnet's crawler may have by now goes with its subnet again. */
  endNeedless(
    crawler: { readonly crawlerId: CrawlerId; readonly partition: Partition },
    now: Date,
  ): Promise<number>;
  /** Whether any host is delegated by its set. */
  hasDelegated(): Promise<boolean>;
  /** Sees to the language of hosts with pages; the number of those that have another one now. */
  refreshLanguages(hosts: readonly HostHash[]): Promise<number>;
  /** The next hosts with pages after this one; empty: there are none. */
  hostsWithPages(after: HostHash | null, limit: number): Promise<HostHash[]>;
}

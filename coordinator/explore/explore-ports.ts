/** What the explorer asks of the database: what the coordinator's memory does not hold. */
import type { HolderId, SubnetId } from "#core/ids";

/** When a subnet was delegated, and whether it was found to answer from many places. */
export interface DelegationMark {
  readonly subnetId: SubnetId;
  /** Seconds since 1970. */
  readonly since: number;
  readonly anycast: boolean;
}

export interface ExploredLoad {
  readonly subnetId: SubnetId;
  readonly pagesPerDay: number;
  readonly dueHosts: number;
}

export interface NamedHolder {
  readonly holderId: HolderId;
  readonly name: string;
  readonly handle: string | null;
}

export interface ExploreReads {
  /** Hands over every delegation's mark, row by row. */
  eachMark(visit: (mark: DelegationMark) => void): Promise<void>;
  /** Subnets with hosts: what each is to be fetched a day, where every page is fetched once in so many days. */
  eachLoad(recrawlDays: number, visit: (load: ExploredLoad) => void): Promise<void>;
  /** Subnets with hosts or parts that are delegated apart. */
  finerSubnets(): Promise<readonly SubnetId[]>;
  holders(holderIds: readonly HolderId[]): Promise<readonly NamedHolder[]>;
  /** Holders with exactly this handle, or whose name is this, in any case; few. */
  holdersCalled(text: string): Promise<readonly NamedHolder[]>;
}

/** The clock, and how the explorer lets others have their turn. */
export interface ExploreClock {
  readonly now: () => Date;
  /** A steady clock in ms. */
  readonly steadyMs: () => number;
  /** Resolves when everybody else who was ready has had a turn. */
  readonly yieldTurn: () => Promise<void>;
}

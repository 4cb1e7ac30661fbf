/**
 * What a balancing policy is given and what it answers. A policy is pure and deterministic: the same input
 * gives the same moves. A crawler that departs is one of capacity 0.
 */
import type { CrawlerId, SubnetId } from "#core/ids";

export interface BalanceInput {
  readonly crawlers: readonly BalanceCrawler[];
  readonly subnets: readonly BalanceSubnet[];
  /** Round-trip time between two crawlers, either way round; undefined when it was never measured. */
  readonly crawlerRttMs: (a: CrawlerId, b: CrawlerId) => number | undefined;
}

export interface BalanceCrawler {
  readonly crawlerId: CrawlerId;
  readonly capacityPagesPerDay: number;
  /** The partner's other limit; absent: none. */
  readonly capacityBytesPerDay?: number;
}

export interface BalanceSubnet {
  readonly subnetId: SubnetId;
  /** Who crawls it now; a crawler that is not listed counts as departed. */
  readonly crawlerId: CrawlerId;
  readonly loadPagesPerDay: number;
  /** What its pages weigh; absent: not known, and not counted. */
  readonly loadBytesPerDay?: number;
  /** What the probes found, in milliseconds; crawlers that never measured it are absent. */
  readonly rttMs: ReadonlyMap<CrawlerId, number>;
  /** Whose it is, as any whole number from 0 on: what is measured of a holder's subnets helps to predict the others'. */
  readonly holderId?: number;
}

export interface Move {
  readonly subnetId: SubnetId;
  readonly from: CrawlerId;
  readonly to: CrawlerId;
  /** The new crawler's RTT less the old one's: what the move costs every page. */
  readonly addedRttMs: number;
  /** Whether one of the two RTTs is predicted and ought to be probed before the move is made. */
  readonly predicted: boolean;
}

export type PlanMoves = (input: BalanceInput) => Move[];

/** Throws a RangeError where a capacity, load or RTT is not a number of zero or more, or an id comes twice. */
export function checkInput({ crawlers, subnets }: Pick<BalanceInput, "crawlers" | "subnets">): void {
  refuseRepeats(
    "crawler",
    crawlers.map(({ crawlerId }) => crawlerId),
  );
  refuseRepeats(
    "subnet",
    subnets.map(({ subnetId }) => subnetId),
  );
  crawlers.forEach(checkCrawler);
  subnets.forEach(checkSubnet);
}

function checkCrawler({ crawlerId, capacityPagesPerDay, capacityBytesPerDay = 0 }: BalanceCrawler): void {
  checkNumber(capacityPagesPerDay, () => `capacity of crawler ${crawlerId}`);
  checkNumber(capacityBytesPerDay, () => `capacity in bytes of crawler ${crawlerId}`);
}

function checkSubnet(subnet: BalanceSubnet): void {
  const { subnetId, loadPagesPerDay, loadBytesPerDay = 0, holderId = 0 } = subnet;
  checkNumber(loadPagesPerDay, () => `load of subnet ${subnetId}`);
  checkNumber(loadBytesPerDay, () => `load in bytes of subnet ${subnetId}`);
  checkNumber(holderId, () => `holder of subnet ${subnetId}`);
  for (const [crawlerId, rtt] of subnet.rttMs)
    checkNumber(rtt, () => `RTT of crawler ${crawlerId} to subnet ${subnetId}`);
}

function refuseRepeats(what: string, ids: readonly number[]): void {
  const seen = new Set<number>();
  for (const id of ids) {
    if (seen.has(id)) throw new RangeError(`${what} ${id} is listed twice`);
    seen.add(id);
  }
}

export function checkNumber(value: number, what: () => string): void {
  if (!(value >= 0 && value < Number.POSITIVE_INFINITY)) throw new RangeError(`the ${what()} is ${value}`);
}

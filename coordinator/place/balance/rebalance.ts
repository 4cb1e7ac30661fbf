/**
 * Plans with the chosen policy, and again after measurements. `min-cost-flow` has hysteresis and says which pairs to
 * probe. `variance-rule` is the paper's; its moves with predicted RTTs are probed. Nobody counts as nearer to an
 * anycast range than its crawler, so it only moves for load.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import type { ProbeMethod } from "#protocol/messages";
import { RttTable } from "../distances/predicted-rtts.ts";
import { burdenOf, plannedCapacities } from "./capacities.ts";
import { planPlacement } from "./placement.ts";
import {
  type BalanceInput,
  type BalancePolicyName,
  type BalanceSubnet,
  type Move,
  noHysteresis,
  overloads,
} from "./plan.ts";

export interface MeasuredPair {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
}

export interface ReliefPlan {
  readonly moves: readonly Move[];
  /** Most worth first. */
  readonly probes: readonly { readonly subnetId: SubnetId; readonly crawlerId: CrawlerId }[];
}

interface ReliefPlanning {
  plan(): ReliefPlan;
  /** Uses these in later plans. */
  note(measured: readonly MeasuredPair[]): void;
}

export function planRelief(
  policy: BalancePolicyName,
  input: BalanceInput,
  isAnycast: (subnetId: SubnetId) => boolean,
): ReliefPlanning {
  const leastMs = leastRtts(input, isAnycast);
  const atLeast = (subnetId: SubnetId, rttMs: number) => Math.max(rttMs, leastMs.get(subnetId) ?? 0);
  const known = new Map(
    input.subnets.map(({ subnetId, crawlerId, rttMs }) => {
      const rtts = new Map([...rttMs].map(([witness, ms]) => [witness, atLeast(subnetId, ms)]));
      const least = leastMs.get(subnetId);
      return [subnetId, least === undefined ? rtts : rtts.set(crawlerId, least)];
    }),
  );
  const planned = () => ({
    ...input,
    subnets: input.subnets.map((subnet) => ({ ...subnet, rttMs: known.get(subnet.subnetId)! })),
  });
  return {
    plan: () => (policy === "variance-rule" ? byVarianceRule(planned()) : planPlacement(planned())),
    note: (measured) => {
      for (const { subnetId, crawlerId, rttMs } of measured)
        known.get(subnetId)?.set(crawlerId, atLeast(subnetId, rttMs));
    },
  };
}

function byVarianceRule(input: BalanceInput): ReliefPlan {
  const moves = planByVarianceRule(input);
  const rttsOf = new Map(input.subnets.map(({ subnetId, rttMs }) => [subnetId, rttMs]));
  const unknown = moves.filter(({ subnetId, to }) => !rttsOf.get(subnetId)!.has(to));
  return { moves, probes: unknown.map(({ subnetId, to }) => ({ subnetId, crawlerId: to })) };
}

/** RTTs measured by the crawlers of anycast ranges, in ms; unmeasured ones count as 0, so that nobody is nearer. */
function leastRtts({ subnets }: BalanceInput, isAnycast: (subnetId: SubnetId) => boolean) {
  const ranges = subnets.filter(({ subnetId }) => isAnycast(subnetId));
  return new Map(ranges.map(({ subnetId, crawlerId, rttMs }) => [subnetId, rttMs.get(crawlerId) ?? 0]));
}

// Remembers measurements for postponed moves for an hour, so that later passes do not plan the same moves again.

interface Attempt {
  /** Null when the crawler could not measure the subnet. */
  readonly rttMs: number | null;
  readonly method: ProbeMethod | undefined;
  readonly atMs: number;
}

const believedMs = 3_600_000;

export class PutOffMoves {
  readonly #attempts = new Map<SubnetId, Map<CrawlerId, Attempt>>();

  note(
    attempt: { subnetId: SubnetId; to: CrawlerId; rttMs: number | null; method?: ProbeMethod },
    now: Date,
  ): void {
    const { subnetId, to, rttMs, method } = attempt;
    const known = this.#attempts.get(subnetId) ?? new Map<CrawlerId, Attempt>();
    this.#attempts.set(subnetId, known.set(to, { rttMs, method, atMs: now.getTime() }));
  }

  /** Valid measurements by this method (by any, when omitted); null for crawlers that could not measure. */
  of(subnetId: SubnetId, now: Date, method?: ProbeMethod): ReadonlyMap<CrawlerId, number | null> {
    const believed = new Map<CrawlerId, number | null>();
    for (const [crawlerId, attempt] of this.#attempts.get(subnetId) ?? []) {
      const isComparable = attempt.method === undefined || method === undefined || attempt.method === method;
      if (isComparable && now.getTime() - attempt.atMs <= believedMs) believed.set(crawlerId, attempt.rttMs);
    }
    if (believed.size === 0) this.#attempts.delete(subnetId);
    return believed;
  }
}

// The paper's rule (section 4.4): an overloaded crawler gives up the subnets with the lowest variance in their
// probing results, each to its next-best available crawler. A low variance means that the probed crawlers are
// about equally far, so that another one does nearly as well.
//
// Filled in where the paper is silent: a subnet that fewer than two crawlers measured has no variance and goes
// last; "next-best" is the lowest RTT, measured or predicted, among crawlers with room for the whole subnet, in
// pages and in bytes; where nobody has room, the subnet stays, except that a departed crawler keeps nothing.

export function planByVarianceRule(input: BalanceInput): Move[] {
  const over = overloads(input);
  if (over.length === 0) return [];
  const relief = new VarianceRelief(input);
  const subnetsOf = new Map(over.map((crawlerId) => [crawlerId, [] as BalanceSubnet[]]));
  for (const subnet of input.subnets) subnetsOf.get(subnet.crawlerId)?.push(subnet);
  return over.flatMap((crawlerId) => relief.movesFrom(lowestVarianceFirst(subnetsOf.get(crawlerId) ?? [])));
}

/** Population variance of the probing results, in ms²; infinite with fewer than two. */
export function probingVariance({ rttMs }: BalanceSubnet): number {
  if (rttMs.size < 2) return Number.POSITIVE_INFINITY;
  let [sum, squares] = [0, 0];
  for (const rtt of rttMs.values()) sum += rtt;
  const mean = sum / rttMs.size;
  for (const rtt of rttMs.values()) squares += (rtt - mean) ** 2;
  return squares / rttMs.size;
}

function lowestVarianceFirst(subnets: readonly BalanceSubnet[]): BalanceSubnet[] {
  const varied = subnets.map((subnet) => ({ subnet, variance: probingVariance(subnet) }));
  varied.sort((a, b) =>
    a.variance === b.variance ? a.subnet.subnetId - b.subnet.subnetId : a.variance - b.variance,
  );
  return varied.map(({ subnet }) => subnet);
}

class VarianceRelief {
  readonly #rtts: RttTable;
  readonly #rowOf: ReadonlyMap<SubnetId, number>;
  readonly #capacityPages: Float64Array;
  readonly #roomPages: Float64Array;
  readonly #roomBytes: Float64Array;

  constructor({ crawlers, subnets, crawlerRttMs }: BalanceInput) {
    this.#rtts = new RttTable(crawlerRttMs);
    for (const { crawlerId } of crawlers) this.#rtts.indexOf(crawlerId);
    this.#rowOf = new Map(subnets.map((subnet) => [subnet.subnetId, this.#rtts.add(subnet)]));
    const burden = burdenOf({ crawlers, subnets }, this.#rtts);
    const { pages, bytes } = plannedCapacities(burden, noHysteresis);
    this.#capacityPages = pages;
    this.#roomPages = pages.map((capacity, index) => capacity - burden.pages[index]!);
    this.#roomBytes = bytes.map((capacity, index) => capacity - burden.bytes[index]!);
  }

  /** Moves a crawler's subnets in this order until it is no longer over; all of a departed one's. */
  movesFrom(subnets: readonly BalanceSubnet[]): Move[] {
    const moves: Move[] = [];
    for (const subnet of subnets) {
      const from = this.#rtts.indexOf(subnet.crawlerId);
      const departed = this.#capacityPages[from] === 0;
      if (!departed && this.#roomPages[from]! >= 0 && this.#roomBytes[from]! >= 0) break;
      if (!departed && subnet.loadPagesPerDay === 0) continue;
      const to = this.#nextBest(subnet, from, departed);
      if (to >= 0) moves.push(this.#moved(subnet, from, to));
    }
    return moves;
  }

  /** The nearest with room; for a subnet that cannot stay, otherwise the one with most room; -1 for none. */
  #nextBest(
    { subnetId, loadPagesPerDay, loadBytesPerDay = 0 }: BalanceSubnet,
    from: number,
    mustLeave: boolean,
  ): number {
    const row = this.#rowOf.get(subnetId)!;
    let [best, bestMs, roomiest] = [-1, Number.POSITIVE_INFINITY, -1];
    for (const [crawler, capacity] of this.#capacityPages.entries()) {
      if (crawler === from || capacity === 0) continue;
      if (roomiest < 0 || this.#roomPages[crawler]! > this.#roomPages[roomiest]!) roomiest = crawler;
      if (this.#roomPages[crawler]! < loadPagesPerDay || this.#roomBytes[crawler]! < loadBytesPerDay)
        continue;
      const rttMs = this.#rtts.rttMs(row, crawler);
      if (rttMs < bestMs) [best, bestMs] = [crawler, rttMs];
    }
    return best < 0 && mustLeave ? roomiest : best;
  }

  #moved(subnet: BalanceSubnet, from: number, to: number): Move {
    for (const [crawler, sign] of [
      [from, 1],
      [to, -1],
    ] as const) {
      this.#roomPages[crawler]! += sign * subnet.loadPagesPerDay;
      this.#roomBytes[crawler]! += sign * (subnet.loadBytesPerDay ?? 0);
    }
    const { crawlerIds } = this.#rtts;
    const difference = this.#rtts.difference(this.#rowOf.get(subnet.subnetId)!, from, to);
    return { subnetId: subnet.subnetId, from: crawlerIds[from]!, to: crawlerIds[to]!, ...difference };
  }
}

/**
 * Plans with the chosen policy, and again after some of what it wanted to know was measured. `min-cost-flow`
 * plans with hysteresis and says itself which pairs are worth a probe; `variance-rule` is the paper's, and of
 * its moves those are measured whose round-trip time is only predicted. An anycast range counts as no nearer to
 * anybody than to its crawler: it is moved where there is too much to do, never to save time.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import type { ProbeMethod } from "#protocol/messages";
import { PackedSubnets } from "./packed-subnets.ts";
import {
  type BalanceInput,
  type BalancePolicyName,
  type BalanceSubnet,
  checkInput,
  type Move,
  noHysteresis,
  overloads,
} from "./plan.ts";
import { BalancePlanner } from "./planner.ts";
import { burdenOf, plannedCapacities } from "./problem.ts";

export interface MeasuredPair {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
}

export interface ReliefPlan {
  readonly moves: readonly Move[];
  /** The most worth first. */
  readonly probes: readonly { readonly subnetId: SubnetId; readonly crawlerId: CrawlerId }[];
}

interface ReliefPlanning {
  plan(): ReliefPlan;
  /** Plans with these from now on. */
  note(measured: readonly MeasuredPair[]): void;
}

export function planRelief(
  policy: BalancePolicyName,
  input: BalanceInput,
  isAnycast: (subnetId: SubnetId) => boolean,
): ReliefPlanning {
  const leastMs = leastRtts(input, isAnycast);
  const atLeast = (subnetId: SubnetId, rttMs: number) => Math.max(rttMs, leastMs.get(subnetId) ?? 0);
  const subnets = input.subnets.map((subnet) => {
    const least = leastMs.get(subnet.subnetId);
    if (least === undefined) return subnet;
    const rttMs = new Map([...subnet.rttMs].map(([id, ms]) => [id, atLeast(subnet.subnetId, ms)]));
    return { ...subnet, rttMs: rttMs.set(subnet.crawlerId, least) };
  });
  const planning = (policy === "variance-rule" ? byVarianceRule : byMinCostFlow)({ ...input, subnets });
  const noted = (pair: MeasuredPair) => ({ ...pair, rttMs: atLeast(pair.subnetId, pair.rttMs) });
  return { plan: planning.plan, note: (measured) => planning.note(measured.map(noted)) };
}

/** What the crawlers of anycast ranges measured of them, in ms; where they measured nothing, nobody is nearer than 0. */
function leastRtts({ subnets }: BalanceInput, isAnycast: (subnetId: SubnetId) => boolean) {
  const ranges = subnets.filter(({ subnetId }) => isAnycast(subnetId));
  return new Map(ranges.map(({ subnetId, crawlerId, rttMs }) => [subnetId, rttMs.get(crawlerId) ?? 0]));
}

function byMinCostFlow({ crawlers, subnets, crawlerRttMs }: BalanceInput): ReliefPlanning {
  const planner = new BalancePlanner(crawlerRttMs);
  planner.note({ crawlers, subnets });
  return { plan: () => planner.plan(), note: (measured) => planner.note({ measured }) };
}

function byVarianceRule(input: BalanceInput): ReliefPlanning {
  const rtts = new Map(input.subnets.map(({ subnetId, rttMs }) => [subnetId, new Map(rttMs)]));
  return {
    plan: () => {
      const subnets = input.subnets.map((subnet) => ({
        ...subnet,
        rttMs: rtts.get(subnet.subnetId) ?? subnet.rttMs,
      }));
      const moves = planByVarianceRule({ ...input, subnets });
      const unknown = moves.filter(({ subnetId, to }) => rtts.get(subnetId)?.has(to) !== true);
      return { moves, probes: unknown.map(({ subnetId, to }) => ({ subnetId, crawlerId: to })) };
    },
    note: (measured) => {
      for (const { subnetId, crawlerId, rttMs } of measured) rtts.get(subnetId)?.set(crawlerId, rttMs);
    },
  };
}

// What was measured for moves that were then put off: the next passes plan with it, or they would plan the
// same move again and again. Paths change, so it is believed for an hour.

interface Attempt {
  /** Null: the crawler could not measure the subnet. */
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

  /**
   * What is still believed: round trips that were measured as the subnet's own are (left out: however), and crawlers that
   * could not measure it (null).
   */
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
  checkInput(input);
  const over = overloads(input);
  if (over.length === 0) return [];
  const relief = new VarianceRelief(input);
  const subnetsOf = new Map(over.map(({ crawlerId }) => [crawlerId, [] as BalanceSubnet[]]));
  for (const subnet of input.subnets) subnetsOf.get(subnet.crawlerId)?.push(subnet);
  return over.flatMap(({ crawlerId }) =>
    relief.movesFrom(lowestVarianceFirst(subnetsOf.get(crawlerId) ?? [])),
  );
}

/** Population variance of the probing results, in ms²; infinite when there are fewer than two. */
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
  readonly #subnets: PackedSubnets;
  readonly #capacityPages: Float64Array;
  readonly #roomPages: Float64Array;
  readonly #roomBytes: Float64Array;
  readonly #rttsMs: Float64Array;

  constructor({ crawlers, subnets, crawlerRttMs }: BalanceInput) {
    this.#subnets = new PackedSubnets(crawlerRttMs);
    for (const { crawlerId } of crawlers) this.#subnets.rtts.indexOf(crawlerId);
    for (const subnet of subnets) this.#subnets.put(subnet);
    const listed = new Map(crawlers.map((crawler) => [crawler.crawlerId, crawler]));
    const burden = burdenOf(this.#subnets, listed);
    const { pages, bytes } = plannedCapacities(burden, noHysteresis);
    this.#capacityPages = pages;
    this.#roomPages = pages.map((capacity, index) => capacity - burden.pages[index]!);
    this.#roomBytes = bytes.map((capacity, index) => capacity - burden.bytes[index]!);
    this.#rttsMs = new Float64Array(pages.length);
  }

  /** Moves away one crawler's subnets, in this order, until it is over no longer; from a departed one all of them. */
  movesFrom(subnets: readonly BalanceSubnet[]): Move[] {
    const moves: Move[] = [];
    for (const { subnetId } of subnets) {
      const row = this.#subnets.rowOf(subnetId)!;
      const from = this.#subnets.ownerOf(row);
      const departed = this.#capacityPages[from] === 0;
      if (!departed && this.#roomPages[from]! >= 0 && this.#roomBytes[from]! >= 0) break;
      if (!departed && this.#subnets.pagesOf(row) === 0) continue;
      const to = this.#nextBest(row, departed);
      if (to >= 0) moves.push(this.#moved(row, to));
    }
    return moves;
  }

  /** With room; for a subnet that cannot stay, else the one with the most of it; -1 when there is none. */
  #nextBest(row: number, mustLeave: boolean): number {
    const from = this.#subnets.ownerOf(row);
    const [pages, bytes] = [this.#subnets.pagesOf(row), this.#subnets.bytesOf(row)];
    this.#subnets.rtts.rttsInto(row, this.#rttsMs);
    let [best, roomiest] = [-1, -1];
    for (let crawler = 0; crawler < this.#rttsMs.length; crawler++) {
      if (crawler === from || this.#capacityPages[crawler] === 0) continue;
      if (roomiest < 0 || this.#roomPages[crawler]! > this.#roomPages[roomiest]!) roomiest = crawler;
      if (this.#roomPages[crawler]! < pages || this.#roomBytes[crawler]! < bytes) continue;
      if (best < 0 || this.#rttsMs[crawler]! < this.#rttsMs[best]!) best = crawler;
    }
    return best < 0 && mustLeave ? roomiest : best;
  }

  #moved(row: number, to: number): Move {
    const { rtts } = this.#subnets;
    const from = this.#subnets.ownerOf(row);
    for (const [crawler, sign] of [
      [from, 1],
      [to, -1],
    ] as const) {
      this.#roomPages[crawler]! += sign * this.#subnets.pagesOf(row);
      this.#roomBytes[crawler]! += sign * this.#subnets.bytesOf(row);
    }
    return {
      subnetId: this.#subnets.idOf(row),
      from: rtts.crawlerIds[from]!,
      to: rtts.crawlerIds[to]!,
      ...rtts.difference(row, from, to),
    };
  }
}

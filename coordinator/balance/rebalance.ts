/**
 * Plans with the chosen policy, and again after some of what it wanted to know was measured. `min-cost-flow`
 * plans with hysteresis and says itself which pairs are worth a probe; `variance-rule` is the paper's, and of
 * its moves those are measured whose round-trip time is only predicted. An anycast range counts as no nearer to
 * anybody than to its crawler: it is moved where there is too much to do, never to save time.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import type { BalanceInput, BalancePolicyName, Move } from "./plan.ts";
import { BalancePlanner } from "./planner.ts";
import { planByVarianceRule } from "./variance-rule.ts";

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

export interface ReliefPlanning {
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
  readonly atMs: number;
}

const believedMs = 3_600_000;

export class PutOffMoves {
  readonly #attempts = new Map<SubnetId, Map<CrawlerId, Attempt>>();

  note(attempt: { subnetId: SubnetId; to: CrawlerId; rttMs: number | null }, now: Date): void {
    const { subnetId, to, rttMs } = attempt;
    const known = this.#attempts.get(subnetId) ?? new Map<CrawlerId, Attempt>();
    this.#attempts.set(subnetId, known.set(to, { rttMs, atMs: now.getTime() }));
  }

  /** What is still believed: measured round trips, and crawlers that could not measure this subnet (null). */
  of(subnetId: SubnetId, now: Date): ReadonlyMap<CrawlerId, number | null> {
    const believed = new Map<CrawlerId, number | null>();
    for (const [crawlerId, { rttMs, atMs }] of this.#attempts.get(subnetId) ?? []) {
      if (now.getTime() - atMs <= believedMs) believed.set(crawlerId, rttMs);
    }
    if (believed.size === 0) this.#attempts.delete(subnetId);
    return believed;
  }
}

/**
 * Balances a world whose every RTT is known, with a policy that may not know them: plan, measure what it asks for,
 * plan again, until it asks for nothing (or the rounds are used up), and make the moves that rely on nothing unmeasured.
 */
import { overloads } from "#coordinator/balance/plan";
import type { CrawlerId, SubnetId } from "#core/ids";
import { type BalancePlanning, balancePlanning, type SimulatedPolicy } from "./balance-planning.ts";
import type { BalanceWorld } from "./balance-world.ts";

export interface BalanceFigures {
  /** Mean over all pages of what their crawler is slower than the nearest, in ms. */
  readonly extraMs: number;
  /** The same of the slowest twentieth of the pages, at least. */
  readonly p95ExtraMs: number;
  /** Mean over all pages of what balancing added, in ms: the delegation's own error is not in it. */
  readonly addedMs: number;
  readonly moves: number;
  readonly probes: number;
  /** Plans until nothing was asked for any more. */
  readonly rounds: number;
  /** Crawlers over their capacity afterwards. */
  readonly overloadsLeft: number;
  /** CPU time of planning, in seconds. */
  readonly planSeconds: number;
}

export interface BalanceRunOptions {
  readonly policy: SimulatedPolicy;
  readonly seed: number;
  /** Most plans. The last one's moves are made where what they rely on was measured. */
  readonly rounds?: number;
  /** Called before each plan. */
  readonly onRound?: (round: number) => void;
}

export const defaultRounds = 20;

export function simulateBalance(world: BalanceWorld, options: BalanceRunOptions): BalanceFigures {
  const { policy, seed, rounds = defaultRounds, onRound } = options;
  const start = cpuSeconds();
  const planning = balancePlanning(policy, world.input, seed);
  const run = { probes: 0, rounds: 0 };
  let plan = planning.plan();
  for (run.rounds = 1; plan.probes.length > 0 && run.rounds < rounds; run.rounds++) {
    onRound?.(run.rounds);
    run.probes += measure(world, planning, plan.probes);
    plan = planning.plan();
  }
  const moves = planning.finalMoves();
  const planSeconds = cpuSeconds() - start;
  const placed = new Map(moves.map(({ subnetId, to }) => [subnetId, to]));
  return { ...figuresOf(world, placed), ...run, moves: moves.length, planSeconds };
}

function measure(
  world: BalanceWorld,
  planning: BalancePlanning,
  probes: readonly { readonly subnetId: SubnetId; readonly crawlerId: CrawlerId }[],
): number {
  planning.note(
    probes.map(({ subnetId, crawlerId }) => ({
      subnetId,
      crawlerId,
      rttMs: world.rttMs(subnetId, crawlerId),
    })),
  );
  return probes.length;
}

/** What the pages of a world suffer where its subnets lie; those that are not named are where they were. */
export function figuresOf(
  world: BalanceWorld,
  placed: ReadonlyMap<SubnetId, CrawlerId>,
): Pick<BalanceFigures, "extraMs" | "p95ExtraMs" | "addedMs" | "overloadsLeft"> {
  const subnets = world.input.subnets.map((subnet) => ({
    ...subnet,
    crawlerId: placed.get(subnet.subnetId) ?? subnet.crawlerId,
  }));
  const extras = subnets.map(({ subnetId, crawlerId, loadPagesPerDay }) => ({
    ms: world.rttMs(subnetId, crawlerId) - least(world.rttsOf(subnetId)),
    pages: loadPagesPerDay,
  }));
  const pages = extras.reduce((sum, extra) => sum + extra.pages, 0);
  const added = subnets.reduce(
    (sum, { subnetId, crawlerId, loadPagesPerDay }, index) =>
      sum +
      loadPagesPerDay *
        (world.rttMs(subnetId, crawlerId) - world.rttMs(subnetId, world.input.subnets[index]!.crawlerId)),
    0,
  );
  return {
    extraMs: extras.reduce((sum, extra) => sum + extra.ms * extra.pages, 0) / pages,
    p95ExtraMs: percentile(extras, 0.95),
    addedMs: added / pages,
    overloadsLeft: overloads({ crawlers: world.input.crawlers, subnets }).length,
  };
}

/** Nearest rank, by pages. */
function percentile(
  values: readonly { readonly ms: number; readonly pages: number }[],
  share: number,
): number {
  const sorted = values.toSorted((a, b) => a.ms - b.ms);
  let left = share * sorted.reduce((sum, value) => sum + value.pages, 0);
  for (const { ms, pages } of sorted) {
    left -= pages;
    if (left <= 1e-9) return ms;
  }
  return sorted.at(-1)?.ms ?? 0;
}

function least(values: ArrayLike<number>): number {
  let smallest = Number.POSITIVE_INFINITY;
  for (let index = 0; index < values.length; index++) smallest = Math.min(smallest, values[index]!);
  return smallest;
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

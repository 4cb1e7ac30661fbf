/**
 * Two weeks of a fleet whose loads are noisy: every day each subnet's load is drawn anew around its mean and each
 * place has its own week, a plan is made and its moves are carried out. Shows whether subnets wander.
 */
import type { BalanceInput, BalanceSettings, BalanceSubnet } from "#coordinator/balance/plan";
import { BalancePlanner } from "#coordinator/balance/planner";
import { idOf } from "#coordinator/delegation/simulation/run";
import { type SimulationInstance, simulateDelegation } from "#coordinator/delegation/simulation/simulation";
import { UsageError } from "#core/errors";
import { asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";

export interface FortnightOptions {
  readonly settings: BalanceSettings;
  readonly seed: number;
  readonly days?: number;
  /** Spread of a subnet's load from day to day (of the logarithm). */
  readonly noise?: number;
}

export interface FortnightFigures {
  /** Moves of the first day, which balances what delegation left. */
  readonly firstMoves: number;
  /** Moves of all days after it. */
  readonly laterMoves: number;
  /** The most that one subnet moved after the first day. */
  readonly mostMoves: number;
  /** Mean over all pages of all days of what their crawler is slower than the nearest, in ms. */
  readonly extraMs: number;
  /** Crawlers over capacity, summed over the days, after the day's plan. */
  readonly overloads: number;
}

const defaultDays = 14;

/** A crawler of a thousand subnets still varies by more than their independent noise: its region has its own week. */
const regionalNoise = 0.01;

const defaultNoise = 0.1;

export function simulateFortnight(world: BalanceWorld, options: FortnightOptions): FortnightFigures {
  const { settings, seed, days = defaultDays, noise = defaultNoise } = options;
  const { crawlers, subnets, crawlerRttMs } = world.input;
  const random = seededRandom(seed);
  const planner = new BalancePlanner(crawlerRttMs, settings);
  planner.note({ crawlers, subnets });
  const places = new Map<SubnetId, CrawlerId>(subnets.map((one) => [one.subnetId, one.crawlerId]));
  const moveCounts = new Map<SubnetId, number>();
  const run = { firstMoves: 0, laterMoves: 0, extra: 0, pages: 0, overloads: 0 };
  for (let day = 0; day < days; day++) {
    const week = crawlers.map(() => Math.exp(regionalNoise * normal(random)));
    const loads = subnets.map(({ subnetId, crawlerId, loadPagesPerDay }) => ({
      subnetId,
      loadPagesPerDay:
        loadPagesPerDay * week[crawlerId - 1]! * Math.exp(noise * normal(random) - noise ** 2 / 2),
    }));
    const { moves } = planner.update({ loads });
    planner.note({ made: moves });
    for (const { subnetId, to } of moves) {
      places.set(subnetId, to);
      if (day > 0) moveCounts.set(subnetId, (moveCounts.get(subnetId) ?? 0) + 1);
    }
    if (day === 0) run.firstMoves = moves.length;
    else run.laterMoves += moves.length;
    const carried = new Map<CrawlerId, number>();
    for (const { subnetId, loadPagesPerDay } of loads) {
      const crawlerId = places.get(subnetId)!;
      carried.set(crawlerId, (carried.get(crawlerId) ?? 0) + loadPagesPerDay);
      run.pages += loadPagesPerDay;
      run.extra += loadPagesPerDay * (world.rttMs(subnetId, crawlerId) - least(world.rttsOf(subnetId)));
    }
    run.overloads += crawlers.filter(
      ({ crawlerId, capacityPagesPerDay }) =>
        (carried.get(crawlerId) ?? 0) > capacityPagesPerDay * (1 + 1e-9),
    ).length;
  }
  return {
    firstMoves: run.firstMoves,
    laterMoves: run.laterMoves,
    mostMoves: Math.max(0, ...moveCounts.values()),
    extraMs: run.extra / run.pages,
    overloads: run.overloads,
  };
}

/** Normally distributed (Box and Muller). */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function least(values: ArrayLike<number>): number {
  let smallest = Number.POSITIVE_INFINITY;
  for (let index = 0; index < values.length; index++) smallest = Math.min(smallest, values[index]!);
  return smallest;
}

// A balancing problem out of an instance of known RTTs: each target is a subnet, delegated by the policy `nearest`
// to the crawler that it found; what its probes measured is what balancing knows, the rest it has to predict.

export const loadKinds = ["equal", "heavy-tailed"] as const;
export type LoadKind = (typeof loadKinds)[number];

/** exact: every RTT is known. probed: what the delegation rounds measured. */
export const knowledgeKinds = ["exact", "probed"] as const;

export type Knowledge = (typeof knowledgeKinds)[number];

interface BalanceWorldSettings {
  readonly seed: number;
  /** What the fleet may carry, as a multiple of its load; each crawler the same. */
  readonly headroom: number;
  readonly loads: LoadKind;
  readonly knowledge: Knowledge;
}

export interface BalanceWorld {
  readonly input: BalanceInput;
  /** True RTTs (ms) of the subnet from all crawlers, in their order. */
  rttsOf(subnetId: SubnetId): ArrayLike<number>;
  rttMs(subnetId: SubnetId, crawlerId: CrawlerId): number;
  /** Probes that the delegation cost. */
  readonly delegationProbes: number;
}

/** RTTs that are kept while a world is balanced: 160 MB. */
const maxRtts = 20_000_000;

export function balanceWorld(instance: SimulationInstance, settings: BalanceWorldSettings): BalanceWorld {
  const { crawlers, targets, crawlerRtt } = instance;
  if (crawlers.length * targets.length > maxRtts)
    throw new UsageError(
      `balance: ${crawlers.length} crawlers and ${targets.length} targets: more than ${maxRtts} RTTs`,
    );
  const rows = targets.map(({ rtt }) => Float64Array.from(rtt));
  const known: Map<CrawlerId, number>[] = targets.map(() => new Map());
  const { chosen, probes } = simulateDelegation(
    {
      crawlers,
      crawlerRtt,
      targets: targets.map((target, index) => ({ ...hostOf(target), rtt: rows[index]! })),
    },
    {
      policy: "nearest",
      seed: settings.seed,
      observe: ({ target, crawler, rttMs }) => {
        known[target]!.set(idOf(crawler), rttMs);
        return { rttMs };
      },
    },
  );
  const loads = drawLoads(targets.length, crawlers.length, settings);
  const holders = new Map<string, number>();
  const subnets = targets.map((target, index): BalanceSubnet => {
    const owner = idOf(chosen[index]!);
    if (!holders.has(target.org)) holders.set(target.org, holders.size);
    const row = rows[index]!;
    // A subnet without a round of its own is fetched by its owner, which measures it by that.
    const rttMs = settings.knowledge === "exact" ? all(row) : known[index]!.set(owner, row[chosen[index]!]!);
    return {
      subnetId: asSubnetId(index + 1),
      crawlerId: owner,
      loadPagesPerDay: loads[index]!,
      rttMs,
      ...(target.org === "" ? {} : { holderId: holders.get(target.org)! }),
    };
  });
  const capacityPagesPerDay = (settings.headroom * sum(loads)) / crawlers.length;
  return {
    input: {
      crawlers: crawlers.map((_, index) => ({ crawlerId: idOf(index), capacityPagesPerDay })),
      subnets,
      crawlerRttMs: (a, b) => crawlerRtt[a - 1]?.[b - 1],
    },
    rttsOf: (subnetId) => rows[subnetId - 1]!,
    rttMs: (subnetId, crawlerId) => rows[subnetId - 1]![crawlerId - 1]!,
    delegationProbes: sum(probes),
  };
}

/**
 * Pages a day: 10 each, or Pareto with exponent 1.2 from 10 on, a few with most of the load; none with more than
 * half of what one crawler may carry.
 */
function drawLoads(
  count: number,
  crawlers: number,
  { loads, seed, headroom }: BalanceWorldSettings,
): number[] {
  if (loads === "equal") return new Array<number>(count).fill(10);
  const random = seededRandom(seed ^ 0x10ad);
  const drawn = Array.from({ length: count }, () => Math.ceil(10 * (1 - random()) ** (-1 / 1.2)));
  const most = Math.max(1, Math.floor((0.5 * headroom * sum(drawn)) / crawlers));
  const capped = drawn.map((pages) => Math.min(pages, most));
  // Capping takes from the sum, and so from the capacities: once more, by their new size.
  const still = Math.max(1, Math.floor((0.5 * headroom * sum(capped)) / crawlers));
  return capped.map((pages) => Math.min(pages, still));
}

const hostOf = ({ path, org, cc }: SimulationInstance["targets"][number]) => ({ path, org, cc });

const all = (row: Float64Array) =>
  new Map(Array.from(row, (rttMs, index): [CrawlerId, number] => [idOf(index), rttMs]));

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

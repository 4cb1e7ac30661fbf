/**
 * A balancing problem out of an instance of known RTTs: each target is a subnet, delegated by the policy `nearest`
 * to the crawler that it found; what its probes measured is what balancing knows, the rest it has to predict.
 */
import type { BalanceInput, BalanceSubnet } from "#coordinator/balance/plan";
import { idOf } from "#coordinator/delegation/simulation/run";
import { type SimulationInstance, simulateDelegation } from "#coordinator/delegation/simulation/simulation";
import { UsageError } from "#core/errors";
import { asSubnetId, type CrawlerId, type SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";

export const loadKinds = ["equal", "heavy-tailed"] as const;
export type LoadKind = (typeof loadKinds)[number];

/** exact: every RTT is known. probed: what the delegation rounds measured. */
export const knowledgeKinds = ["exact", "probed"] as const;
export type Knowledge = (typeof knowledgeKinds)[number];

export interface BalanceWorldSettings {
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

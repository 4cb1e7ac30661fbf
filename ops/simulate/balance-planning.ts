/**
 * The balancing policies that are compared, in one form: plan, hear what was measured, plan again. Beside the
 * product's two there are the obvious ones: whichever subnet chance picks, and whichever move costs the least.
 */

import { PackedSubnets } from "#coordinator/balance/packed-subnets";
import {
  type BalanceInput,
  type BalanceSubnet,
  type Move,
  noHysteresis,
  overloads,
} from "#coordinator/balance/plan";
import { BalancePlanner } from "#coordinator/balance/planner";
import { planByVarianceRule } from "#coordinator/balance/rebalance";
import type { CrawlerId, SubnetId } from "#core/ids";
import { seededRandom } from "#core/random";

export const simulatedPolicyNames = ["none", "random", "greedy", "variance-rule", "min-cost-flow"] as const;
export type SimulatedPolicy = (typeof simulatedPolicyNames)[number];

export interface Pair {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
}

export interface BalancePlanning {
  /** Moves, and the pairs that are to be measured before they are made. */
  plan(): { readonly moves: readonly Move[]; readonly probes: readonly Pair[] };
  note(measured: readonly (Pair & { readonly rttMs: number })[]): void;
  /** The moves to make in the end: nothing unmeasured is relied on. */
  finalMoves(): readonly Move[];
}

export function balancePlanning(policy: SimulatedPolicy, input: BalanceInput, seed: number): BalancePlanning {
  switch (policy) {
    case "none":
      return { plan: () => ({ moves: [], probes: [] }), note: () => {}, finalMoves: () => [] };
    case "random":
      return stateless(input, (known) => planRandomVictims(known, seed));
    case "greedy":
      return stateless(input, planGreedily);
    case "variance-rule":
      return stateless(input, planByVarianceRule);
    case "min-cost-flow":
      return byPlanner(input);
  }
}

function byPlanner({ crawlers, subnets, crawlerRttMs }: BalanceInput): BalancePlanning {
  const planner = new BalancePlanner(crawlerRttMs, noHysteresis);
  planner.note({ crawlers, subnets });
  return {
    plan: () => planner.plan(),
    note: (measured) => planner.note({ measured }),
    finalMoves: () => planner.planMeasured(),
  };
}

/** Those without a state of their own plan from scratch each time; they measure what their moves rely on. */
function stateless(input: BalanceInput, planMoves: (input: BalanceInput) => Move[]): BalancePlanning {
  const subnets = new Map<SubnetId, BalanceSubnet>(input.subnets.map((subnet) => [subnet.subnetId, subnet]));
  const planned = () => planMoves({ ...input, subnets: [...subnets.values()] });
  return {
    finalMoves: () => planned().filter(({ subnetId, to }) => subnets.get(subnetId)!.rttMs.has(to)),
    plan: () => {
      const moves = planned();
      const unknown = moves.filter(({ subnetId, to }) => !subnets.get(subnetId)!.rttMs.has(to));
      return { moves, probes: unknown.map(({ subnetId, to }) => ({ subnetId, crawlerId: to })) };
    },
    note: (measured) => {
      for (const { subnetId, crawlerId, rttMs } of measured) {
        const subnet = subnets.get(subnetId)!;
        subnets.set(subnetId, { ...subnet, rttMs: new Map(subnet.rttMs).set(crawlerId, rttMs) });
      }
    },
  };
}

// What balancing policies have to beat. Both give an overloaded crawler's subnets to whoever has room and is
// nearest; they differ in which subnets go: any, or those that lose the least.

function planRandomVictims(input: BalanceInput, seed: number): Move[] {
  const fleet = new LoadedFleet(input);
  const random = seededRandom(seed);
  const victims = fleet.victims();
  for (let last = victims.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [victims[last], victims[other]] = [victims[other]!, victims[last]!];
  }
  for (const row of victims) {
    const [nearest] = fleet.placesFor(row).filter(({ to }) => fleet.hasRoom(to, row));
    if (nearest) fleet.moveIfOver(row, nearest.to);
  }
  return fleet.moves;
}

function planGreedily(input: BalanceInput): Move[] {
  const fleet = new LoadedFleet(input);
  const ways = fleet
    .victims()
    .flatMap((row) => fleet.placesFor(row).map(({ to, addedMs }) => ({ row, to, addedMs })))
    .sort((a, b) => a.addedMs - b.addedMs || a.row - b.row);
  for (const { row, to } of ways) if (fleet.hasRoom(to, row)) fleet.moveIfOver(row, to);
  return fleet.moves;
}

class LoadedFleet {
  readonly moves: Move[] = [];
  readonly #input: BalanceInput;
  readonly #subnets: PackedSubnets;
  readonly #room: Float64Array;
  readonly #moved = new Set<number>();

  constructor(input: BalanceInput) {
    this.#input = input;
    this.#subnets = new PackedSubnets(input.crawlerRttMs);
    for (const { crawlerId } of input.crawlers) this.#subnets.rtts.indexOf(crawlerId);
    for (const subnet of input.subnets) this.#subnets.put(subnet);
    this.#room = new Float64Array(this.#subnets.rtts.crawlerIds.length);
    input.crawlers.forEach(({ capacityPagesPerDay }, index) => {
      this.#room[index] = capacityPagesPerDay;
    });
    for (const row of this.#subnets.living())
      this.#room[this.#subnets.ownerOf(row)]! -= this.#subnets.pagesOf(row);
  }

  /** The subnets of crawlers that are over. */
  victims(): number[] {
    const over = new Set(overloads(this.#input).map(({ crawlerId }) => crawlerId));
    const { crawlerIds } = this.#subnets.rtts;
    return [...this.#subnets.living()].filter((row) => over.has(crawlerIds[this.#subnets.ownerOf(row)]!));
  }

  /** Every other crawler, the nearest first, with what it adds to the RTT. */
  placesFor(row: number): { readonly to: number; readonly addedMs: number }[] {
    const rttsMs = new Float64Array(this.#room.length);
    this.#subnets.rtts.rttsInto(row, rttsMs);
    const from = this.#subnets.ownerOf(row);
    return Array.from(rttsMs, (rttMs, to) => ({ to, addedMs: rttMs - rttsMs[from]! }))
      .filter(({ to }) => to !== from)
      .sort((a, b) => a.addedMs - b.addedMs || a.to - b.to);
  }

  hasRoom(crawler: number, row: number): boolean {
    return this.#room[crawler]! >= this.#subnets.pagesOf(row);
  }

  moveIfOver(row: number, to: number): void {
    const from = this.#subnets.ownerOf(row);
    if (this.#room[from]! >= 0 || this.#moved.has(row)) return;
    this.#moved.add(row);
    this.#room[from]! += this.#subnets.pagesOf(row);
    this.#room[to]! -= this.#subnets.pagesOf(row);
    const { crawlerIds } = this.#subnets.rtts;
    this.moves.push({
      subnetId: this.#subnets.idOf(row),
      from: crawlerIds[from]!,
      to: crawlerIds[to]!,
      ...this.#subnets.rtts.difference(row, from, to),
    });
  }
}

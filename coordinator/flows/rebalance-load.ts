/**
 * Balances load (design section 6, paper section 4.4): the chosen policy plans which subnets an overloaded
 * crawler gives up and to whom. A move whose round-trip time is only predicted is measured first, by the
 * crawler that would get it; one that turns out to cost much more than predicted, or cannot be measured, is
 * left for the next pass, which then knows better. What stands is one transaction.
 */
import { effectiveCapacity, overloads } from "#core/balance/capacity";
import type { BalanceInput, Move } from "#core/balance/plan";
import { type BalancePolicyName, balancePolicies } from "#core/balance/policies";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { CoordinatorState } from "./coordinator-state.ts";
import type { DelegationMove, DelegationStore, Fleet, WaitingSubnet } from "./ports.ts";
import { originOf, type ProbeSettings } from "./probe-target.ts";
import type { PutOffMoves } from "./put-off-moves.ts";

export interface RebalancePorts {
  readonly state: CoordinatorState;
  readonly fleet: Fleet;
  readonly delegations: Pick<DelegationStore, "loads" | "probedRtts" | "targetsFor" | "move">;
  readonly putOff: PutOffMoves;
}

export interface RebalanceSettings {
  readonly policy: BalancePolicyName | "none";
  readonly movesPerPass: number;
  readonly probe: ProbeSettings;
}

/** A measured round trip may exceed its prediction by so much before the move is put off. */
const surpriseMs = 20;
/** What planning takes for a crawler that could not measure a subnet: any other is better. */
const unmeasurableMs = 10_000;

/** Plans and makes the moves; returns the subnets that moved. */
export async function rebalanceLoad(
  ports: RebalancePorts,
  settings: RebalanceSettings,
  now: Date,
): Promise<SubnetId[]> {
  if (settings.policy === "none") return [];
  const input = await balanceInput(ports, now);
  if (overloads(input).length === 0) return [];
  const plan = balancePolicies[settings.policy](input).slice(0, settings.movesPerPass);
  const moves = await measuredMoves(plan, input, { ...ports, probe: settings.probe, now });
  const planned = new Map(moves.map((move) => [move.subnetId, move]));
  const made = await ports.delegations.move(moves, now);
  for (const subnetId of made) ports.state.moveDelegation(planned.get(subnetId) as DelegationMove);
  return made;
}

/**
 * Crawlers that are offline are left alone here: their subnets have their own way to others, after a grace
 * time (replace-crawler). A draining crawler has no capacity.
 */
async function balanceInput(ports: RebalancePorts, now: Date): Promise<BalanceInput> {
  const { state, fleet, delegations, putOff } = ports;
  const online = new Set(fleet.online());
  const crawlers = state.crawlers
    .filter(({ crawlerId }) => online.has(crawlerId))
    .map((crawler) => ({
      crawlerId: crawler.crawlerId,
      capacityPagesPerDay: crawler.state === "draining" ? 0 : effectiveCapacity(crawler),
    }));
  const loads = (await delegations.loads()).filter(({ crawlerId }) => online.has(crawlerId));
  const rtts = await delegations.probedRtts(loads.map(({ subnetId }) => subnetId));
  const bySubnet = new Map<SubnetId, Map<CrawlerId, number>>();
  for (const { subnetId, rttMs, crawlerId } of loads) {
    bySubnet.set(subnetId, new Map(rttMs === null ? [] : [[crawlerId, rttMs]]));
  }
  for (const { subnetId, crawlerId, rttMs } of rtts) bySubnet.get(subnetId)?.set(crawlerId, rttMs);
  for (const [subnetId, known] of bySubnet) {
    for (const [crawlerId, rttMs] of putOff.of(subnetId, now)) known.set(crawlerId, rttMs ?? unmeasurableMs);
  }
  return {
    crawlers,
    subnets: loads.map(({ subnetId, crawlerId, pagesPerDay }) => ({
      subnetId,
      crawlerId,
      loadPagesPerDay: pagesPerDay,
      rttMs: bySubnet.get(subnetId) ?? new Map(),
    })),
    crawlerRttMs: (a, b) => state.peerRtts.rttMs(a, b) ?? undefined,
  };
}

type CheckPorts = RebalancePorts & { readonly probe: ProbeSettings; readonly now: Date };

async function measuredMoves(
  plan: readonly Move[],
  input: BalanceInput,
  ports: CheckPorts,
): Promise<DelegationMove[]> {
  const known = new Map(input.subnets.map((subnet) => [subnet.subnetId, subnet.rttMs]));
  const targets = await ports.delegations.targetsFor(plan.map(({ subnetId }) => subnetId));
  const targetOf = new Map(targets.map((target) => [target.subnetId, target]));
  const checked = await Promise.all(
    plan.map(async (move) => {
      const rttsMs = known.get(move.subnetId) ?? new Map<CrawlerId, number>();
      const measured = rttsMs.get(move.to);
      if (measured !== undefined && measured < unmeasurableMs) return moveOf(move, measured);
      const target = targetOf.get(move.subnetId);
      // Nothing in it was ever resolved, so there is nothing to measure and nothing to lose.
      if (!target) return moveOf(move, null);
      return await measuredMove(move, { target, presentMs: rttsMs.get(move.from) ?? 0, ports });
    }),
  );
  return checked.filter((move) => move !== null);
}

/** The move with what its new crawler measures now; null when it is put off. */
async function measuredMove(
  move: Move,
  context: { readonly target: WaitingSubnet; readonly presentMs: number; readonly ports: CheckPorts },
): Promise<DelegationMove | null> {
  const { target, presentMs, ports } = context;
  const asked = { ...originOf(target), address: target.address, ...ports.probe };
  const outcome = await ports.fleet.probe(move.to, asked);
  const rttMs = outcome.type === "measured" ? outcome.rttMs : null;
  const most = presentMs + Math.max(0, move.addedRttMs) + surpriseMs;
  if (rttMs !== null && rttMs <= most) return moveOf(move, rttMs);
  ports.putOff.note({ subnetId: move.subnetId, to: move.to, rttMs }, ports.now);
  return null;
}

function moveOf(move: Move, rttMs: number | null): DelegationMove {
  const at = rttMs === null ? "" : `, at ${rttMs.toFixed(1)} ms`;
  return {
    subnetId: move.subnetId,
    from: move.from,
    to: move.to,
    cause: "overload",
    reason: `its crawler had more to do than it may; this one has room${at}`,
    rttMs,
  };
}

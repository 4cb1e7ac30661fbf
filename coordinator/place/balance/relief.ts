/**
 * Balances load (design section 6, paper section 4.4). The policy plans which subnets overloaded crawlers hand over and which
 * return home. RTTs that the plan relies on but are unmeasured are probed by the receiving crawler, a limited number per
 * pass, and then it plans again. The result is applied in one transaction.
 */

import type { CrawlerId, SubnetId } from "#core/ids";
import { saysNothing } from "#protocol/messages";
import type { Fleet } from "../crawlers/crawler.ts";
import type { DelegationMove, WaitingSubnet } from "../delegation/delegation.ts";
import { originOf, type ProbeSettings } from "../delegation/round-questions.ts";
import type { DelegationStore } from "../delegation/store.ts";
import { unmeasurableMs } from "../distances/predicted-rtts.ts";
import { makeMoves } from "./hand-overs.ts";
import { type ReliefInput, type ReliefPorts, type Rtts, reliefInput } from "./input.ts";
import { planPlacement } from "./placement.ts";
import type { BalanceInput, BalanceSettings, Move } from "./plan.ts";
import { planByVarianceRule } from "./variance-rule.ts";

interface RebalancePorts extends ReliefPorts {
  readonly fleet: Fleet;
  readonly delegations: ReliefPorts["delegations"] & Pick<DelegationStore, "move">;
}

interface RebalanceSettings extends Pick<BalanceSettings, "policy" | "movesPerPass"> {
  readonly probe: ProbeSettings;
  /** Mean days between two fetches of a page. */
  readonly recrawlDays: number;
}

/** Plans per pass, since new measurements may change the plan. */
const turnsPerPass = 3;

/** Plans and makes the moves. Returns the subnets that moved. */
export async function rebalanceLoad(
  ports: RebalancePorts,
  settings: RebalanceSettings,
  now: Date,
): Promise<SubnetId[]> {
  const { policy } = settings;
  if (policy === "none") return [];
  const input = await reliefInput(ports, settings.recrawlDays, now);
  if (input === null) return [];
  const isAnycast = (subnetId: SubnetId) => ports.anycast?.has(subnetId) ?? false;
  const measuring: Measuring = { ...{ input, ports, settings, now }, empty: new Set(), asked: new Set() };
  let plan = planRelief(policy, input, isAnycast);
  for (let turn = 0; turn < turnsPerPass && (await measure(plan, measuring)); turn += 1)
    plan = planRelief(policy, input, isAnycast);
  const sure = plan.moves.filter(({ subnetId, to }) => {
    if (input.denied.get(subnetId)?.has(to)) return false;
    return measuredMs(input.known, subnetId, to) !== null || measuring.empty.has(subnetId);
  });
  const moves = withinRoom(sure, input)
    .slice(0, settings.movesPerPass)
    .map((move) => moveOf(move, input.known, isAnycast(move.subnetId)));
  return await makeMoves(moves, ports, now);
}

interface Pair {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
}

interface ReliefPlan {
  readonly moves: readonly Move[];
  readonly probes: readonly Pair[];
}

function planRelief(
  policy: BalanceSettings["policy"],
  input: BalanceInput,
  isAnycast: (subnetId: SubnetId) => boolean,
): ReliefPlan {
  const subnets = input.subnets.map((subnet) => (isAnycast(subnet.subnetId) ? nobodyNearer(subnet) : subnet));
  if (policy === "min-cost-flow") return planPlacement({ ...input, subnets });
  const moves = planByVarianceRule({ ...input, subnets });
  const rttsOf = new Map(subnets.map(({ subnetId, rttMs }) => [subnetId, rttMs]));
  const unknown = moves.filter(({ subnetId, to }) => !rttsOf.get(subnetId)!.has(to));
  return { moves, probes: unknown.map(({ subnetId, to: crawlerId }) => ({ subnetId, crawlerId })) };
}

/** An anycast range never moves for latency, so no other crawler counts as nearer to it than its owner. */
function nobodyNearer(subnet: BalanceInput["subnets"][number]): BalanceInput["subnets"][number] {
  const leastMs = subnet.rttMs.get(subnet.crawlerId) ?? 0;
  const rttMs = new Map([...subnet.rttMs].map(([crawlerId, ms]) => [crawlerId, Math.max(ms, leastMs)]));
  return { ...subnet, rttMs: rttMs.set(subnet.crawlerId, leastMs) };
}

/** Null if it is unknown or could not be measured. */
function measuredMs(known: Rtts, subnetId: SubnetId, crawlerId: CrawlerId): number | null {
  const rttMs = known.get(subnetId)?.get(crawlerId) ?? unmeasurableMs;
  return rttMs < unmeasurableMs ? rttMs : null;
}

interface Measuring {
  readonly input: ReliefInput;
  /** Subnets without resolved hosts, which have nothing to measure and nothing to lose. */
  readonly empty: Set<SubnetId>;
  /** Pairs asked in this pass, whatever the outcome. */
  readonly asked: Set<string>;
  readonly ports: RebalancePorts;
  readonly settings: RebalanceSettings;
  readonly now: Date;
}

/** Measures the RTTs that the plan needs. Returns whether any crawler was asked. */
async function measure(plan: ReliefPlan, measuring: Measuring): Promise<boolean> {
  const wanted = wantedPairs(plan, measuring);
  if (wanted.length === 0) return false;
  const subnetIds = [...new Set(wanted.map(({ subnetId }) => subnetId))];
  const found = await measuring.ports.delegations.targetsFor(subnetIds);
  const targets = new Map(found.map((target) => [target.subnetId, target]));
  for (const subnetId of subnetIds) if (!targets.has(subnetId)) measuring.empty.add(subnetId);
  const pairs = wanted.filter(({ subnetId }) => targets.has(subnetId));
  await Promise.all(
    pairs.map(({ subnetId, crawlerId }) => measurePair(targets.get(subnetId)!, crawlerId, measuring)),
  );
  return pairs.length > 0;
}

/** Crawlers that failed before are asked again only if the plan needs them. */
function wantedPairs({ moves, probes }: ReliefPlan, { input, asked, settings }: Measuring): Pair[] {
  const again = moves
    .filter(({ subnetId, to }) => (input.known.get(subnetId)?.get(to) ?? 0) >= unmeasurableMs)
    .map(({ subnetId, to: crawlerId }) => ({ subnetId, crawlerId }));
  const nameOf = ({ subnetId, crawlerId }: Pair) => `${subnetId} ${crawlerId}`;
  const wanted = [...again, ...probes].filter(
    (pair) => !asked.has(nameOf(pair)) && !input.denied.get(pair.subnetId)?.has(pair.crawlerId),
  );
  const chosen = wanted.slice(0, Math.max(0, settings.movesPerPass - asked.size));
  for (const pair of chosen) asked.add(nameOf(pair));
  return chosen;
}

async function measurePair(
  target: WaitingSubnet,
  crawlerId: CrawlerId,
  { input, ports, settings, now }: Measuring,
): Promise<void> {
  const { subnetId } = target;
  // Other methods are not comparable with the known RTTs.
  const method = input.methods.get(subnetId) ?? settings.probe.method;
  const asked = { ...originOf(target), address: target.address, ...settings.probe, method };
  const outcome = await ports.fleet.probe(crawlerId, asked);
  const isMeasured = outcome.type === "measured" && outcome.method === method;
  const rttMs = isMeasured ? outcome.rttMs : null;
  // A probe prevented by the crawler's own limits may be tried again in the next pass.
  if (!saysNothing(outcome)) ports.putOff.note({ subnetId, to: crawlerId, rttMs, method }, now);
  input.known.get(subnetId)?.set(crawlerId, rttMs ?? unmeasurableMs);
}

/** The moves that fit now without exceeding the plan. The others wait for room. */
function withinRoom(moves: readonly Move[], { crawlers, subnets }: BalanceInput): Move[] {
  const pagesOf = new Map(subnets.map(({ subnetId, loadPagesPerDay }) => [subnetId, loadPagesPerDay]));
  const load = subnets.reduce((sum, { loadPagesPerDay }) => sum + loadPagesPerDay, 0);
  const carried = crawlers.reduce((sum, { capacityPagesPerDay }) => sum + capacityPagesPerDay, 0);
  // In a fleet that is too small, all crawlers take proportionally more.
  const factor = carried > 0 ? Math.max(1, load / carried) : 1;
  const room = new Map(crawlers.map((one) => [one.crawlerId, one.capacityPagesPerDay * factor]));
  const take = (crawlerId: CrawlerId, pages: number) =>
    room.set(crawlerId, (room.get(crawlerId) ?? 0) - pages);
  for (const { crawlerId, loadPagesPerDay } of subnets) take(crawlerId, loadPagesPerDay);
  const made = new Set<Move>();
  for (let before = -1; before !== made.size; ) {
    before = made.size;
    for (const move of moves) {
      const pages = pagesOf.get(move.subnetId) ?? 0;
      if (made.has(move) || (room.get(move.to) ?? 0) < pages) continue;
      take(move.to, pages);
      take(move.from, -pages);
      made.add(move);
    }
  }
  return [...made];
}

function moveOf({ subnetId, from, to }: Move, known: Rtts, isAnycast: boolean): DelegationMove {
  const rttMs = measuredMs(known, subnetId, to);
  const at = rttMs === null ? "" : `, at ${rttMs.toFixed(1)} ms`;
  const before = known.get(subnetId)?.get(from);
  const isNearer = !isAnycast && rttMs !== null && before !== undefined && rttMs < before;
  const reason = isNearer
    ? `this one is nearer and has room${at}`
    : `its crawler had more to do than it may; this one has room${at}`;
  return { subnetId, from, to, cause: isNearer ? "home" : "overload", reason, rttMs };
}

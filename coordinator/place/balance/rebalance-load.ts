/**
 * Balances load (design section 6, paper section 4.4). The policy plans which subnets overloaded crawlers give up and
 * which return home. RTTs that the plan relies on but are unmeasured are probed by the receiving crawler, a limited
 * number per pass, and then it plans again. The result is applied in one transaction.
 */

import type { CrawlerId, SubnetId } from "#core/ids";
import { saysNothing } from "#protocol/messages";
import type { Fleet } from "../crawlers/crawler.ts";
import type { AnycastRanges } from "../delegation/anycast.ts";
import type { DelegationMove, WaitingSubnet } from "../delegation/delegation.ts";
import type { DeniedTargets } from "../delegation/denied-targets.ts";
import { originOf, type ProbeSettings } from "../delegation/round-questions.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import type { DelegationStore } from "../delegation/store.ts";
import { unmeasurableMs } from "../distances/predicted-rtts.ts";
import { type ReliefInput, reliefInput } from "./input.ts";
import type { BalancePolicyName, Move } from "./plan.ts";
import { type MeasuredPair, type PutOffMoves, planRelief, type ReliefPlan } from "./rebalance.ts";
import { makeMoves } from "./successors.ts";

interface RebalancePorts {
  readonly state: CoordinatorState;
  /** Paced probes. */
  readonly fleet: Fleet;
  readonly delegations: Pick<
    DelegationStore,
    "crawlerLoads" | "loads" | "probedRtts" | "targetsFor" | "move"
  >;
  readonly putOff: PutOffMoves;
  /** Nobody denies anything when omitted. */
  readonly denied?: DeniedTargets;
  /** Nothing counts as anycast when omitted. */
  readonly anycast?: AnycastRanges;
}

interface RebalanceSettings {
  readonly policy: BalancePolicyName | "none";
  readonly movesPerPass: number;
  readonly probe: ProbeSettings;
  /** Mean days between two fetches of a page. */
  readonly recrawlDays: number;
}

type Rtts = Map<SubnetId, Map<CrawlerId, number>>;

/** Plans per pass, since new measurements may change the plan. */
const turnsPerPass = 3;

/** Plans and makes the moves; returns the subnets that moved. */
export async function rebalanceLoad(
  ports: RebalancePorts,
  settings: RebalanceSettings,
  now: Date,
): Promise<SubnetId[]> {
  if (settings.policy === "none") return [];
  const input = await reliefInput(ports, settings.recrawlDays, now);
  if (input === null) return [];
  const isAnycast = (subnetId: SubnetId) => ports.anycast?.has(subnetId) ?? false;
  const planning = planRelief(settings.policy, input, isAnycast);
  const measuring = newMeasuring(input, { ports, settings, now });
  let plan = planning.plan();
  for (let turn = 0; turn < turnsPerPass; turn += 1) {
    const measured = await measure(plan, measuring);
    if (measured.length === 0) break;
    planning.note(measured);
    plan = planning.plan();
  }
  const { rtts, empty } = measuring;
  const sure = plan.moves.filter(
    ({ subnetId, to }) =>
      !input.denied.get(subnetId)?.has(to) && (isKnown(rtts.get(subnetId)?.get(to)) || empty.has(subnetId)),
  );
  const planned = withinRoom(sure, input)
    .slice(0, settings.movesPerPass)
    .map((move) => moveOf(move, rtts, isAnycast(move.subnetId)));
  return await makeMoves(planned, ports, now);
}

const isKnown = (rttMs: number | undefined) => rttMs !== undefined && rttMs < unmeasurableMs;

interface Measuring {
  readonly rtts: Rtts;
  readonly denied: ReliefInput["denied"];
  readonly methods: ReliefInput["methods"];
  /** Subnets without resolved hosts: nothing to measure and nothing to lose. */
  readonly empty: Set<SubnetId>;
  /** Pairs asked in this pass, whatever came of it. */
  readonly asked: Set<string>;
  readonly ports: RebalancePorts;
  readonly settings: RebalanceSettings;
  readonly now: Date;
}

function newMeasuring(
  { subnets, denied, methods }: ReliefInput,
  context: Pick<Measuring, "ports" | "settings" | "now">,
): Measuring {
  const rtts: Rtts = new Map(subnets.map(({ subnetId, rttMs }) => [subnetId, new Map(rttMs)]));
  return { rtts, denied, methods, empty: new Set(), asked: new Set(), ...context };
}

/** Measures what the plan needs and remembers it for the next passes. */
async function measure(plan: ReliefPlan, measuring: Measuring): Promise<MeasuredPair[]> {
  const { empty, ports } = measuring;
  const wanted = wantedPairs(plan, measuring);
  if (wanted.length === 0) return [];
  const found = await ports.delegations.targetsFor([...new Set(wanted.map(({ subnetId }) => subnetId))]);
  const targets = new Map(found.map((target) => [target.subnetId, target]));
  for (const { subnetId } of wanted) if (!targets.has(subnetId)) empty.add(subnetId);
  return await Promise.all(
    wanted.flatMap(({ subnetId, crawlerId }) => {
      const target = targets.get(subnetId);
      return target ? [measurePair(target, crawlerId, measuring)] : [];
    }),
  );
}

/** Crawlers that failed before are asked again only if the plan needs them. */
function wantedPairs({ moves, probes }: ReliefPlan, { rtts, denied, asked, settings }: Measuring) {
  const again = moves
    .filter(({ subnetId, to }) => (rtts.get(subnetId)?.get(to) ?? 0) >= unmeasurableMs)
    .map(({ subnetId, to }) => ({ subnetId, crawlerId: to }));
  const wanted = [...again, ...probes].filter(
    (pair) => !asked.has(nameOf(pair)) && !denied.get(pair.subnetId)?.has(pair.crawlerId),
  );
  const chosen = wanted.slice(0, Math.max(0, settings.movesPerPass - asked.size));
  for (const pair of chosen) asked.add(nameOf(pair));
  return chosen;
}

const nameOf = ({ subnetId, crawlerId }: { subnetId: SubnetId; crawlerId: CrawlerId }) =>
  `${subnetId} ${crawlerId}`;

async function measurePair(
  target: WaitingSubnet,
  crawlerId: CrawlerId,
  { rtts, methods, ports, settings, now }: Measuring,
): Promise<MeasuredPair> {
  const { subnetId } = target;
  // Other methods are not comparable with what is known.
  const method = methods.get(subnetId) ?? settings.probe.method;
  const asked = { ...originOf(target), address: target.address, ...settings.probe, method };
  const outcome = await ports.fleet.probe(crawlerId, asked);
  const isMeasured = outcome.type === "measured" && outcome.method === method;
  const found = isMeasured ? outcome.rttMs : null;
  // A probe prevented by the crawler's own limits may be tried again in the next pass.
  if (!saysNothing(outcome)) ports.putOff.note({ subnetId, to: crawlerId, rttMs: found, method }, now);
  const rttMs = found ?? unmeasurableMs;
  rtts.get(subnetId)?.set(crawlerId, rttMs);
  return { subnetId, crawlerId, rttMs };
}

/** The moves that fit now without exceeding the plan; the others wait for room. */
function withinRoom(moves: readonly Move[], { crawlers, subnets }: ReliefInput): Move[] {
  const pagesOf = new Map(subnets.map(({ subnetId, loadPagesPerDay }) => [subnetId, loadPagesPerDay]));
  const most = Math.max(shortness({ crawlers, subnets }), 1);
  const room = new Map(
    crawlers.map(({ crawlerId, capacityPagesPerDay }) => [crawlerId, capacityPagesPerDay * most]),
  );
  const add = (crawlerId: CrawlerId, pages: number) =>
    room.set(crawlerId, (room.get(crawlerId) ?? 0) - pages);
  for (const { crawlerId, loadPagesPerDay } of subnets) add(crawlerId, loadPagesPerDay);
  const made: Move[] = [];
  for (let waiting = [...moves], left = -1; left !== waiting.length; ) {
    left = waiting.length;
    waiting = waiting.filter((move) => {
      const pages = pagesOf.get(move.subnetId) ?? 0;
      if ((room.get(move.to) ?? 0) < pages) return true;
      add(move.to, pages);
      add(move.from, -pages);
      made.push(move);
      return false;
    });
  }
  return made;
}

/** The factor by which the load exceeds the fleet's limits, in which case all take equally more. */
function shortness({ crawlers, subnets }: Pick<ReliefInput, "crawlers" | "subnets">): number {
  const load = subnets.reduce((sum, { loadPagesPerDay }) => sum + loadPagesPerDay, 0);
  const carried = crawlers.reduce((sum, { capacityPagesPerDay }) => sum + capacityPagesPerDay, 0);
  return carried > 0 ? load / carried : 1;
}

function moveOf({ subnetId, from, to }: Move, rtts: Rtts, isAnycast: boolean): DelegationMove {
  const known = rtts.get(subnetId)?.get(to);
  const rttMs = known !== undefined && isKnown(known) ? known : null;
  const at = rttMs === null ? "" : `, at ${rttMs.toFixed(1)} ms`;
  const before = rtts.get(subnetId)?.get(from);
  const isNearer = !isAnycast && rttMs !== null && before !== undefined && rttMs < before;
  const reason = isNearer
    ? `this one is nearer and has room${at}`
    : `its crawler had more to do than it may; this one has room${at}`;
  return { subnetId, from, to, cause: isNearer ? "home" : "overload", reason, rttMs };
}

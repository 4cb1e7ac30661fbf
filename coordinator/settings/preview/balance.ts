/** Another balance: planned with the loads as they are now, without a probe being made or a subnet being moved. */

import { type ReliefInput, reliefInput } from "../../balance/input.ts";
import { type BalanceInput, type Move, overloads } from "../../balance/plan.ts";
import { PutOffMoves, planRelief } from "../../balance/rebalance.ts";
import { CoordinatorState } from "../../delegation/state.ts";
import { meanIntervalDays } from "../../recrawl/plan.ts";
import type { PolicySettings } from "../schema.ts";
import type { PolicyFigure, PolicyStep, PreviewPolicies, PreviewPorts } from "./types.ts";

/** More are not planned for a preview: it would take too long. */
const mostSubnets = 5000;
const title = "Balance: the present loads planned anew";

export const previewBalance: PreviewPolicies = async (step, ports) => {
  const state = await fleetState(ports);
  const [before, after] = [
    await plannedFor(step.before, state, ports),
    await plannedFor(step.after, state, ports),
  ];
  if (before === "too many" || after === "too many") {
    const basis = `Not told: more than ${mostSubnets.toLocaleString("en-GB")} subnets would have to be planned.`;
    return { title, figures: [], basis, limits: [] };
  }
  return {
    title,
    figures: [
      figure("moves", "Subnets that would move", "subnets", [before.moves, after.moves]),
      figure("extraRttMs", "Mean RTT of what moves, against the present", "ms", [
        before.addedRttMs,
        after.addedRttMs,
      ]),
      figure("overloadsNow", "Crawlers with more to do than they may, now", "crawlers", [
        before.overloadsNow,
        after.overloadsNow,
      ]),
      figure("overloadsLeft", "Such crawlers after the moves", "crawlers", [
        before.overloadsLeft,
        after.overloadsLeft,
      ]),
      figure("minutes", "Time until all have moved", "min", [before.minutes, after.minutes]),
    ],
    basis: `${step.names.has("balance.policy") ? "Both policies plan" : "The policy plans"} with the loads of the ${state.crawlers.length} crawlers that are connected and not draining, and the RTTs that are stored; ${Math.round(100 * after.predictedShare)} % of the moves rely on a prediction and would be probed first.`,
    limits: [
      "What a partner denies and which ranges are anycast is not looked at; some moves would not be made.",
      ...(touchesLoad(step)
        ? ["Loads follow the recrawl interval at once, due times only as pages are fetched."]
        : []),
    ],
  };
};

const touchesLoad = ({ names }: PolicyStep) =>
  names.has("recrawl.intervalHours") || names.has("recrawl.strategy") || names.has("recrawl.total");

interface Planned {
  readonly moves: number;
  readonly addedRttMs: number | null;
  readonly overloadsNow: number;
  readonly overloadsLeft: number;
  readonly minutes: number | null;
  readonly predictedShare: number;
}

async function fleetState({ crawlers }: PreviewPorts): Promise<CoordinatorState> {
  const state = new CoordinatorState();
  const online = (await crawlers.list()).filter(
    ({ state: now, drainingSince }) => now === "online" && drainingSince === null,
  );
  state.setCrawlers(online);
  state.learnRtts(await crawlers.rtts());
  return state;
}

async function plannedFor(
  { balance, recrawl }: PolicySettings,
  state: CoordinatorState,
  { delegations, recrawlPlan, now }: PreviewPorts,
): Promise<Planned | "too many"> {
  const online = state.crawlers.map(({ crawlerId }) => crawlerId);
  const ports = { state, delegations, putOff: new PutOffMoves(), fleet: { online: () => online } };
  const input = await reliefInput(ports, meanIntervalDays(recrawl, (await recrawlPlan?.()) ?? null), now());
  if (input === null) return nothingToMove;
  if (input.subnets.length > mostSubnets) return "too many";
  const moves = balance.policy === "none" ? [] : movesBy(balance.policy, input);
  const predicted = moves.filter((move) => move.predicted).length;
  const passes = Math.ceil(moves.length / balance.movesPerPass);
  return {
    moves: moves.length,
    addedRttMs: meanAdded(moves, input),
    overloadsNow: overloads(input).length,
    overloadsLeft: overloads(moved(input, moves)).length,
    minutes: (passes * balance.everySeconds) / 60,
    predictedShare: moves.length === 0 ? 0 : predicted / moves.length,
  };
}

const nothingToMove: Planned = {
  moves: 0,
  addedRttMs: null,
  overloadsNow: 0,
  overloadsLeft: 0,
  minutes: 0,
  predictedShare: 0,
};

function movesBy(policy: Parameters<typeof planRelief>[0], input: ReliefInput): readonly Move[] {
  return planRelief(policy, input, () => false).plan().moves;
}

/** Over the pages of what moves. */
function meanAdded(moves: readonly Move[], { subnets }: BalanceInput): number | null {
  const pages = new Map(subnets.map(({ subnetId, loadPagesPerDay }) => [subnetId, loadPagesPerDay]));
  const total = moves.reduce((sum, { subnetId }) => sum + (pages.get(subnetId) ?? 0), 0);
  if (total === 0) return null;
  return moves.reduce((sum, move) => sum + move.addedRttMs * (pages.get(move.subnetId) ?? 0), 0) / total;
}

function moved(input: BalanceInput, moves: readonly Move[]): BalanceInput {
  const to = new Map(moves.map((move) => [move.subnetId, move.to]));
  const subnets = input.subnets.map((subnet) => ({
    ...subnet,
    crawlerId: to.get(subnet.subnetId) ?? subnet.crawlerId,
  }));
  return { ...input, subnets };
}

function figure(
  name: string,
  words: string,
  unit: string,
  [before, after]: readonly [number | null, number | null],
): PolicyFigure {
  return { name, words, unit, before, after };
}

/**
 * What a change of policies would come to, before it is made: computed from samples of what the crawl has done, in
 * bounded time. What cannot be told in time, or at all, is said so.
 */
import type { AlarmClock } from "#core/clock";
import type { Log } from "#core/log";
import { type ReliefInput, reliefInput } from "../../balance/input.ts";
import { type BalanceInput, type Move, overloads } from "../../balance/plan.ts";
import { PutOffMoves, planRelief } from "../../balance/rebalance.ts";
import type { PreviewName } from "../../core/policy.ts";
import { CoordinatorState } from "../../delegation/state.ts";
import { meanIntervalDays } from "../../recrawl/recrawl-settings.ts";
import { previewsOf } from "../catalogue.ts";
import type { PolicyName, PolicySettings } from "../schema.ts";
import { previewFrontier, previewLeases, previewLinks, previewPace } from "./crawl.ts";
import { previewDelegation, previewFirstFetches, previewMethod } from "./delegation.ts";
import { previewDistrust, previewRecalibration, previewSampling } from "./rates-and-trust.ts";
import type { PolicyEffect, PolicyFigure, PolicyStep, PreviewPolicies, PreviewPorts } from "./types.ts";

/** So long a preview is waited for, all effects together. */
const patienceMs = 2000;

// Another balance: planned with the loads as they are now, without a probe being made or a subnet being moved.

/** More are not planned for a preview: it would take too long. */
const mostSubnets = 5000;

const title = "Balance: the present loads planned again";

const previewBalance: PreviewPolicies = async (step, ports) => {
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

const nothingToMove: Planned = {
  moves: 0,
  addedRttMs: null,
  overloadsNow: 0,
  overloadsLeft: 0,
  minutes: 0,
  predictedShare: 0,
};

/** Each by its name in the settings that it tells of (settings/schema), in the order in which they are told. */
const previews: Readonly<Record<PreviewName, { readonly title: string; readonly preview: PreviewPolicies }>> =
  {
    rounds: { title: "Delegation: the latest rounds played again", preview: previewDelegation },
    "first-fetches": {
      title: "Subnets that are fetched first and probed meanwhile",
      preview: previewFirstFetches,
    },
    "probe-pace": { title: "Probes: what waits", preview: previewPace },
    "probe-method": { title: "Probes: what is known by each method", preview: previewMethod },
    balance: { title: "Balance: the present loads planned again", preview: previewBalance },
    recalibration: {
      title: "Recalibration: the latest fetches weighed again",
      preview: previewRecalibration,
    },
    "pages-due": { title: "Pages due, and what hosts may have", preview: previewFrontier },
    links: { title: "Links that are followed", preview: previewLinks },
    "second-fetches": { title: "Pages that are fetched twice", preview: previewSampling },
    distrust: { title: "Crawlers that would be judged otherwise", preview: previewDistrust },
    leases: { title: "Leases", preview: previewLeases },
  };

export async function previewPolicies(step: PolicyStep, ports: PreviewPorts): Promise<PolicyEffect[]> {
  const told = new Set([...step.names].flatMap(previewsOf));
  const wanted = Object.entries(previews).flatMap(([name, one]) =>
    told.has(name as PreviewName) ? [one] : [],
  );
  const untold = [...step.names].filter((name) => previewsOf(name).length === 0);
  const deadline = deadlineOf(ports.clock);
  try {
    const effects = await Promise.all(
      wanted.map(async ({ title, preview }) => {
        const effect = preview(step, ports).catch((error: unknown) => failed(title, error, ports.log));
        return await Promise.race([effect, deadline.passed.then(() => late(title))]);
      }),
    );
    return [...effects, ...(untold.length === 0 ? [] : [atOnce(untold)])];
  } finally {
    deadline.callOff();
  }
}

function deadlineOf(clock: AlarmClock): { readonly passed: Promise<void>; readonly callOff: () => void } {
  let callOff = () => {};
  const passed = new Promise<void>((resolve) => {
    callOff = clock.wake(patienceMs, resolve);
  });
  return { passed, callOff };
}

const late = (title: string): PolicyEffect => ({
  title,
  figures: [],
  basis: `Not told: reading or computing it took longer than ${patienceMs / 1000} s.`,
  limits: [],
});

function failed(title: string, error: unknown, log: Log): PolicyEffect {
  log.error({ error }, "what a change of policies would come to could not be computed");
  return {
    title,
    figures: [],
    basis: "Not told: the database did not answer as it should; the coordinator's log says why.",
    limits: [],
  };
}

const atOnce = (names: readonly PolicyName[]): PolicyEffect => ({
  title: "Without figures",
  figures: [],
  basis: `Nothing that is stored tells what ${names.join(", ")} would come to.`,
  limits: ["It holds from the moment it is saved, for what begins after that."],
});

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

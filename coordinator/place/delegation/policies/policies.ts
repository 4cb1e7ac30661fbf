/**
 * The policies, and a round that runs any of them. A new policy needs its file here and an entry in the list, which settings,
 * commands, simulations and the evaluation use.
 */
import type { CrawlerId } from "#core/ids";
import { type CandidateFleet, shortestTo } from "../fleet.ts";
import { ipmicraPolicy } from "./ipmicra.ts";
import { nearestPolicy } from "./nearest.ts";
import {
  type DelegationPolicy,
  type Observation,
  type ObservedProbe,
  type RoundInput,
  type RoundState,
  type RoundStep,
  rttOf,
  wasAsked,
} from "./round.ts";
import { exhaustivePolicy, randomPolicy } from "./yardsticks.ts";

/** In order of accuracy, the least exact first. */
export const delegationPolicies = [randomPolicy, ipmicraPolicy, nearestPolicy, exhaustivePolicy] as const;

export type PolicyName = (typeof delegationPolicies)[number]["name"];

export const policyNames: readonly PolicyName[] = delegationPolicies.map(({ name }) => name);

/** A round of one subnet, with the policy's own state. */
export interface ProbeRound {
  readonly policy: PolicyName;
  readonly state: RoundState;
  /** If absent, reports are taken as they are. */
  readonly witnessed?: WitnessedRound;
}

/** Crawlers' reports, and which of them are not believed. */
interface WitnessedRound {
  readonly input: RoundInput;
  readonly reports: readonly ObservedProbe[];
  /** Values, in ms, that replace the crawlers' reports. */
  readonly countedMs: ReadonlyMap<CrawlerId, number>;
  /** How many witnesses were asked about each. */
  readonly looks: ReadonlyMap<CrawlerId, number>;
}

const policyOf = new Map<PolicyName, DelegationPolicy<RoundState>>(
  delegationPolicies.map((policy) => [policy.name, policy]),
);

export const usesEarlierRounds = (policy: PolicyName): boolean => policyOf.get(policy)!.usesEarlierRounds;

export function startRound(policy: PolicyName, input: RoundInput): ProbeRound {
  const state = policyOf.get(policy)!.start(input);
  if (!input.hasWitnesses) return { policy, state };
  return { policy, state, witnessed: { input, reports: [], countedMs: new Map(), looks: new Map() } };
}

/** The next step. The function is pure, so it returns the same step until the next observation. */
export function nextStep(round: ProbeRound): RoundStep {
  const step = stepOf(round);
  const judgement = judgementOf(round, step);
  if (judgement?.type === "ask") return { type: "probe", crawlerId: judgement.crawlerId, how: "probe" };
  return withReports(step, round);
}

/** Returns the round with the crawler's answer added. */
export function observe(round: ProbeRound, crawlerId: CrawlerId, observation: Observation): ProbeRound {
  const { policy, witnessed } = round;
  const step = witnessed === undefined ? null : stepOf(round);
  const state = policyOf.get(policy)!.observe(round.state, crawlerId, observation);
  if (witnessed === undefined || step === null || state === round.state) return { ...round, state };
  const looks = new Map(witnessed.looks);
  if (step.type === "decided" && judgementOf(round, step)?.type === "ask")
    looks.set(step.crawlerId, 1 + (looks.get(step.crawlerId) ?? 0));
  const reports = [...witnessed.reports, { crawlerId, observation }];
  return heldAgainstOthers({ policy, state, witnessed: { ...witnessed, reports, looks } });
}

/** Adds a finished round's measurements to the policy's memory, if it learns RTTs. */
export function learnFromRound({ policy, state }: ProbeRound): void {
  policyOf.get(policy)!.learn?.(state);
}

const stepOf = ({ policy, state }: ProbeRound): RoundStep => policyOf.get(policy)!.step(state);

/** Null if no report can be judged. */
function judgementOf({ policy, state, witnessed }: ProbeRound, step: RoundStep): WinJudgement | null {
  if (witnessed === undefined || step.type !== "decided" || step.rttMs === null) return null;
  const { reports, looks, countedMs, input } = witnessed;
  const measured = reports.flatMap(({ crawlerId, observation }) => {
    const rttMs = rttOf(observation);
    return rttMs === null ? [] : [{ crawlerId, rttMs }];
  });
  const winner = measured.find(({ crawlerId }) => crawlerId === step.crawlerId);
  if (winner === undefined) return null;
  return judgeWin({
    winner,
    others: measured.flatMap((one) =>
      one === winner ? [] : [{ ...one, rttMs: countedMs.get(one.crawlerId) ?? one.rttMs }],
    ),
    fleet: state.fleet,
    looks: looks.get(step.crawlerId) ?? 0,
    draw: input.random ?? 0,
    mayAsk: (crawlerId) => !wasAsked(state, crawlerId) && input.mayTake?.(crawlerId) !== false,
    nextWithoutIt: () => {
      const next = stepOf({ policy, state: replayed(policy, witnessed, step.crawlerId) });
      return next.type === "probe" ? next.crawlerId : null;
    },
  });
}

/** Replaces each report that witnesses contradict by what they imply, until a confirmed one wins. */
function heldAgainstOthers(round: ProbeRound & { readonly witnessed: WitnessedRound }): ProbeRound {
  const step = stepOf(round);
  const judgement = judgementOf(round, step);
  if (judgement?.type !== "counts-as" || step.type !== "decided" || judgement.rttMs <= step.rttMs!)
    return round;
  const { policy } = round;
  const countedMs = new Map(round.witnessed.countedMs).set(step.crawlerId, judgement.rttMs);
  const witnessed = { ...round.witnessed, countedMs };
  return heldAgainstOthers({ policy, state: replayed(policy, witnessed), witnessed });
}

/** Replays the round with the values that count. `without` ignores one crawler's answer. */
function replayed(
  policy: PolicyName,
  { input, reports, countedMs }: WitnessedRound,
  without: CrawlerId | null = null,
): RoundState {
  const { start, observe: observed } = policyOf.get(policy)!;
  return reports.reduce((state, { crawlerId, observation }) => {
    const rttMs = countedMs.get(crawlerId);
    const counts = rttMs === undefined ? observation : { rttMs };
    return observed(state, crawlerId, crawlerId === without ? { failed: "left out" } : counts);
  }, start(input));
}

/** The reason names the original report beside the value that counts. */
function withReports(step: RoundStep, { witnessed }: ProbeRound): RoundStep {
  if (step.type !== "decided" || !witnessed?.countedMs.size || !("asked" in step.reason)) return step;
  const asked = step.reason.asked.map((one) => {
    const report = witnessed.reports.find(({ crawlerId }) => crawlerId === one.crawlerId)?.observation;
    const reportedMs = report === undefined ? null : rttOf(report);
    return witnessed.countedMs.has(one.crawlerId) && reportedMs !== null ? { ...one, reportedMs } : one;
  });
  return { ...step, reason: { ...step.reason, asked } };
}

// Checks whether others confirm the report that wins a round, since a crawler may falsely claim to be beside a target and the
// round would ask no other. If the winner says x, and another measured y to the target and D to the winner, then y and D
// differ by at most x (triangle inequality):
//
//     against   the larger of y and D exceeds 1.4 times x + the smaller + 5 ms; its weight grows with the excess
//     for       y + D hardly exceeds x: the winner's neighbour is near the target too; no other crawler is asked
//     agrees    y fits a target beside the winner, but both are large, so it may be chance: it weighs half
//
// The crawler nearest to the winner is the best witness and is asked first. If none is near, the one that the round would ask
// next without the winner is asked. At most four are asked. Contradictions are not remembered: a report that two witnesses
// contradict, or one strongly and none supports, counts as what the strictest implies, and the round continues. Real paths
// violate the triangle, so an honest crawler sometimes loses a subnet (figures: test/bench/results/trust.md). D is the
// witness's measurement, since a liar would state a fitting one.

interface Report {
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
}

interface WonReport {
  readonly winner: Report;
  /** Measurements of all other crawlers. Failed ones are absent. */
  readonly others: readonly Report[];
  readonly fleet: CandidateFleet;
  readonly looks: number;
  /** Uniform in [0, 1). It makes the choice among the nearest unpredictable. */
  readonly draw: number;
  readonly mayAsk: (crawlerId: CrawlerId) => boolean;
  readonly nextWithoutIt: () => CrawlerId | null;
}

type WinJudgement =
  | { readonly type: "believed" }
  | { readonly type: "ask"; readonly crawlerId: CrawlerId }
  | { readonly type: "counts-as"; readonly rttMs: number };

const slackMs = 5;
const leastRatio = 1.4;
/** Maximum weight of a witness, in steps of that ratio, so that one bad route does not outweigh two confirmations. */
const mostAgainst = 2;
const besideIt = { ms: 12, perMs: 0.5 } as const;
const weightOfBeside = 2;
const alike = { ms: 3, share: 0.1 } as const;
/** A lead of this much, for or against, is enough. */
const enough = 2;
/** The lead against the report that is enough when there is no crawler left to ask. */
const enoughAtLast = 1;
const mostLooks = 4;
/** The witness is drawn from this many of the nearest. */
const drawnFrom = 3;
/** The share of a single witness's distance that counts. */
const trustInOne = 0.7;

const believed: WinJudgement = { type: "believed" };

export function judgeWin(won: WonReport): WinJudgement {
  const { winner, looks } = won;
  const heard = testimonyOf(won);
  const surplus = heard.weightFor - heard.weightAgainst;
  if (surplus >= enough && (heard.isBeside || looks > 0)) return believed;
  if (-surplus >= enough && heard.against.length > 1) return countsAs(winner, heard.against);
  const crawlerId = looks < mostLooks ? nextWitness(won) : null;
  if (crawlerId !== null) return { type: "ask", crawlerId };
  return -surplus >= enoughAtLast ? countsAs(winner, heard.against) : believed;
}

interface Contradiction {
  readonly smallerMs: number;
  readonly largerMs: number;
}

function testimonyOf({ winner, others, fleet }: WonReport) {
  let [besides, alikes, weightAgainst] = [0, 0, 0];
  const against: Contradiction[] = [];
  for (const { crawlerId, rttMs } of others) {
    const straightMs = fleet.peerRtts.measuredMs(crawlerId, winner.crawlerId);
    if (straightMs === null) continue;
    // The direct RTT between two crawlers may overstate how far apart they are. A shorter detour is searched for only where
    // the direct RTT would make the report look false.
    const isFar = ratioOf(rttMs, straightMs, winner) > leastRatio && straightMs > rttMs;
    const apartMs = isFar ? shortestTo(fleet, crawlerId, winner.crawlerId, straightMs) : straightMs;
    const [smallerMs, largerMs] = rttMs < apartMs ? [rttMs, apartMs] : [apartMs, rttMs];
    const ratio = ratioOf(rttMs, apartMs, winner);
    if (ratio > leastRatio) {
      weightAgainst += Math.min(mostAgainst, Math.log(ratio) / Math.log(leastRatio));
      against.push({ smallerMs, largerMs });
    } else if (rttMs + apartMs <= winner.rttMs * (1 + besideIt.perMs) + besideIt.ms) besides += 1;
    else if (largerMs - smallerMs <= winner.rttMs + alike.ms + alike.share * largerMs) alikes += 1;
  }
  against.sort((a, b) => a.smallerMs - b.smallerMs);
  const weightFor = besides * weightOfBeside + alikes;
  return { weightFor, weightAgainst, isBeside: besides > 0, against };
}

const ratioOf = (rttMs: number, apartMs: number, winner: Report): number =>
  Math.max(rttMs, apartMs) / (Math.min(rttMs, apartMs) + winner.rttMs + slackMs);

/** The sharpest witness is nearest to either end, so its other distance is almost the distance between the ends. */
function countsAs(winner: Report, [sharpest, second]: readonly Contradiction[]): WinJudgement {
  if (sharpest === undefined) return believed;
  const leftMs =
    second === undefined ? trustInOne * sharpest.largerMs : Math.min(sharpest.largerMs, second.largerMs);
  return { type: "counts-as", rttMs: Math.max(winner.rttMs, leftMs) };
}

function nextWitness({ winner, fleet, looks, draw, mayAsk, nextWithoutIt }: WonReport): CrawlerId | null {
  const near: Report[] = [];
  for (const crawlerId of fleet.candidates) {
    const rttMs = mayAsk(crawlerId) ? fleet.peerRtts.measuredMs(crawlerId, winner.crawlerId) : null;
    if (rttMs === null || rttMs >= (near[drawnFrom - 1]?.rttMs ?? Number.POSITIVE_INFINITY)) continue;
    near.push({ crawlerId, rttMs });
    near.sort((a, b) => a.rttMs - b.rttMs);
    near.length = Math.min(near.length, drawnFrom);
  }
  if (near.length === 0) return null;
  const isWorthIt = looks === 0 || near[0]!.rttMs <= nearMs + winner.rttMs;
  // Derives a different number for each witness from the round's.
  const at = Math.floor(((draw * (looks + 1) * drawStep) % 1) * near.length);
  return isWorthIt ? near[at]!.crawlerId : nextWithoutIt();
}

/** A second witness this near to the winner is preferred to the round's next choice. */
const nearMs = 20;
const drawStep = 997;

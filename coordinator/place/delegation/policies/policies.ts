/**
 * The policies, and a round that runs any of them. A new policy needs its file here and an entry in the list;
 * settings, commands, simulations and the evaluation use the list.
 */
import type { CrawlerId } from "#core/ids";
import { exhaustivePolicy } from "./exhaustive.ts";
import { ipmicraPolicy } from "./ipmicra.ts";
import { nearestPolicy } from "./nearest.ts";
import { randomPolicy } from "./random.ts";
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
import { judgeWin, type WinJudgement } from "./second-witness.ts";

/** From the least exact to the most. */
export const delegationPolicies = [randomPolicy, ipmicraPolicy, nearestPolicy, exhaustivePolicy] as const;

export type PolicyName = (typeof delegationPolicies)[number]["name"];

export const policyNames: readonly PolicyName[] = delegationPolicies.map(({ name }) => name);

/** A round of one subnet, with the policy's own state. */
export interface ProbeRound {
  readonly policy: PolicyName;
  readonly state: RoundState;
  /** When absent, reports are taken as they are. */
  readonly witnessed?: WitnessedRound;
}

/** Crawlers' reports, and which of them are not believed. */
interface WitnessedRound {
  readonly input: RoundInput;
  readonly reports: readonly ObservedProbe[];
  /** Replaces their reports, in ms. */
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

/** What to do next; pure, so that it returns the same step until the next observation. */
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

/** Null when no report can be judged. */
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

/** Replaces reports that witnesses contradict by what these imply, until a confirmed one wins. */
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

/** Replays the round with the values that count; `without` ignores one crawler's answer. */
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

/**
 * A probe round, which asks crawlers in turn until decided. It is pure: a policy returns the next step for a state, and the
 * caller does the asking and adds the answer, which yields a new state.
 *
 *     start ──► step ──► probe c ──► observe(c, answer) ──► step ──► … ──► decided | nobody
 *
 * A policy asks every candidate at most once and no other crawler, so every round ends. A failed probe says nothing about
 * distance and excludes its crawler from this round.
 */
import type { CrawlerId } from "#core/ids";
import type { CandidateFleet } from "../fleet.ts";
import type { DelegationKnowledge, Prior } from "../knowledge.ts";
import type { Placement } from "../placement.ts";
import type { LearnedRtts } from "./learned-rtts.ts";
import {
  type AskedCrawler,
  type DelegationReason,
  maxNamedCrawlers,
  type RunnerUp,
  type Verdict,
} from "./reason.ts";

export interface PolicyParameters {
  /** ipmicra: an answer below this is good enough (paper section 4.2). */
  readonly thresholdMs: number;
  /** nearest: ms of RTT that a probe must be expected to save. 0 is most accurate and asks most. */
  readonly lambdaMs: number;
  /** The first observation is the crawl's own GET, which costs no probe. */
  readonly getFirst: boolean;
  /** Number of failures after which the target, without any answer, counts as silent. Not used by exhaustive. */
  readonly giveUpAfter: number;
}

export const defaultParameters: PolicyParameters = {
  thresholdMs: 50,
  lambdaMs: 2,
  getFirst: false,
  giveUpAfter: 5,
};

export interface RoundInput {
  readonly placement: Placement;
  readonly fleet: CandidateFleet;
  readonly knowledge: DelegationKnowledge;
  readonly parameters: PolicyParameters;
  /** Uniform in [0, 1), for the policy random and the choice of witnesses. */
  readonly random?: number;
  /** nearest: earlier rounds' measurements by the same method. `learnFromRound` adds to it. */
  readonly learned: LearnedRtts;
  /** nearest: the largest fleet considered as a whole. */
  readonly listFrom?: number;
  /** Whether a winning report needs confirmation by others (policies.ts). */
  readonly hasWitnesses?: boolean;
  /** nearest: candidates for which this is false are neither asked nor runners-up. */
  readonly mayTake?: (crawlerId: CrawlerId) => boolean;
}

export type Observation = { readonly rttMs: number } | { readonly failed: string };

export interface ObservedProbe {
  readonly crawlerId: CrawlerId;
  readonly observation: Observation;
}

export interface RoundState {
  readonly policy: string;
  readonly fleet: CandidateFleet;
  readonly parameters: PolicyParameters;
  readonly prior: Prior;
  readonly probes: readonly ObservedProbe[];
  readonly mayTake?: (crawlerId: CrawlerId) => boolean;
}

export type RoundStep =
  /** `get`: the answer may come from the crawl's own GET. */
  | { readonly type: "probe"; readonly crawlerId: CrawlerId; readonly how: "probe" | "get" }
  | Decision
  | { readonly type: "nobody"; readonly reason: DelegationReason };

export interface Decision {
  readonly type: "decided";
  readonly crawlerId: CrawlerId;
  /** Null if this crawler was not asked (random, same company, only candidate) or did not answer. */
  readonly rttMs: number | null;
  /** The crawler that takes over when this one leaves. Null if there was no other candidate. */
  readonly runnerUpId: CrawlerId | null;
  readonly runnerUpRttMs: number | null;
  /** False if no crawler answered or nothing could be compared. The round is repeated later. */
  readonly measured: boolean;
  readonly reason: DelegationReason;
}

export interface DelegationPolicy<State extends RoundState> {
  /** The name used in settings, commands and stored rounds. */
  readonly name: string;
  readonly words: string;
  /** True if concurrent rounds know less than consecutive ones. */
  readonly usesEarlierRounds: boolean;
  start(input: RoundInput): State;
  step(state: State): RoundStep;
  observe(state: State, crawlerId: CrawlerId, observation: Observation): State;
  /** Learns from a finished round. Omitted by policies that learn no RTTs. */
  learn?(state: State): void;
}

export function openState(policy: string, { fleet, parameters }: RoundInput, prior: Prior): RoundState {
  return { policy, fleet, parameters, prior, probes: [] };
}

/** Ignores answers of non-candidates and repeated answers. An invalid time (negative, NaN) counts as failed. */
export function withObservation<State extends RoundState>(
  state: State,
  crawlerId: CrawlerId,
  observation: Observation,
): State {
  if (!state.fleet.indexOf.has(crawlerId) || wasAsked(state, crawlerId)) return state;
  const isNone = rttOf(observation) === null && "rttMs" in observation;
  const heard: Observation = isNone ? { failed: "no valid time" } : observation;
  return { ...state, probes: [...state.probes, { crawlerId, observation: heard }] };
}

export function rttOf(observation: Observation): number | null {
  if ("failed" in observation) return null;
  return observation.rttMs >= 0 && Number.isFinite(observation.rttMs) ? observation.rttMs : null;
}

export function wasAsked(state: RoundState, crawlerId: CrawlerId): boolean {
  return state.probes.some((probe) => probe.crawlerId === crawlerId);
}

export function probeStep(state: RoundState, crawlerId: CrawlerId): RoundStep {
  const how = state.parameters.getFirst && state.probes.length === 0 ? "get" : "probe";
  return { type: "probe", crawlerId, how };
}

/** Index of the fastest answer, or −1 if there is none. Ties go to the earlier candidate. */
export function fastestIndex({ probes, fleet }: RoundState): number {
  let best = -1;
  let bestMs = Number.POSITIVE_INFINITY;
  for (const { crawlerId, observation } of probes) {
    const rttMs = rttOf(observation);
    if (rttMs === null || rttMs > bestMs) continue;
    const index = fleet.indexOf.get(crawlerId)!;
    if (rttMs === bestMs && index > best) continue;
    best = index;
    bestMs = rttMs;
  }
  return best;
}

/** The candidate's RTT in ms. Null if not asked or not measured. */
export function rttAt({ probes, fleet }: RoundState, index: number): number | null {
  const crawlerId = fleet.candidates[index];
  const probe = probes.find((one) => one.crawlerId === crawlerId);
  return probe === undefined ? null : rttOf(probe.observation);
}

/** True when enough crawlers failed and none answered. */
export function looksSilent(state: RoundState): boolean {
  return state.probes.length >= state.parameters.giveUpAfter && fastestIndex(state) < 0;
}

/** The crawlers asked so far, in order, for the reason. */
export function askedCrawlers(state: RoundState): { asked: AskedCrawler[]; askedCount: number } {
  const asked = state.probes.slice(0, maxNamedCrawlers).map(({ crawlerId, observation }) => ({
    crawlerId,
    rttMs: rttOf(observation),
    failed: "failed" in observation ? observation.failed : null,
  }));
  return { asked, askedCount: state.probes.length };
}

// Shared endings of rounds: the winner, the runner-up and the common reasons.

/** Decides for the candidate at `index`, with the runner-up that answers and triangle suggest. */
export function decidedFor(state: RoundState, index: number, verdict: Verdict): Decision {
  const runnerUp = runnerUpOf(state, index);
  return {
    type: "decided",
    crawlerId: state.fleet.candidates[index]!,
    rttMs: rttAt(state, index),
    runnerUpId: runnerUp?.crawlerId ?? null,
    runnerUpRttMs: runnerUp?.rttMs ?? null,
    measured: verdict.type !== "by-prior" && verdict.type !== "only-candidate",
    reason: { ...verdict, runnerUp },
  };
}

/** Called if no crawler answered: picks the likeliest candidate by past delegations, to be tried again. */
export function decidedByPrior(state: RoundState): Decision {
  const index = Math.max(
    0,
    likeliestOf(state, () => true),
  );
  return decidedFor(state, index, {
    type: "by-prior",
    share: Math.min(1, state.prior.shares[index] ?? 0),
    ...askedCrawlers(state),
    candidates: state.fleet.candidates.length,
  });
}

/**
 * Ends rounds with no candidate or only one without a probe. Null for others. A sole candidate counts as unmeasured until
 * another crawler can be asked.
 */
export function decidedAtOnce(state: RoundState): RoundStep | null {
  if (state.fleet.candidates.length === 0) return { type: "nobody", reason: { type: "no-candidates" } };
  if (state.fleet.candidates.length === 1) return decidedFor(state, 0, { type: "only-candidate" });
  return null;
}

/** The likeliest candidate that may take the subnet, by past delegations. Ties go to the earlier one. −1 if there is none. */
export function likeliestOf(
  { prior: { shares }, fleet: { candidates }, mayTake }: RoundState,
  isLookedFor: (index: number) => boolean,
): number {
  let best = -1;
  for (let index = 0; index < candidates.length; index++) {
    if (best >= 0 && !(shares[index]! > shares[best]!)) continue;
    if (isLookedFor(index) && mayTake?.(candidates[index]!) !== false) best = index;
  }
  return best;
}

/**
 * The other candidate with the smallest known RTT: its own answer, or its upper bound `y + D[a][c]` over the answers
 * (triangle inequality). If there is none, the likeliest. Crawlers that failed come last.
 */
function runnerUpOf(state: RoundState, winner: number): RunnerUp {
  const { fleet, prior, probes, mayTake } = state;
  const asked = new Set(probes.map(({ crawlerId }) => fleet.indexOf.get(crawlerId)!));
  let best = -1;
  let bestMs = Number.POSITIVE_INFINITY;
  const hear = (index: number, atMostMs: number) => {
    if (atMostMs > bestMs || index === winner || index === best) return;
    if (atMostMs === bestMs && !isBefore(index, best, prior.shares)) return;
    if (mayTake?.(fleet.candidates[index]!) === false) return;
    best = index;
    bestMs = atMostMs;
  };
  for (const { crawlerId, observation } of probes) {
    const rttMs = rttOf(observation);
    if (rttMs === null) continue;
    const index = fleet.indexOf.get(crawlerId)!;
    hear(index, rttMs);
    const { length, peers, bestMs: apartMs } = fleet.peerRtts.knownTo(fleet.peerSlots[index]!);
    for (let at = 0; at < length; at++) {
      const mostMs = rttMs + apartMs[at]!;
      if (!(mostMs <= bestMs)) continue;
      const peer = fleet.indexOfPeer[peers[at]!] ?? -1;
      if (peer >= 0 && !asked.has(peer)) hear(peer, mostMs);
    }
  }
  const isKnown = best >= 0;
  if (!isKnown) best = likeliestOf(state, (index) => index !== winner && !asked.has(index));
  if (best < 0) best = likeliestOf(state, (index) => index !== winner);
  const crawlerId = fleet.candidates[best];
  if (crawlerId === undefined) return null;
  return { crawlerId, rttMs: rttAt(state, best), atMostMs: isKnown ? bestMs : null };
}

/** If the times are equal, the likelier goes first, then the earlier. */
function isBefore(index: number, other: number, shares: Float64Array): boolean {
  return shares[index]! > shares[other]! || (shares[index] === shares[other] && index < other);
}

/**
 * Triangle inequality of RTTs: a crawler that measured y to a target and D to another crawler shows that the other is
 * at least |D − y| away. Real paths violate it, so only this part of the bound is believed.
 */
export const trustInTriangle = 0.8;

/**
 * A probe round: asking crawlers in turn until decided. Pure: a policy gives the next step for a state, the
 * caller does the asking and feeds the answer in, and gets a new state; states are never changed.
 *
 *   start ──► step ──► probe c ──► observe(c, answer) ──► step ──► … ──► decided | nobody
 *
 * Every policy is bounded by the number of candidates: it never asks a crawler twice, and never one that is
 * not a candidate. A probe that fails is no observation of distance: that crawler is out for this round.
 */
import type { CrawlerId } from "#core/ids";
import type { CandidateFleet } from "../fleet.ts";
import type { DelegationKnowledge } from "../knowledge.ts";
import type { Placement } from "../placement.ts";
import type { Prior } from "../prior.ts";
import type { LearnedRtts } from "./learned-rtts.ts";
import {
  type AskedCrawler,
  type DelegationReason,
  maxNamedCrawlers,
  type RunnerUp,
  type Verdict,
} from "./reason.ts";

/** What an operator may set; policies read only what concerns them. */
export interface PolicyParameters {
  /** ipmicra: an answer below this is good enough (paper section 4.2). */
  readonly thresholdMs: number;
  /** nearest: what a probe has to be expected to save, in ms of RTT. 0: safest, most probes. */
  readonly lambdaMs: number;
  /** The first observation is the crawl's own GET, which costs no probe. */
  readonly getFirst: boolean;
  /** So many crawlers without an answer, and none with one: the target answers nobody. Not for exhaustive. */
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
  /** A number from 0 up to, not including, 1: for the policy random, and for whom a win is held against. */
  readonly random?: number;
  /** nearest: what earlier rounds measured, by the same method. `learnFromRound` adds a finished one. */
  readonly learned: LearnedRtts;
  /** nearest: the largest fleet that is looked at whole. */
  readonly listFrom?: number;
  /** A report that wins is believed only where others bear it out (second-witness.ts). */
  readonly hasWitnesses?: boolean;
  /** nearest: candidates that may not take the subnet after all are not asked, nor are they runners-up. */
  readonly mayTake?: (crawlerId: CrawlerId) => boolean;
}

export type Observation = { readonly rttMs: number } | { readonly failed: string };

export interface ObservedProbe {
  readonly crawlerId: CrawlerId;
  readonly observation: Observation;
}

/** What every policy's state holds. */
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
  /** Null when this crawler was not asked (random, same company, only candidate) or did not answer. */
  readonly rttMs: number | null;
  /** Who takes over when the crawler leaves; null when there is no other candidate. */
  readonly runnerUpId: CrawlerId | null;
  readonly runnerUpRttMs: number | null;
  /** False where nobody answered, or there was nobody to compare with: to be tried again. */
  readonly measured: boolean;
  readonly reason: DelegationReason;
}

export interface DelegationPolicy<State extends RoundState> {
  /** In settings, commands and stored rounds. */
  readonly name: string;
  /** What it does, for who chooses among them. */
  readonly words: string;
  /** Rounds under way together then know less than one after the other. */
  readonly usesEarlierRounds: boolean;
  start(input: RoundInput): State;
  step(state: State): RoundStep;
  observe(state: State, crawlerId: CrawlerId, observation: Observation): State;
  /** What a finished round teaches; left out, it learns no RTTs. */
  learn?(state: State): void;
}

/** The state before anything is asked. */
export function openState(policy: string, { fleet, parameters }: RoundInput, prior: Prior): RoundState {
  return { policy, fleet, parameters, prior, probes: [] };
}

/**
 * Adds an answer. One from a crawler that is no candidate, or a second one from the same crawler, changes
 * nothing; a time that is none (negative, NaN) counts as failed.
 */
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

/** The index of the fastest answer, -1 when there is none; the earlier candidate wins a tie. */
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

/** What the candidate at an index measured, in ms; null where it did not, or was not asked. */
export function rttAt({ probes, fleet }: RoundState, index: number): number | null {
  const crawlerId = fleet.candidates[index];
  const probe = probes.find((one) => one.crawlerId === crawlerId);
  return probe === undefined ? null : rttOf(probe.observation);
}

/** True when so many asked crawlers failed, and none answered, that the target seems to answer nobody. */
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

// How every policy closes a round: who takes the subnet, who would take over, and the shared reasons.

/** The decision for the candidate at `index`, with the runner-up that the answers and the triangle suggest. */
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

/** Nobody answered: the likeliest candidate by past delegations, marked to be tried again. */
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
 * Rounds that need no probe: no candidate at all, or only one. What that one gets says nothing of who is near, so it
 * counts as unmeasured until somebody else can be asked. Null for all others.
 */
export function decidedAtOnce(state: RoundState): RoundStep | null {
  if (state.fleet.candidates.length === 0) return { type: "nobody", reason: { type: "no-candidates" } };
  if (state.fleet.candidates.length === 1) return decidedFor(state, 0, { type: "only-candidate" });
  return null;
}

/** The likeliest of those that may take the subnet, by past delegations; the earlier wins a tie; −1: there is none. */
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
 * The other candidate with the smallest RTT, as far as is known: its own answer, or else the most it can be,
 * `y + D[a][c]` over the crawlers that answered (triangle inequality). Where nothing is known of anybody: the likeliest.
 * A crawler that failed to answer is taken last.
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

/** Of two with the same time the likelier, of equals the earlier. */
function isBefore(index: number, other: number, shares: Float64Array): boolean {
  return shares[index]! > shares[other]! || (shares[index] === shares[other] && index < other);
}

/**
 * The triangle inequality among RTTs: a crawler that measured y to a target, and D to another crawler, says that
 * the other is at least |D − y| from it. Real paths violate it, so only a part of the bound is believed.
 */
export const trustInTriangle = 0.8;

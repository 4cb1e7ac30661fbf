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
import { type CandidateFleet, rttsToCandidates } from "../fleet.ts";
import type { DelegationKnowledge } from "../knowledge.ts";
import type { Placement } from "../placement.ts";
import type { LocationHint, Prior } from "../prior.ts";
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
  /** random: a number from 0 up to, not including, 1. */
  readonly random?: number;
  /** nearest: what earlier rounds measured, by the same method. `learnFromRound` adds a finished one. */
  readonly learned: LearnedRtts;
  /** nearest: kilometres from the target to each candidate, in the fleet's order. */
  readonly locationHint?: LocationHint;
  /** nearest: the largest fleet that is looked at whole. */
  readonly listFrom?: number;
  /** nearest, of a fleet that is not: candidates that may not take the subnet after all are not asked. */
  readonly mayTake?: (crawlerId: CrawlerId) => boolean;
}

export type Observation = { readonly rttMs: number } | { readonly failed: string };

export interface ObservedProbe {
  readonly crawlerId: CrawlerId;
  readonly observation: Observation;
  /** What this answer left possible: per candidate the least RTT (ms) it can have. For drawing a round. */
  readonly lowerBoundsMs: Float64Array;
}

/** What every policy's state holds; the answers are per candidate, NaN where there is none. */
export interface RoundState {
  readonly policy: string;
  readonly fleet: CandidateFleet;
  readonly parameters: PolicyParameters;
  readonly prior: Prior;
  readonly rttsMs: Float64Array;
  readonly probes: readonly ObservedProbe[];
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
  /** False only when crawlers were asked and nobody answered: to be tried again. */
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
export function openState(policy: string, input: RoundInput, prior: Prior): RoundState {
  const { fleet, parameters } = input;
  const rttsMs = new Float64Array(fleet.candidates.length).fill(Number.NaN);
  return { policy, fleet, parameters, prior, rttsMs, probes: [] };
}

/**
 * Adds an answer. One from a crawler that is no candidate, or a second one from the same crawler, changes
 * nothing; a time that is none (negative, NaN) counts as failed.
 */
export function withObservation<State extends RoundState>(
  state: State,
  crawlerId: CrawlerId,
  observation: Observation,
  lowerBoundsMs: Float64Array = new Float64Array(0),
): State {
  const index = state.fleet.indexOf.get(crawlerId);
  if (index === undefined || wasAsked(state, crawlerId)) return state;
  const rttMs = rttOf(observation);
  const rttsMs = state.rttsMs.slice();
  rttsMs[index] = rttMs ?? Number.NaN;
  const heard: Observation =
    rttMs === null && "rttMs" in observation ? { failed: "no valid time" } : observation;
  return { ...state, rttsMs, probes: [...state.probes, { crawlerId, observation: heard, lowerBoundsMs }] };
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
export function fastestIndex(state: RoundState): number {
  let best = -1;
  for (let index = 0; index < state.rttsMs.length; index++) {
    const rttMs = state.rttsMs[index]!;
    if (rttMs < (state.rttsMs[best] ?? Number.POSITIVE_INFINITY)) best = index;
  }
  return best;
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
export function decidedFor(
  state: RoundState,
  index: number,
  verdict: Verdict,
  /** What the triangle says already of each candidate: RTT in ms at most; infinite where nothing is known. */
  knownMostMs?: Float64Array,
): Decision {
  const runnerUp = runnerUpOf(state, index, knownMostMs);
  return {
    type: "decided",
    crawlerId: state.fleet.candidates[index]!,
    rttMs: knownRtt(state, index),
    runnerUpId: runnerUp?.crawlerId ?? null,
    runnerUpRttMs: runnerUp?.rttMs ?? null,
    measured: verdict.type !== "by-prior",
    reason: { ...verdict, runnerUp },
  };
}

/** Nobody answered: the likeliest candidate by past delegations, marked to be tried again. */
export function decidedByPrior(state: RoundState, candidates = state.fleet.candidates.length): Decision {
  const index = likeliestIndex(state.prior.shares);
  return decidedFor(state, index, {
    type: "by-prior",
    share: Math.min(1, state.prior.shares[index] ?? 0),
    ...askedCrawlers(state),
    candidates,
  });
}

/** Rounds that need no probe: no candidate at all, or only one. Null for all others. */
export function decidedAtOnce(state: RoundState): RoundStep | null {
  if (state.fleet.candidates.length === 0) return { type: "nobody", reason: { type: "no-candidates" } };
  if (state.fleet.candidates.length === 1) return decidedFor(state, 0, { type: "only-candidate" });
  return null;
}

/** The earlier candidate wins a tie. */
export function likeliestIndex(shares: Float64Array): number {
  let best = 0;
  for (let index = 1; index < shares.length; index++) if (shares[index]! > shares[best]!) best = index;
  return best;
}

/**
 * The other candidate with the smallest RTT, as far as is known: its own answer, or else the most it can be,
 * `y + D[a][c]` over the crawlers that answered (triangle inequality). Before any answer: the likeliest.
 * A crawler that failed to answer is taken last.
 */
function runnerUpOf(state: RoundState, winner: number, knownMostMs?: Float64Array): RunnerUp {
  const upperMs = withAnswers(state, knownMostMs?.slice() ?? mostByTriangle(state));
  const { shares } = state.prior;
  let best = -1;
  for (let index = 0; index < upperMs.length; index++) {
    if (index === winner) continue;
    const nearer = best < 0 || upperMs[index]! < upperMs[best]!;
    const likelier = best >= 0 && upperMs[index] === upperMs[best] && shares[index]! > shares[best]!;
    if (nearer || likelier) best = index;
  }
  const crawlerId = state.fleet.candidates[best];
  if (crawlerId === undefined) return null;
  const atMostMs = upperMs[best]! < unknownMs ? upperMs[best]! : null;
  return { crawlerId, rttMs: knownRtt(state, best), atMostMs };
}

/** Stands for an RTT of which nothing is known: above every real one, below a crawler that failed. */
const unknownMs = 1e9;

/** Per candidate the least y + D over the crawlers that answered; infinite where nothing is known. */
function mostByTriangle(state: RoundState): Float64Array {
  const { candidates, indexOf } = state.fleet;
  const atMostMs = new Float64Array(candidates.length).fill(Number.POSITIVE_INFINITY);
  for (const { crawlerId } of state.probes) {
    const asked = indexOf.get(crawlerId)!;
    const rttMs = state.rttsMs[asked]!;
    if (Number.isNaN(rttMs)) continue;
    const peers = rttsToCandidates(state.fleet, asked);
    for (let index = 0; index < peers.length; index++) {
      if (rttMs + peers[index]! < atMostMs[index]!) atMostMs[index] = rttMs + peers[index]!;
    }
  }
  return atMostMs;
}

/** Per candidate its RTT, or that bound; `unknownMs` where nothing is known, infinite after a failure. */
function withAnswers(state: RoundState, atMostMs: Float64Array): Float64Array {
  for (let index = 0; index < atMostMs.length; index++)
    if (!(atMostMs[index]! < unknownMs)) atMostMs[index] = unknownMs;
  for (const { crawlerId } of state.probes) {
    const index = state.fleet.indexOf.get(crawlerId)!;
    const rttMs = state.rttsMs[index]!;
    atMostMs[index] = Number.isNaN(rttMs) ? Number.POSITIVE_INFINITY : rttMs;
  }
  return atMostMs;
}

function knownRtt(state: RoundState, index: number): number | null {
  const rttMs = state.rttsMs[index];
  return rttMs === undefined || Number.isNaN(rttMs) ? null : rttMs;
}

/**
 * The triangle inequality among RTTs: a crawler that measured y to a target, and D to another crawler, says that
 * the other is at least |D − y| from it. Real paths violate it, so only a part of the bound is believed.
 */
export const trustInTriangle = 0.8;

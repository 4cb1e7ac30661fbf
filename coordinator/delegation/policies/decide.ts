/** How every policy closes a round: who takes the subnet, who would take over, and the shared reasons. */

import { rttsToCandidates } from "../fleet.ts";
import type { RunnerUp, Verdict } from "./reason.ts";
import { askedCrawlers, type Decision, type RoundState, type RoundStep } from "./round.ts";

/** The decision for the candidate at `index`, with the runner-up that the answers and the triangle suggest. */
export function decidedFor(state: RoundState, index: number, verdict: Verdict): Decision {
  const runnerUp = runnerUpOf(state, index);
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
export function decidedByPrior(state: RoundState): Decision {
  const index = likeliestIndex(state.prior.shares);
  return decidedFor(state, index, {
    type: "by-prior",
    share: Math.min(1, state.prior.shares[index] ?? 0),
    ...askedCrawlers(state),
    candidates: state.fleet.candidates.length,
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
function runnerUpOf(state: RoundState, winner: number): RunnerUp {
  const upperMs = upperBounds(state);
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

/** Per candidate its RTT, or an upper bound; `unknownMs` where nothing is known, infinite after a failure. */
function upperBounds(state: RoundState): Float64Array {
  const { candidates, indexOf } = state.fleet;
  const atMostMs = new Float64Array(candidates.length).fill(unknownMs);
  for (const { crawlerId } of state.probes) {
    const asked = indexOf.get(crawlerId)!;
    const rttMs = state.rttsMs[asked]!;
    if (Number.isNaN(rttMs)) continue;
    const peers = rttsToCandidates(state.fleet, asked);
    for (let index = 0; index < peers.length; index++) {
      if (rttMs + peers[index]! < atMostMs[index]!) atMostMs[index] = rttMs + peers[index]!;
    }
  }
  for (const { crawlerId } of state.probes) {
    const index = indexOf.get(crawlerId)!;
    const rttMs = state.rttsMs[index]!;
    atMostMs[index] = Number.isNaN(rttMs) ? Number.POSITIVE_INFINITY : rttMs;
  }
  return atMostMs;
}

function knownRtt(state: RoundState, index: number): number | null {
  const rttMs = state.rttsMs[index];
  return rttMs === undefined || Number.isNaN(rttMs) ? null : rttMs;
}

/**
 * nearest, the default: a prior from the tree, pruned by the triangle inequality, stopped by expected gain
 * (design section 5). The operator's one knob is λ, in ms: what a probe has to be expected to save.
 *
 * Crawler a measured y ms to the target, and is D[a][c] ms from crawler c. Then c is at least |D[a][c] − y|
 * from the target (triangle inequality), as far as RTTs obey it. So an answer both rules crawlers out and
 * tells which of the others fit best:
 *
 *     a ───── y ───── target          D[a][c] ≈ y: c may well stand beside the target
 *      ╲             ·                |D[a][c] − y| large: c is far from it
 *       D[a][c]  ╲ ·
 *                 c
 *
 * Where this departs from the design's figures, found on fleets drawn at random from measured RTT matrices
 * (12, 50 and 200 crawlers; tree intact, half misfiled, or flat) at the same number of probes:
 * - slack 0.2 instead of 0.3, since the fit already weighs violations;
 * - the fit's scale is 5 + 0.3·y ms instead of 5 + 0.1·y: the longer the path, the further off the triangle;
 * - the prior's floor shrinks with the fleet;
 * - λ is divided by 1 + 3·u, u = 1/(s+1) for a holder with s delegations: the first decisions about a holder
 *   steer all later ones, so a mistake there costs more than its own subnet.
 */
import type { CrawlerId } from "../ids.ts";
import { decidedAtOnce, decidedByPrior, decidedFor, likeliestIndex } from "./decide.ts";
import { rttsToCandidates } from "./fleet.ts";
import { priorOf } from "./prior.ts";
import { maxNamedCrawlers, type ReasonOf, type RuledOutCrawler } from "./reason-record.ts";
import {
  askedCrawlers,
  type DelegationPolicy,
  fastestIndex,
  looksSilent,
  type Observation,
  openState,
  probeStep,
  type RoundState,
  type RoundStep,
  rttOf,
  wasAsked,
  withObservation,
} from "./round.ts";

/** Of the triangle's bound, what is believed: RTTs violate the inequality. */
export const trustInTriangle = 0.8;
const fitScaleMs = 5;
const fitScalePerMs = 0.3;
/** How much more an answer about an unknown holder is worth. */
const worthOfNewHolder = 3;

/**
 * Prior belief that every candidate keeps, however often others were chosen: 0.002 for 16 crawlers as in the
 * design; less for a large fleet, where the sum would drown what the tree says.
 */
const priorFloor = (candidates: number) => 0.008 / Math.sqrt(candidates);

export interface NearestState extends RoundState {
  /** Log-belief that the candidate is the nearest, up to a constant. */
  readonly scores: Float64Array;
  /** The least RTT (ms) each candidate can have to the target. */
  readonly lowerBoundsMs: Float64Array;
}

export const nearestPolicy: DelegationPolicy<NearestState> = {
  start(input) {
    const prior = priorOf(input.placement, input.fleet, input.knowledge, input.locationHint ?? null);
    const floor = priorFloor(prior.shares.length);
    return {
      ...openState("nearest", input, prior),
      scores: prior.shares.map((share) => Math.log(share + floor)),
      lowerBoundsMs: new Float64Array(prior.shares.length),
    };
  },
  step(state) {
    const atOnce = decidedAtOnce(state);
    if (atOnce) return atOnce;
    const best = fastestIndex(state);
    return best < 0 ? firstAnswer(state) : nextOrStop(state, best);
  },
  observe: observeNearest,
};

function observeNearest(state: NearestState, crawlerId: CrawlerId, observation: Observation): NearestState {
  const asked = state.fleet.indexOf.get(crawlerId);
  if (asked === undefined || wasAsked(state, crawlerId)) return state;
  const rttMs = rttOf(observation);
  if (rttMs === null) return withObservation(state, crawlerId, observation, state.lowerBoundsMs);
  const scores = state.scores.slice();
  const lowerBoundsMs = state.lowerBoundsMs.slice();
  const peers = rttsToCandidates(state.fleet, asked);
  const scaleMs = fitScaleMs + fitScalePerMs * rttMs;
  for (let index = 0; index < peers.length; index++) {
    const peerRttMs = peers[index]!;
    const known = !Number.isNaN(peerRttMs);
    // Where the crawlers have not measured each other, the answer neither fits nor rules out.
    const gapMs = known ? Math.abs(peerRttMs - rttMs) : rttMs;
    if (known) lowerBoundsMs[index] = Math.max(lowerBoundsMs[index]!, trustInTriangle * gapMs);
    scores[index]! -= Math.log(1 + (gapMs / scaleMs) ** 2);
  }
  return withObservation({ ...state, scores, lowerBoundsMs }, crawlerId, observation, lowerBoundsMs);
}

/** Nobody has answered yet: the likeliest that was not asked. */
function firstAnswer(state: NearestState): RoundStep {
  if (state.probes.length === state.fleet.candidates.length || looksSilent(state))
    return decidedByPrior(state);
  const open = state.scores.map((score, index) =>
    wasAsked(state, state.fleet.candidates[index]!) ? Number.NEGATIVE_INFINITY : score,
  );
  return probeStep(state, state.fleet.candidates[likeliestIndex(open)]!);
}

function nextOrStop(state: NearestState, best: number): RoundStep {
  const outlook = outlookOf(state, best);
  const { next } = outlook;
  const costMs = state.parameters.lambdaMs / (1 + worthOfNewHolder * state.prior.unfamiliarity);
  if (next && next.expectedGainMs >= costMs) return probeStep(state, next.crawlerId);
  const allAsked = state.probes.length === state.fleet.candidates.length;
  return decidedFor(state, best, {
    type: "expected-gain",
    stop: next ? "gain-below-cost" : allAsked ? "all-asked" : "all-ruled-out",
    rttMs: state.rttsMs[best]!,
    lambdaMs: state.parameters.lambdaMs,
    costMs,
    next,
    certainty: outlook.certainty,
    ...askedCrawlers(state),
    ...ruledOutBy(state, best),
  });
}

interface Outlook {
  /** Who is most worth asking; null when nobody is left who could be nearer. */
  readonly next: ReasonOf<"expected-gain">["next"];
  /** Belief that the best so far is the nearest. */
  readonly certainty: number;
}

/**
 * Softmax of the scores over the best so far and those that may be nearer still; asking c saves on average
 * half of what it could (its RTT lies somewhere between its bound and the best so far), if it is the nearest.
 */
function outlookOf(state: NearestState, best: number): Outlook {
  const { scores, lowerBoundsMs } = state;
  const bestRttMs = state.rttsMs[best]!;
  const open = unaskedIndices(state).filter((index) => lowerBoundsMs[index]! < bestRttMs);
  let top = scores[best]!;
  for (const index of open) top = Math.max(top, scores[index]!);
  const ownWeight = Math.exp(scores[best]! - top);
  let total = ownWeight;
  let next = -1;
  let nextWorth = -1;
  for (const index of open) {
    const weight = Math.exp(scores[index]! - top);
    const worth = (weight * (bestRttMs - lowerBoundsMs[index]!)) / 2;
    total += weight;
    if (worth > nextWorth) {
      next = index;
      nextWorth = worth;
    }
  }
  const certainty = ownWeight / total;
  const crawlerId = state.fleet.candidates[next];
  if (crawlerId === undefined) return { next: null, certainty };
  const expectedGainMs = nextWorth / total;
  return { next: { crawlerId, expectedGainMs, lowerBoundMs: lowerBoundsMs[next]! }, certainty };
}

function unaskedIndices(state: NearestState): number[] {
  const asked = new Set(state.probes.map(({ crawlerId }) => state.fleet.indexOf.get(crawlerId)));
  const unasked: number[] = [];
  for (let index = 0; index < state.scores.length; index++) if (!asked.has(index)) unasked.push(index);
  return unasked;
}

/** Whom the triangle inequality ruled out; those that came closest are named, with the answer that did it. */
function ruledOutBy(
  state: NearestState,
  best: number,
): { ruledOut: RuledOutCrawler[]; ruledOutCount: number } {
  const { lowerBoundsMs } = state;
  const bestRttMs = state.rttsMs[best]!;
  const indices = unaskedIndices(state).filter((index) => lowerBoundsMs[index]! >= bestRttMs);
  const named = indices.sort((a, b) => lowerBoundsMs[a]! - lowerBoundsMs[b]!).slice(0, maxNamedCrawlers);
  return { ruledOut: named.map((index) => ruledOutCrawler(state, index)), ruledOutCount: indices.length };
}

function ruledOutCrawler(state: NearestState, index: number): RuledOutCrawler {
  const crawlerId = state.fleet.candidates[index]!;
  const lowerBoundMs = state.lowerBoundsMs[index]!;
  const decisive = state.probes.find((probe) => probe.lowerBoundsMs[index]! >= lowerBoundMs)!;
  return {
    crawlerId,
    lowerBoundMs,
    by: decisive.crawlerId,
    byRttMs: rttOf(decisive.observation)!,
    peerRttMs: state.fleet.peerRtts.rttMs(decisive.crawlerId, crawlerId)!,
  };
}

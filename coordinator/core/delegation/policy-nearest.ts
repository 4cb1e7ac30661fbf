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
  if (!state.fleet.indexOf.has(crawlerId) || wasAsked(state, crawlerId)) return state;
  const rttMs = rttOf(observation);
  if (rttMs === null) return withObservation(state, crawlerId, observation, state.lowerBoundsMs);
  const scores = state.scores.slice();
  const lowerBoundsMs = state.lowerBoundsMs.slice();
  const peers = state.fleet.peerRtts.rttsFrom(crawlerId, state.fleet.candidates);
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
  const ruledOut = ruledOutCrawlers(state, best);
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
    ruledOut: ruledOut.slice(0, maxNamedCrawlers),
    ruledOutCount: ruledOut.length,
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
  const open = openCandidates(state, bestRttMs);
  const top = open.reduce((high, index) => Math.max(high, scores[index]!), scores[best]!);
  const weightOf = (index: number) => Math.exp(scores[index]! - top);
  const total = open.reduce((sum, index) => sum + weightOf(index), weightOf(best));
  let next = -1;
  let gainMs = -1;
  for (const index of open) {
    const expectedMs = ((weightOf(index) / total) * (bestRttMs - lowerBoundsMs[index]!)) / 2;
    if (expectedMs > gainMs) {
      next = index;
      gainMs = expectedMs;
    }
  }
  return {
    next:
      next < 0
        ? null
        : {
            crawlerId: state.fleet.candidates[next]!,
            expectedGainMs: gainMs,
            lowerBoundMs: lowerBoundsMs[next]!,
          },
    certainty: weightOf(best) / total,
  };
}

/** Candidates not asked yet that may be nearer than the best so far. */
function openCandidates(state: NearestState, bestRttMs: number): number[] {
  const asked = new Set(state.probes.map(({ crawlerId }) => state.fleet.indexOf.get(crawlerId)));
  const open: number[] = [];
  for (let index = 0; index < state.scores.length; index++) {
    if (state.lowerBoundsMs[index]! < bestRttMs && !asked.has(index)) open.push(index);
  }
  return open;
}

/** Whom the triangle inequality ruled out, by which answer; those that came closest first. */
function ruledOutCrawlers(state: NearestState, best: number): RuledOutCrawler[] {
  const bestRttMs = state.rttsMs[best]!;
  const ruledOut: RuledOutCrawler[] = [];
  state.fleet.candidates.forEach((crawlerId, index) => {
    const lowerBoundMs = state.lowerBoundsMs[index]!;
    if (lowerBoundMs < bestRttMs || wasAsked(state, crawlerId)) return;
    const probe = state.probes.find((seen) => seen.lowerBoundsMs[index]! >= lowerBoundMs)!;
    const byRttMs = rttOf(probe.observation)!;
    const peerRttMs = state.fleet.peerRtts.rttMs(probe.crawlerId, crawlerId)!;
    ruledOut.push({ crawlerId, lowerBoundMs, by: probe.crawlerId, byRttMs, peerRttMs });
  });
  return ruledOut.sort((a, b) => a.lowerBoundMs - b.lowerBoundMs);
}

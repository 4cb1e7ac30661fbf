/**
 * nearest, the default: asks crawlers where the tree and past measurements suggest the target is, until another probe is not
 * worth its cost (design section 5 and beyond). The operator's one setting is λ, the ms that a probe must be expected to
 * save.
 *
 *     prior (tree, ──► mixture over places ──► expected gain of each candidate ──► largest ≥ λ: ask it
 *     published)          ▲      (crawlers, past subnets)                    └──► else: the fastest so far
 *                         └── every answer reweights the places ◄────────────┘
 *
 * Departures from the design, with reasons:
 * - Places are crawlers and also past subnets with their measurements (`learned-rtts.ts`), the mixture over learned RTT
 *   vectors that the design proposes.
 * - The triangle inequality alone rules no crawler out, because most wrong decisions came from best crawlers that it had
 *   ruled out. It lowers the expected gain instead.
 * - The gain is fitted to rounds and corrected by this fleet's results (`expected-gain.ts`, `learned-rtts.ts`).
 * - An answer is worth more if it steers later rounds: about a new holder, or by a crawler that measured no similar subnet.
 *   Otherwise a first mistake repeats itself.
 * - A published place counts as much as its source has been right (`learned-rtts.ts`).
 */
import type { CrawlerId } from "#core/ids";
import { priorOf } from "../knowledge.ts";
import { type ExpectedGains, expectedGains } from "./expected-gain.ts";
import { maxNamedPlaces, maxNamedRuledOut, type ReasonOf, type RuledOutCrawler } from "./reason.ts";
import {
  askedCrawlers,
  type DelegationPolicy,
  decidedAtOnce,
  decidedByPrior,
  decidedFor,
  fastestIndex,
  likeliestOf,
  looksSilent,
  probeStep,
  type RoundState,
  type RoundStep,
  rttAt,
  rttOf,
  trustInTriangle,
  withObservation,
} from "./round.ts";
import { fitScale, keepRound, RttMixture } from "./rtt-mixture.ts";

/** Factor for the value of an answer about an unknown holder. */
const worthOfNewHolder = 3;
/** Factor for an answer by a crawler that measured no similar subnet. It declines with each one measured. */
const worthOfNewView = 5;

/** Minimum belief in every candidate, however often others were chosen. */
const priorFloor = (candidates: number) => 0.008 / Math.sqrt(candidates);

export interface NearestState extends RoundState {
  /** Follows the answers of the round state being evaluated. */
  readonly mixture: RttMixture;
  /** Expected saving of each probe but the first, in ms. */
  readonly expectedMs: readonly number[];
}

export const nearestPolicy = {
  name: "nearest",
  words: "asks who is expected to save the most, until nobody is expected to save more than λ",
  usesEarlierRounds: true,
  start(input) {
    const { placement, fleet, learned, knowledge, parameters, mayTake } = input;
    const prior = priorOf(placement, fleet, knowledge, (source) => learned.sources.of(source));
    const floor = priorFloor(fleet.candidates.length);
    return {
      policy: "nearest",
      fleet,
      parameters,
      prior,
      probes: [],
      ...(mayTake === undefined ? {} : { mayTake }),
      mixture: new RttMixture({
        fleet,
        placement,
        learned,
        shares: prior.shares,
        floor,
        ...(input.listFrom === undefined ? {} : { listFrom: input.listFrom }),
      }),
      expectedMs: [],
    };
  },
  step(state) {
    const atOnce = decidedAtOnce(state);
    if (atOnce) return atOnce;
    const best = fastestIndex(state);
    return best < 0 ? firstAnswer(state) : nextOrStop(state, best);
  },
  observe(state, crawlerId, observation) {
    const after = withObservation(state, crawlerId, observation);
    return after === state
      ? state
      : { ...after, expectedMs: [...state.expectedMs, expectedOf(state, crawlerId)] };
  },
  learn: learnFromNearest,
} as const satisfies DelegationPolicy<NearestState>;

/** Learns from a finished round: its subnet's location, whether probes saved what was expected, and which sources were right. */
function learnFromNearest(state: NearestState): void {
  const winner = fastestIndex(state);
  if (winner < 0) return;
  noteGains(state);
  noteSources(state, winner);
  keepRound(state.mixture, state.fleet.candidates[winner]!, state.probes);
}

function noteGains({ mixture, probes, expectedMs }: NearestState): void {
  const { calibration } = mixture.learned;
  let bestMs = Number.POSITIVE_INFINITY;
  probes.forEach(({ observation }, position) => {
    const rttMs = rttOf(observation);
    if (rttMs === null) return;
    const expected = expectedMs[position] ?? 0;
    if (expected > 0) calibration.note({ expectedMs: expected, savedMs: Math.max(0, bestMs - rttMs) });
    bestMs = Math.min(bestMs, rttMs);
  });
}

/** A crawler near to other subnets of the place was right if it is this close to the best answer. */
const nearEnough = { ms: 5, perMs: 0.3 };

/** Scores sources when other subnets of the same place are known and the crawler nearest to them was asked. */
function noteSources({ mixture, fleet, probes }: NearestState, winner: number): void {
  const { learned, placement } = mixture;
  const answersMs = new Map<number, number>();
  for (const { crawlerId, observation } of probes) {
    const rttMs = rttOf(observation);
    if (rttMs !== null) answersMs.set(fleet.indexOf.get(crawlerId)!, rttMs);
  }
  const bestMs = answersMs.get(winner)!;
  const reachMs = bestMs + nearEnough.ms + nearEnough.perMs * bestMs;
  for (const { source, place } of placement.published ?? []) {
    let heard = 0;
    let near = 0;
    for (const row of learned.atPublished(place)) {
      const rttMs = answersMs.get(mixture.slots.indexOf[learned.vectors.winners[row]!] ?? -1);
      if (rttMs === undefined) continue;
      heard += 1;
      if (rttMs <= reachMs) near += 1;
    }
    if (heard > 0) learned.sources.note(source, near / heard);
  }
}

/** Expected saving of asking this candidate. 0 before any answer, and if no place supports the candidate. */
function expectedOf(state: NearestState, crawlerId: CrawlerId): number {
  const best = fastestIndex(state);
  if (best < 0) return 0;
  const { indices, gainsMs } = gainsOf(state, best);
  return gainsMs[indices.indexOf(state.fleet.indexOf.get(crawlerId)!)] ?? 0;
}

function gainsOf(state: NearestState, best: number): ExpectedGains {
  const { mixture, probes } = state;
  return expectedGains({ mixture, probes, best, bestMs: rttAt(state, best)! });
}

/** If there are no answers yet, asks the likeliest remaining candidate. */
function firstAnswer(state: NearestState): RoundStep {
  if (looksSilent(state)) return decidedByPrior(state);
  const asked = new Set(state.probes.map(({ crawlerId }) => state.fleet.indexOf.get(crawlerId)!));
  const likeliest = likeliestOf(state, (index) => !asked.has(index));
  return likeliest < 0 ? decidedByPrior(state) : probeStep(state, state.fleet.candidates[likeliest]!);
}

function nextOrStop(state: NearestState, best: number): RoundStep {
  const { lambdaMs } = state.parameters;
  const next = mostWorthAsking(state, best);
  if (next !== null && next.gainMs >= next.costMs)
    return probeStep(state, state.fleet.candidates[next.index]!);
  const allAsked = state.probes.length === state.fleet.candidates.length;
  const reason = {
    type: "expected-gain",
    stop: next ? "gain-below-cost" : allAsked ? "all-asked" : "all-ruled-out",
    rttMs: rttAt(state, best)!,
    lambdaMs,
    costMs: next?.costMs ?? lambdaMs,
    next: next && namedNext(state, next),
    certainty: certaintyOf(state, best),
    ...askedCrawlers(state),
    ...ruledOutBy(state, best),
    ...(state.prior.published !== undefined && {
      published: state.prior.published.slice(0, maxNamedPlaces).map((known) => ({ ...known })),
    }),
  } as const;
  return decidedFor(state, best, reason);
}

interface Worth {
  readonly index: number;
  readonly gainMs: number;
  /** The saving required of the probe: λ, or less if the probe teaches something for later. */
  readonly costMs: number;
}

/** The candidate with the best ratio of gain to cost. Null if no remaining candidate could be nearer. */
function mostWorthAsking(state: NearestState, best: number): Worth | null {
  const { parameters, mixture, prior, fleet, mayTake } = state;
  const { scale } = mixture.learned.calibration;
  const newHolder = 1 + worthOfNewHolder * prior.unfamiliarity;
  const viewWorth = worthOfNewView * Math.min(1, 12 / fleet.candidates.length);
  const { indices, gainsMs, alikeMeasured } = gainsOf(state, best);
  let most = -1;
  let mostWorth = 0;
  let newViewOfMost = 1;
  for (let at = 0; at < indices.length; at++) {
    const newView = 1 + viewWorth / (1 + alikeMeasured[at]!) ** 2;
    const worth = gainsMs[at]! * newView;
    if (worth < mostWorth || (worth === mostWorth && indices[at]! > indices[most]!)) continue;
    if (mayTake?.(fleet.candidates[indices[at]!]!) === false) continue;
    most = at;
    mostWorth = worth;
    newViewOfMost = newView;
  }
  if (most < 0) return null;
  const costMs = parameters.lambdaMs / (newHolder * newViewOfMost);
  return { index: indices[most]!, gainMs: gainsMs[most]! * scale, costMs };
}

function namedNext(
  { mixture, fleet }: NearestState,
  { index, gainMs }: Worth,
): ReasonOf<"expected-gain">["next"] {
  const lowerBoundMs = trustInTriangle * Math.max(0, mixture.gapsMs[index]!);
  return { crawlerId: fleet.candidates[index]!, expectedGainMs: gainMs, lowerBoundMs };
}

/** Beliefs multiplied by fits, reused between calls. */
let fitting = new Float64Array(0);

/**
 * Probability that the best so far is the nearest: its share of the remaining beliefs. An answer leaves 1/(1 +
 * (gap/scale)²) of the belief in a target beside a candidate.
 */
function certaintyOf(state: NearestState, best: number): number {
  const { fleet, probes } = state;
  const mixture = state.mixture.follow(probes);
  const { gapsMs, shares, floor, members } = mixture;
  const bestMs = rttAt(state, best)!;
  if (fitting.length < shares.length) fitting = new Float64Array(Math.ceil(1.25 * shares.length));
  for (let at = 0; at < members.length; at++) {
    const index = members[at]!;
    fitting[index] = trustInTriangle * gapsMs[index]! < bestMs ? shares[index]! + floor : 0;
  }
  fitting[best] = shares[best]! + floor;
  for (const { crawlerId, observation } of probes) {
    const asked = fleet.indexOf.get(crawlerId)!;
    if (asked !== best) fitting[asked] = 0;
    const rttMs = rttOf(observation);
    if (rttMs === null) continue;
    const fitMs = fitScale.ms + fitScale.perMs * rttMs;
    // Applies to candidates at unknown distance from the asked one, and to the asked one itself.
    const unknown = 1 + (rttMs / fitMs) ** 2;
    const { count, indices, rttsMs } = mixture.knownTo(asked);
    for (let at = 0; at < count; at++) {
      const off = (rttsMs[at]! - rttMs) / fitMs;
      fitting[indices[at]!]! *= unknown / (1 + off * off);
    }
  }
  let total = 0;
  for (let at = 0; at < members.length; at++) total += fitting[members[at]!]!;
  return total > 0 ? fitting[best]! / total : 0;
}

/** Candidates ruled out by the triangle inequality. The closest are named with the decisive answer. */
function ruledOutBy(
  state: NearestState,
  best: number,
): { ruledOut: RuledOutCrawler[]; ruledOutCount: number } {
  const { gapsMs, members } = state.mixture.follow(state.probes);
  // No crawler can beat an answer of 0 ms, but that gives no bound for crawlers that were never measured.
  const leastMs = Math.max(0, rttAt(state, best)! / trustInTriangle);
  const asked = state.probes.map(({ crawlerId }) => state.fleet.indexOf.get(crawlerId)!);
  const closest: number[] = [];
  let widestMs = Number.POSITIVE_INFINITY;
  let ruledOutCount = 0;
  for (let member = 0; member < members.length; member++) {
    const index = members[member]!;
    const gapMs = gapsMs[index]!;
    if (gapMs < leastMs) continue;
    ruledOutCount += 1;
    if (gapMs >= widestMs || asked.includes(index)) continue;
    let at = closest.length < maxNamedRuledOut ? closest.push(index) - 1 : closest.length - 1;
    for (; at > 0 && gapsMs[closest[at - 1]!]! > gapMs; at--) closest[at] = closest[at - 1]!;
    closest[at] = index;
    if (closest.length === maxNamedRuledOut) widestMs = gapsMs[closest[maxNamedRuledOut - 1]!]!;
  }
  for (const index of asked) if (gapsMs[index]! >= leastMs) ruledOutCount -= 1;
  return { ruledOut: closest.map((index) => ruledOutCrawler(state, index)), ruledOutCount };
}

/** The answer with the widest gap is the decisive one. */
function ruledOutCrawler({ fleet, probes }: NearestState, index: number): RuledOutCrawler {
  let found = { gapMs: -1, by: fleet.candidates[index]!, byRttMs: 0, peerRttMs: 0 };
  for (const { crawlerId, observation } of probes) {
    const rttMs = rttOf(observation);
    if (rttMs === null) continue;
    const from = fleet.peerSlots[fleet.indexOf.get(crawlerId)!]!;
    const peerRttMs = fleet.peerRtts.rttMsAt(from, fleet.peerSlots[index]!);
    const gapMs = Math.abs(peerRttMs - rttMs);
    if (gapMs > found.gapMs) found = { gapMs, by: crawlerId, byRttMs: rttMs, peerRttMs };
  }
  const { gapMs, ...by } = found;
  return { crawlerId: fleet.candidates[index]!, lowerBoundMs: trustInTriangle * gapMs, ...by };
}

/**
 * nearest, the default: where the tree and all that was measured so far suggest the target lies, asked for until
 * another probe is not worth its cost (design section 5, and beyond it). The operator's one knob is λ, in ms:
 * what a probe has to be expected to save.
 *
 *   prior (tree) ──► mixture over places ──► expected gain of each candidate ──► largest ≥ λ: ask it
 *                        ▲      (crawlers, past subnets)                    └──► else: the fastest so far
 *                        └── every answer weighs the places anew ◄──────────────┘
 *
 * Where this departs from the design, and why:
 * - the places are not only the crawlers but past subnets with what was measured of them (`learned-rtts.ts`): the
 *   mixture over learned RTT vectors that the design proposes;
 * - the triangle inequality alone rules nobody out: on measured and generated round trips most wrong
 *   decisions came from best crawlers that it had ruled out. It lowers the expected gain instead;
 * - the gain is an estimate fitted to rounds, and corrected by what this fleet's rounds gained (`expected-gain.ts`,
 *   `gain-calibration.ts`);
 * - an answer is worth more than its own subnet where it steers later ones: about a holder that is new, or by a
 *   crawler that measured none of the subnets like this one. Else a first mistake repeats itself.
 */
import type { CrawlerId } from "#core/ids";
import { smallestOf } from "#core/small-collections";
import type { Placement } from "../placement.ts";
import { priorOf } from "../prior.ts";
import { type ExpectedGain, expectedGains, type Outlook } from "./expected-gain.ts";
import { maxNamedCrawlers, type ReasonOf, type RuledOutCrawler } from "./reason.ts";
import {
  askedCrawlers,
  type DelegationPolicy,
  decidedAtOnce,
  decidedByPrior,
  decidedFor,
  fastestIndex,
  likeliestIndex,
  looksSilent,
  type Observation,
  openState,
  probeStep,
  type RoundState,
  type RoundStep,
  rttOf,
  trustInTriangle,
  wasAsked,
  withObservation,
} from "./round.ts";
import {
  observeMixture,
  type RttMixture,
  startMixture,
  vectorOf,
  withMoreCandidates,
} from "./rtt-mixture.ts";
import { calledByAnswer, calledWhenExhausted, firstList, type ShortList, withCalled } from "./short-list.ts";

/** How far off the fit of an answer to a target beside a candidate may be: the longer the path, the farther. */
const fitScaleMs = 5;
const fitScalePerMs = 0.3;
/** How much more an answer about an unknown holder is worth. */
const worthOfNewHolder = 3;
/** How much more one by a crawler that measured nothing like this subnet; with one that it did, less. */
const worthOfNewView = 5;

/** Prior belief that every candidate keeps, however often others were chosen. */
const priorFloor = (candidates: number) => 0.008 / Math.sqrt(candidates);

export interface NearestState extends RoundState {
  readonly placement: Placement;
  /** Belief that the candidate is the nearest before any answer, above 0. */
  readonly beliefs: Float64Array;
  /** How well the answers fit a target beside the candidate: the product of 1/(1 + (gap/scale)²). */
  readonly fits: Float64Array;
  /** Of the triangle inequality, in ms: |D − y| at most over the answers. */
  readonly gapsMs: Float64Array;
  readonly mixture: RttMixture;
  /** What each probe but the first was expected to save, in ms, in the order of the probes. */
  readonly expectedMs: readonly number[];
  /** Of a large fleet the part that everything else here speaks of; null: the whole. */
  readonly list: ShortList | null;
}

export const nearestPolicy = {
  name: "nearest",
  words: "asks who is expected to save the most, until nobody is expected to save more than λ",
  usesEarlierRounds: true,
  start(input) {
    const { placement, learned, knowledge } = input;
    const prior = priorOf(placement, input.fleet, knowledge, input.locationHint ?? null);
    const list = firstList(input, prior.shares);
    const fleet = list?.fleet ?? input.fleet;
    const shares = list === null ? prior.shares : sharesOf(list, list.members);
    const floor = priorFloor(input.fleet.candidates.length);
    const beliefs = shares.map((share) => share + floor);
    return {
      ...openState("nearest", { ...input, fleet }, { ...prior, shares }),
      placement,
      beliefs,
      fits: new Float64Array(beliefs.length).fill(1),
      gapsMs: new Float64Array(beliefs.length),
      mixture: startMixture({ fleet, placement, learned, beliefs }),
      expectedMs: [],
      list,
    };
  },
  step(state) {
    const atOnce = decidedAtOnce(state);
    if (atOnce) return atOnce;
    const best = fastestIndex(state);
    return best < 0 ? firstAnswer(state) : nextOrStop(state, best);
  },
  observe: observeNearest,
  learn: learnFromNearest,
} as const satisfies DelegationPolicy<NearestState>;

const sharesOf = ({ shares }: ShortList, members: readonly number[]) =>
  Float64Array.from(members, (member) => shares[member]!);

/** Crawlers of the whole fleet. */
const fleetSize = ({ list, fleet }: NearestState) => (list?.whole ?? fleet).candidates.length;

/** What a finished round teaches: where its subnet lies, and whether its probes saved what was expected. */
function learnFromNearest(state: NearestState): void {
  const winner = fastestIndex(state);
  if (winner < 0) return;
  noteGains(state);
  state.mixture.learned.keep(vectorOf(state.fleet.candidates[winner]!, state, state.list !== null));
}

function noteGains(state: NearestState): void {
  const { calibration } = state.mixture.learned;
  let bestMs = Number.POSITIVE_INFINITY;
  state.probes.forEach(({ observation }, position) => {
    const rttMs = rttOf(observation);
    if (rttMs === null) return;
    const expectedMs = state.expectedMs[position] ?? 0;
    if (expectedMs > 0) calibration.note({ expectedMs, savedMs: Math.max(0, bestMs - rttMs) });
    bestMs = Math.min(bestMs, rttMs);
  });
}

function observeNearest(before: NearestState, crawlerId: CrawlerId, observation: Observation): NearestState {
  const state = withAsked(before, crawlerId);
  const asked = state.fleet.indexOf.get(crawlerId);
  if (asked === undefined || wasAsked(state, crawlerId)) return before;
  const expectedMs = [...state.expectedMs, expectedOf(state, asked)];
  const rttMs = rttOf(observation);
  if (rttMs === null)
    return withCalledIn(
      withObservation({ ...state, expectedMs }, crawlerId, observation, boundsFor(state, state.gapsMs)),
    );
  const fits = state.fits.slice();
  const gapsMs = state.gapsMs.slice();
  noteGaps({ fits, gapsMs, from: 0 }, { peers: state.mixture.view.placeOf(asked).rttsMs, asked, rttMs });
  const mixture = observeMixture(state.mixture, asked, rttMs);
  return withCalledIn(
    withObservation({ ...state, fits, gapsMs, mixture, expectedMs }, crawlerId, observation, bounds(gapsMs)),
  );
}

/** What an answer says of the candidates from a position on. */
function noteGaps(
  {
    fits,
    gapsMs,
    from,
  }: { readonly fits: Float64Array; readonly gapsMs: Float64Array; readonly from: number },
  { peers, asked, rttMs }: { readonly peers: Float64Array; readonly asked: number; readonly rttMs: number },
): void {
  const scaleMs = fitScaleMs + fitScalePerMs * rttMs;
  for (let index = from; index < peers.length; index++) {
    const peerRttMs = index === asked ? 0 : peers[index]!;
    const known = !Number.isNaN(peerRttMs);
    // Where the crawlers have not measured each other, the answer neither fits nor rules out.
    const gapMs = known ? Math.abs(peerRttMs - rttMs) : rttMs;
    if (known && gapMs > gapsMs[index]!) gapsMs[index] = gapMs;
    const off = gapMs / scaleMs;
    fits[index]! /= 1 + off * off;
  }
}

/** Somebody was asked who is not on the list: for another reason than the policy's. */
function withAsked(state: NearestState, crawlerId: CrawlerId): NearestState {
  const member = state.fleet.indexOf.has(crawlerId) ? undefined : state.list?.whole.indexOf.get(crawlerId);
  return member === undefined ? state : withMore(state, [member]);
}

/** Whom the last answer calls in. */
function withCalledIn(state: NearestState): NearestState {
  const { list, probes, rttsMs } = state;
  if (list === null) return state;
  const last = state.fleet.indexOf.get(probes.at(-1)!.crawlerId)!;
  const rttMs = rttsMs[last]!;
  const called =
    fastestIndex(state) === last
      ? calledByAnswer(list, {
          asked: list.members[last]!,
          rttMs,
          scaleMs: fitScaleMs + fitScalePerMs * rttMs,
        })
      : [];
  const isExhausted = called.length === 0 && probes.length === state.fleet.candidates.length;
  const more = isExhausted ? calledWhenExhausted(list) : called;
  return more.length === 0 ? state : withMore(state, more);
}

/** With more of the fleet at the end of the list, as if they had been there from the beginning. */
function withMore(state: NearestState, members: readonly number[]): NearestState {
  const list = withCalled(state.list!, members);
  const { fleet } = list;
  const before = state.beliefs.length;
  const shares = joined(state.prior.shares, sharesOf(list, members));
  const floor = priorFloor(list.whole.candidates.length);
  const beliefs = joined(
    state.beliefs,
    shares.subarray(before).map((share) => share + floor),
  );
  const fits = joined(state.fits, new Float64Array(members.length).fill(1));
  const gapsMs = joined(state.gapsMs, new Float64Array(members.length));
  const answers = state.probes.flatMap(({ crawlerId, observation }) => {
    const rttMs = rttOf(observation);
    return rttMs === null ? [] : [{ index: fleet.indexOf.get(crawlerId)!, rttMs }];
  });
  const mixture = withMoreCandidates(state.mixture, { fleet, beliefs, answers });
  for (const { index: asked, rttMs } of answers)
    noteGaps({ fits, gapsMs, from: before }, { peers: mixture.view.placeOf(asked).rttsMs, asked, rttMs });
  const rttsMs = joined(state.rttsMs, new Float64Array(members.length).fill(Number.NaN));
  const prior = { ...state.prior, shares };
  return { ...state, list, fleet, prior, beliefs, fits, gapsMs, mixture, rttsMs };
}

function joined(some: Float64Array, more: Float64Array): Float64Array {
  const all = new Float64Array(some.length + more.length);
  all.set(some);
  all.set(more, some.length);
  return all;
}

/** What was expected of asking this candidate now; 0 before any answer. */
function expectedOf(state: NearestState, index: number): number {
  const best = fastestIndex(state);
  if (best < 0) return 0;
  return gainsOf(state, best).find((gain) => gain.index === index)?.gainMs ?? 0;
}

/** A state is looked at more than once (the step, the reason, the next answer); its gains are worked out once. */
const knownGains = new WeakMap<NearestState, readonly ExpectedGain[]>();

function gainsOf(state: NearestState, best: number): readonly ExpectedGain[] {
  const known = knownGains.get(state);
  if (known !== undefined) return known;
  const gains = expectedGains(outlookOf(state, best));
  knownGains.set(state, gains);
  return gains;
}

function outlookOf(state: NearestState, best: number): Outlook {
  const { mixture, beliefs, fits, gapsMs, rttsMs, probes } = state;
  const asked = new Set(probes.map(({ crawlerId }) => state.fleet.indexOf.get(crawlerId)!));
  return { mixture, beliefs, fits, gapsMs, rttsMs, best, asked, fleetSize: fleetSize(state) };
}

function bounds(gapsMs: Float64Array): Float64Array {
  return gapsMs.map((gapMs) => trustInTriangle * gapMs);
}

/** What is noted with an answer; a list is another one after the next. */
const boundsFor = ({ list }: NearestState, gapsMs: Float64Array) =>
  list === null ? bounds(gapsMs) : new Float64Array(0);

/** Nobody has answered yet: the likeliest that was not asked. */
function firstAnswer(state: NearestState): RoundStep {
  if (state.probes.length === state.fleet.candidates.length || looksSilent(state))
    return decidedByPrior(state, fleetSize(state));
  const open = state.beliefs.map((belief, index) =>
    wasAsked(state, state.fleet.candidates[index]!) ? Number.NEGATIVE_INFINITY : belief,
  );
  return probeStep(state, state.fleet.candidates[likeliestIndex(open)]!);
}

function nextOrStop(state: NearestState, best: number): RoundStep {
  const { lambdaMs } = state.parameters;
  const next = mostWorthAsking(state, best);
  if (next !== null && next.gainMs >= next.costMs)
    return probeStep(state, state.fleet.candidates[next.index]!);
  const allAsked = state.probes.length === state.fleet.candidates.length;
  return decidedFor(state, best, {
    type: "expected-gain",
    stop: next ? "gain-below-cost" : allAsked ? "all-asked" : "all-ruled-out",
    rttMs: state.rttsMs[best]!,
    lambdaMs,
    costMs: next?.costMs ?? lambdaMs,
    next: next && namedNext(state, next),
    certainty: certaintyOf(state, best),
    ...askedCrawlers(state),
    ...ruledOutBy(state, best),
  });
}

interface Worth extends ExpectedGain {
  /** What the probe must save: λ, or less where it teaches something for later. */
  readonly costMs: number;
}

/** The candidate whose gain stands best against its cost; null when nobody is left who could be nearer. */
function mostWorthAsking(state: NearestState, best: number): Worth | null {
  const { lambdaMs } = state.parameters;
  const { scale } = state.mixture.learned.calibration;
  const newHolder = 1 + worthOfNewHolder * state.prior.unfamiliarity;
  const viewWorth = worthOfNewView * Math.min(1, 12 / fleetSize(state));
  let most: Worth | null = null;
  let mostWorth = 0;
  for (const gain of gainsOf(state, best)) {
    const newView = 1 + viewWorth / (1 + gain.alikeMeasured) ** 2;
    const worth = gain.gainMs * newHolder * newView;
    if (worth <= mostWorth) continue;
    mostWorth = worth;
    most = { ...gain, gainMs: gain.gainMs * scale, costMs: lambdaMs / (newHolder * newView) };
  }
  return most;
}

function namedNext(state: NearestState, { index, gainMs }: Worth): ReasonOf<"expected-gain">["next"] {
  const crawlerId = state.fleet.candidates[index]!;
  return { crawlerId, expectedGainMs: gainMs, lowerBoundMs: trustInTriangle * state.gapsMs[index]! };
}

/** Belief that the best so far is the nearest: its share of what the answers leave of all beliefs. */
function certaintyOf(state: NearestState, best: number): number {
  const { beliefs, fits, gapsMs, rttsMs } = state;
  const bestMs = rttsMs[best]!;
  let total = 0;
  for (let index = 0; index < beliefs.length; index++) {
    const open = Number.isNaN(rttsMs[index]!) && trustInTriangle * gapsMs[index]! < bestMs;
    if (open || index === best) total += beliefs[index]! * fits[index]!;
  }
  return total > 0 ? (beliefs[best]! * fits[best]!) / total : 0;
}

/** Whom the triangle inequality ruled out; those that came closest are named, with the answer that did it. */
function ruledOutBy(
  state: NearestState,
  best: number,
): { ruledOut: RuledOutCrawler[]; ruledOutCount: number } {
  const lowerBoundsMs = bounds(state.gapsMs);
  const bestRttMs = state.rttsMs[best]!;
  const open = lowerBoundsMs.map((lowerBoundMs) => (lowerBoundMs >= bestRttMs ? lowerBoundMs : Number.NaN));
  for (const { crawlerId } of state.probes) open[state.fleet.indexOf.get(crawlerId)!] = Number.NaN;
  let ruledOutCount = 0;
  for (let index = 0; index < open.length; index++) if (!Number.isNaN(open[index]!)) ruledOutCount += 1;
  const named = smallestOf(open, maxNamedCrawlers);
  return { ruledOut: Array.from(named, (index) => ruledOutCrawler(state, index)), ruledOutCount };
}

function ruledOutCrawler(state: NearestState, index: number): RuledOutCrawler {
  const crawlerId = state.fleet.candidates[index]!;
  const lowerBoundMs = trustInTriangle * state.gapsMs[index]!;
  const { peerRtts } = state.fleet;
  const decisive = state.probes.find(({ crawlerId: asked, observation }) => {
    const peerRttMs = peerRtts.rttMs(asked, crawlerId);
    const rttMs = rttOf(observation);
    if (peerRttMs === null || rttMs === null) return false;
    return trustInTriangle * Math.abs(peerRttMs - rttMs) >= lowerBoundMs;
  })!;
  return {
    crawlerId,
    lowerBoundMs,
    by: decisive.crawlerId,
    byRttMs: rttOf(decisive.observation)!,
    peerRttMs: state.fleet.peerRtts.rttMs(decisive.crawlerId, crawlerId)!,
  };
}

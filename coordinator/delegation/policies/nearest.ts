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
import { type CandidateColumns, copiedColumns, emptyColumns } from "./candidate-columns.ts";
import { type ExpectedGains, expectedGains } from "./expected-gain.ts";
import { maxNamedCrawlers, type ReasonOf, type RuledOutCrawler } from "./reason.ts";
import {
  askedCrawlers,
  type DelegationPolicy,
  decidedAtOnce,
  decidedByPrior,
  decidedFor,
  fastestIndex,
  looksSilent,
  type Observation,
  probeStep,
  type RoundState,
  type RoundStep,
  rttOf,
  trustInTriangle,
} from "./round.ts";
import {
  observeMixture,
  type RttMixture,
  startMixture,
  vectorOf,
  weighNewCandidates,
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
  /** `rttsMs` and the prior's shares are two of them. */
  readonly columns: CandidateColumns;
  readonly mixture: RttMixture;
  /** What each probe but the first was expected to save, in ms, in the order of the probes. */
  readonly expectedMs: readonly number[];
  /** Of a large fleet the part that everything else here speaks of; null: the whole. */
  readonly list: ShortList | null;
  /** The gains are asked for more than once (the step, the reason, the next answer), and worked out once. */
  readonly memo: { gains: ExpectedGains | null };
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
    const columns = emptyColumns(fleet.candidates.length);
    if (list === null) columns.shares.set(prior.shares);
    noteBeliefs(columns, { from: 0, list, floor: priorFloor(input.fleet.candidates.length) });
    return {
      policy: "nearest",
      fleet,
      parameters: input.parameters,
      prior: { ...prior, shares: columns.shares },
      rttsMs: columns.rttsMs,
      probes: [],
      placement,
      columns,
      mixture: startMixture({ fleet, placement, learned, beliefs: columns.beliefs }),
      expectedMs: [],
      list,
      memo: { gains: null },
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

/** Beliefs of the candidates from a position on; of a list their shares, too. */
function noteBeliefs(
  { shares, beliefs }: CandidateColumns,
  { from, list, floor }: { readonly from: number; readonly list: ShortList | null; readonly floor: number },
): void {
  for (let index = from; index < beliefs.length; index++) {
    if (list !== null) shares[index] = list.shares[list.members[index]!]!;
    beliefs[index] = shares[index]! + floor;
  }
}

/** Crawlers of the whole fleet. */
const fleetSizeOf = ({ list, fleet }: NearestState) => (list?.whole ?? fleet).candidates.length;

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
  if (asked === undefined || state.columns.asked[asked] === 1) return before;
  const expectedMs = [...state.expectedMs, expectedOf(state, asked)];
  const rttMs = rttOf(observation);
  const called = whomToCall(state, asked, rttMs);
  const after = called.length === 0 ? withOwnColumns(state) : withMore(state, called);
  const { columns } = after;
  columns.asked[asked] = 1;
  columns.rttsMs[asked] = rttMs ?? Number.NaN;
  let { mixture } = after;
  if (rttMs !== null) {
    const answer = { probe: state.probes.length, asked, rttMs, fromHere: mixture.view.rttsFrom(asked) };
    noteAnswer(columns, 0, answer);
    mixture = observeMixture(mixture, { index: asked, rttMs, fromHere: answer.fromHere });
  }
  // What is noted with an answer; a list is another one after the next.
  const lowerBoundsMs = state.list === null ? bounds(columns.gapsMs) : noBounds;
  const heard: Observation =
    rttMs === null && "rttMs" in observation ? { failed: "no valid time" } : observation;
  const probes = [...state.probes, { crawlerId, observation: heard, lowerBoundsMs }];
  return { ...after, mixture, expectedMs, probes };
}

const noBounds = new Float64Array(0);

interface Answer {
  /** The probe's position in the round. */
  readonly probe: number;
  /** The candidate's position. */
  readonly asked: number;
  readonly rttMs: number;
  /** RTTs in ms from it to all candidates, NaN where unknown. */
  readonly fromHere: Float64Array;
}

/** What an answer says of the candidates from a position on, written into columns that nobody else has seen yet. */
function noteAnswer(
  { fits, gapsMs, gapProbes, gapApartMs, mostMs }: CandidateColumns,
  from: number,
  { probe, asked, rttMs, fromHere }: Answer,
): void {
  const scaleMs = fitScaleMs + fitScalePerMs * rttMs;
  for (let index = from; index < fits.length; index++) {
    const apartMs = index === asked ? 0 : fromHere[index]!;
    const known = !Number.isNaN(apartMs);
    // Where the crawlers have not measured each other, the answer neither fits nor rules out.
    const gapMs = known ? Math.abs(apartMs - rttMs) : rttMs;
    if (known && (gapMs > gapsMs[index]! || gapProbes[index]! < 0)) {
      gapsMs[index] = gapMs;
      gapProbes[index] = probe;
      gapApartMs[index] = apartMs;
    }
    if (rttMs + apartMs < mostMs[index]!) mostMs[index] = rttMs + apartMs;
    const off = gapMs / scaleMs;
    fits[index]! /= 1 + off * off;
  }
}

/** Somebody was asked who is not on the list: for another reason than the policy's. */
function withAsked(state: NearestState, crawlerId: CrawlerId): NearestState {
  const member = state.fleet.indexOf.has(crawlerId) ? undefined : state.list?.whole.indexOf.get(crawlerId);
  return member === undefined ? state : withMore(state, [member]);
}

/** Whom the answer of the candidate at `asked` calls in, null being none; positions in the whole fleet. */
function whomToCall(state: NearestState, asked: number, rttMs: number | null): readonly number[] {
  const { list, probes, rttsMs } = state;
  if (list === null) return [];
  const best = fastestIndex(state);
  const bestMs = rttsMs[best] ?? Number.POSITIVE_INFINITY;
  const isFastest = rttMs !== null && (rttMs < bestMs || (rttMs === bestMs && asked < best));
  const called = isFastest
    ? calledByAnswer(list, {
        asked: list.members[asked]!,
        rttMs,
        scaleMs: fitScaleMs + fitScalePerMs * rttMs,
      })
    : [];
  const isExhausted = called.length === 0 && probes.length + 1 === state.fleet.candidates.length;
  return isExhausted ? calledWhenExhausted(list) : called;
}

/** The same with columns that nobody else has seen yet. */
const withOwnColumns = (state: NearestState): NearestState =>
  withColumns(state, copiedColumns(state.columns, state.columns.rttsMs.length));

const withColumns = (state: NearestState, columns: CandidateColumns): NearestState => ({
  ...state,
  columns,
  rttsMs: columns.rttsMs,
  prior: { shares: columns.shares, unfamiliarity: state.prior.unfamiliarity },
  memo: { gains: null },
});

/** With more of the fleet at the end of the list, as if they had been there from the beginning. */
function withMore(state: NearestState, members: readonly number[]): NearestState {
  const list = withCalled(state.list!, members);
  const { fleet } = list;
  const before = state.rttsMs.length;
  const columns = copiedColumns(state.columns, list.members.length);
  noteBeliefs(columns, { from: before, list, floor: priorFloor(list.whole.candidates.length) });
  const mixture = withMoreCandidates(state.mixture, { fleet, beliefs: columns.beliefs });
  state.probes.forEach(({ crawlerId, observation }, probe) => {
    const rttMs = rttOf(observation);
    if (rttMs === null) return;
    const asked = fleet.indexOf.get(crawlerId)!;
    const fromHere = mixture.view.rttsFrom(asked, before);
    weighNewCandidates(mixture, before, { fromHere, rttMs });
    noteAnswer(columns, before, { probe, asked, rttMs, fromHere });
  });
  return withColumns({ ...state, list, fleet, mixture }, columns);
}

/** What was expected of asking this candidate now; 0 before any answer. */
function expectedOf(state: NearestState, index: number): number {
  const best = fastestIndex(state);
  if (best < 0) return 0;
  const gainMs = gainsOf(state, best).gainsMs[index]!;
  return Number.isNaN(gainMs) ? 0 : gainMs;
}

function gainsOf(state: NearestState, best: number): ExpectedGains {
  const { mixture, columns, probes, memo } = state;
  const fleetSize = fleetSizeOf(state);
  memo.gains ??= expectedGains({ mixture, columns, best, askedCount: probes.length, fleetSize });
  return memo.gains;
}

function bounds(gapsMs: Float64Array): Float64Array {
  return gapsMs.map((gapMs) => trustInTriangle * gapMs);
}

/** Nobody has answered yet: the likeliest that was not asked. */
function firstAnswer(state: NearestState): RoundStep {
  if (state.probes.length === state.fleet.candidates.length || looksSilent(state))
    return decidedByPrior(state, fleetSizeOf(state));
  const { beliefs, asked } = state.columns;
  let likeliest = -1;
  for (let index = 0; index < beliefs.length; index++)
    if (asked[index] === 0 && !(beliefs[index]! <= (beliefs[likeliest] ?? 0))) likeliest = index;
  return probeStep(state, state.fleet.candidates[likeliest]!);
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
    rttMs: state.rttsMs[best]!,
    lambdaMs,
    costMs: next?.costMs ?? lambdaMs,
    next: next && namedNext(state, next),
    certainty: certaintyOf(state, best),
    ...askedCrawlers(state),
    ...ruledOutBy(state, best),
  } as const;
  return decidedFor(state, best, reason, state.columns.mostMs);
}

interface Worth {
  readonly index: number;
  /** Expected of the probe, in ms. */
  readonly gainMs: number;
  /** What the probe must save: λ, or less where it teaches something for later. */
  readonly costMs: number;
}

/** The candidate whose gain stands best against its cost; null when nobody is left who could be nearer. */
function mostWorthAsking(state: NearestState, best: number): Worth | null {
  const { lambdaMs } = state.parameters;
  const { scale } = state.mixture.learned.calibration;
  const newHolder = 1 + worthOfNewHolder * state.prior.unfamiliarity;
  const viewWorth = worthOfNewView * Math.min(1, 12 / fleetSizeOf(state));
  const { gainsMs, alikeMeasured } = gainsOf(state, best);
  let most = -1;
  let mostWorth = 0;
  let newViewOfMost = 1;
  for (let index = 0; index < gainsMs.length; index++) {
    const gainMs = gainsMs[index]!;
    if (Number.isNaN(gainMs)) continue;
    const newView = 1 + viewWorth / (1 + alikeMeasured[index]!) ** 2;
    const worth = gainMs * newHolder * newView;
    if (worth <= mostWorth) continue;
    most = index;
    mostWorth = worth;
    newViewOfMost = newView;
  }
  if (most < 0) return null;
  return { index: most, gainMs: gainsMs[most]! * scale, costMs: lambdaMs / (newHolder * newViewOfMost) };
}

function namedNext(state: NearestState, { index, gainMs }: Worth): ReasonOf<"expected-gain">["next"] {
  const crawlerId = state.fleet.candidates[index]!;
  return {
    crawlerId,
    expectedGainMs: gainMs,
    lowerBoundMs: trustInTriangle * state.columns.gapsMs[index]!,
  };
}

/** Belief that the best so far is the nearest: its share of what the answers leave of all beliefs. */
function certaintyOf(state: NearestState, best: number): number {
  const { beliefs, fits, gapsMs, rttsMs } = state.columns;
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
  const { gapsMs, gapProbes, asked } = state.columns;
  const bestRttMs = state.rttsMs[best]!;
  const open = new Float64Array(gapsMs.length).fill(Number.NaN);
  let ruledOutCount = 0;
  for (let index = 0; index < open.length; index++) {
    const lowerBoundMs = trustInTriangle * gapsMs[index]!;
    // Of an answer of 0 ms nobody can be nearer, but that is no figure of theirs where nobody measured them.
    if (asked[index] === 1 || gapProbes[index]! < 0 || lowerBoundMs < bestRttMs) continue;
    open[index] = lowerBoundMs;
    ruledOutCount += 1;
  }
  const named = smallestOf(open, maxNamedCrawlers);
  return { ruledOut: Array.from(named, (index) => ruledOutCrawler(state, index)), ruledOutCount };
}

function ruledOutCrawler(state: NearestState, index: number): RuledOutCrawler {
  const { gapsMs, gapProbes, gapApartMs } = state.columns;
  const decisive = state.probes[gapProbes[index]!]!;
  return {
    crawlerId: state.fleet.candidates[index]!,
    lowerBoundMs: trustInTriangle * gapsMs[index]!,
    by: decisive.crawlerId,
    byRttMs: rttOf(decisive.observation)!,
    peerRttMs: gapApartMs[index]!,
  };
}

/**
 * Decides when a probe round checks for anycast, whom it asks, and who gets an anycast range. A round of `nearest` asks
 * crawlers near each other, so that an anycast range would only show one fast answer.
 * - check: a fast answer decides the round and the range is suspect: other ranges of its holder are anycast, it is registered
 *   in another country than the fast crawler's, or its load is large. One crawler far from the fast one is asked. A holder
 *   found clear is not checked again for a while. For a range on a cloud's or CDN's list two far crawlers are asked, once per
 *   region of the list or per range without one.
 * - confirm: two answers contradict a single place. One of the crawlers may be at fault (a machine beside it answers for all
 *   targets), so one or two more are asked until a contradiction remains without any one of them: a crawler far from both, or
 *   neighbours of the two. If a list names a range without a place, its publisher has confirmed it.
 *
 * A round asks at most four extra crawlers, and most rounds none.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import {
  type AnycastEvidence,
  type AnycastRanges,
  answerOf,
  clearMs,
  contradictions,
  type KnownFleet,
  leastSum,
  mostSumMs,
  type PlacedAnswer,
  placeOf,
  someOf,
} from "./anycast.ts";
import type { Delegation } from "./delegation.ts";
import type { CandidateFleet } from "./fleet.ts";
import type { ListedRange, Placement } from "./placement.ts";
import type { PolicyName } from "./policies/policies.ts";
import type { ReasonOf } from "./policies/reason.ts";
import type { RoundStep } from "./policies/round.ts";
import type { Decided, RoundQuestions } from "./round-questions.ts";
import type { CoordinatorState } from "./state.ts";

/** Maximum RTT of a fast answer. A machine beside the crawler may give one, so only two contradicting answers prove anycast. */
const fastMs = 15;

interface AnycastCrawler {
  readonly crawlerId: CrawlerId;
  readonly place: PlacedAnswer["place"];
  readonly country: string | null;
}

export interface AnycastView {
  /** The candidates, or a sample of a large fleet. */
  readonly crawlers: ReadonlyMap<CrawlerId, AnycastCrawler>;
  /** A crawler's load as a share of its limit. The smallest is preferred. */
  readonly loadOf: (crawlerId: CrawlerId) => number;
  readonly fleet: KnownFleet;
  /** The round's measurements so far, all by one method. */
  readonly answers: readonly Omit<PlacedAnswer, "place">[];
  /** Every crawler that the round asked, whatever the outcome. */
  readonly asked: ReadonlySet<CrawlerId>;
  readonly country: string | null;
  /** Whether other ranges of its holder are anycast. False after a recent check, null if unknown. */
  readonly holder: boolean | null;
  /** True if its load is large enough to matter. */
  readonly isLarge: boolean;
  /** A cloud's list entry and whether it was checked. Null if the range is on no list. */
  readonly listed: (ListedRange & { readonly isClear: boolean }) | null;
}

interface AnycastRange {
  readonly evidence: AnycastEvidence;
  /** Another crawler whose answer contradicts. Null if the publisher's word suffices. */
  readonly confirmed: Answer | null;
  readonly listed: ListedRange | null;
  /** Fast answers, the crawler with the most room first. */
  readonly byLoad: readonly Answer[];
}

interface Answer {
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
}

/** The range that the answers prove. Null unless a contradiction remains when any one crawler is ignored. */
export function provenAnycast(view: AnycastView): AnycastRange | null {
  const pairs = contradictions(placed(view), view.fleet);
  const [first] = pairs;
  const { listed } = view;
  if (first === undefined) return null;
  if (suspectsOf(pairs).length > 0 && listed?.isEverywhere !== true) return null;
  const pair = new Set([first.near.crawlerId, first.far.crawlerId]);
  const confirmed = answersOf(pairs).find(({ crawlerId }) => !pair.has(crawlerId)) ?? null;
  return { evidence: first, confirmed, listed, byLoad: fastByLoad(view) };
}

/** The crawler whose answer would rule out a single faulty crawler. Null if nothing contradicts, or no crawler can decide. */
export function confirmingCrawler(view: AnycastView): CrawlerId | null {
  const pairs = contradictions(placed(view), view.fleet);
  const suspects = suspectsOf(pairs);
  const [one, other] = suspects;
  if (one === undefined) return null;
  if (other !== undefined) {
    const third = farthest(view, suspects);
    if (third !== null) return third;
  }
  const mustMiss = (crawler: AnycastCrawler) =>
    Math.max(...besides(pairs, suspects).map((pair) => mustMissMs(view, crawler, pair)));
  const neighbour = best(unasked(view), mustMiss);
  return neighbour && mustMiss(neighbour) > 0 ? neighbour.crawlerId : null;
}

/** Crawlers involved in every contradiction. */
function suspectsOf(pairs: readonly AnycastEvidence[]): Answer[] {
  const [first] = pairs;
  if (first === undefined) return [];
  return [first.near, first.far].filter(({ crawlerId }) =>
    pairs.every(({ near, far }) => near.crawlerId === crawlerId || far.crawlerId === crawlerId),
  );
}

const answersOf = (pairs: readonly AnycastEvidence[]): Answer[] =>
  pairs.flatMap(({ near, far }) => [near, far]);

/** For each suspect, a crawler whose neighbour is to be asked, and the answer that this neighbour would contradict. */
function besides(pairs: readonly AnycastEvidence[], suspects: readonly Answer[]): Pair[] {
  const others = answersOf(pairs);
  return suspects.flatMap((beside) =>
    others.filter(({ crawlerId }) => crawlerId !== beside.crawlerId).map((against) => ({ beside, against })),
  );
}

/** The crawler to ask whether the range decided by `fastest` is anycast. Null if nothing suggests it. */
export function checkingCrawler(view: AnycastView, fastest: Answer): CrawlerId | null {
  const own = crawlerOf(view, fastest.crawlerId);
  if (own === null || fastest.rttMs > fastMs || !isSuspect(view, own)) return null;
  const asked = [...view.asked].flatMap((crawlerId) => view.crawlers.get(crawlerId) ?? []);
  const far = asked.filter((other) => other !== own && roomBetween(view, other, [fastest]) >= fastMs);
  if (far.length >= farAsked(view)) return null;
  // A range announced from many places is most likely announced from the country where it is registered, too.
  const { country } = view;
  const choose = view.holder ? idlest : farthest;
  return (country === null ? null : choose(view, [fastest], country)) ?? choose(view, [fastest]);
}

/** A publisher's list justifies asking two crawlers: a network with few places may have none near one of them. */
const farAsked = ({ listed }: Pick<AnycastView, "listed">): number => (listed === null ? 1 : 2);

/** The farthest crawler whose fast answer would contradict all of these. */
function farthest(view: AnycastView, answers: readonly Answer[], country?: string): CrawlerId | null {
  let found: CrawlerId | null = null;
  let foundMs = fastMs;
  for (const crawler of view.crawlers.values()) {
    if (country !== undefined && crawler.country !== country) continue;
    // Detours only shorten distances, so they are searched for among few crawlers.
    const mostMs = mostRoomBetween(view, crawler, answers);
    if (mostMs < foundMs || (found !== null && mostMs === foundMs)) continue;
    if (view.asked.has(crawler.crawlerId)) continue;
    const roomMs = roomBetween(view, crawler, answers);
    if (roomMs < foundMs || (found !== null && roomMs === foundMs)) continue;
    found = crawler.crawlerId;
    foundMs = roomMs;
  }
  return found;
}

/** Does what `farthest` does, but returns the least loaded crawler. */
function idlest(view: AnycastView, answers: readonly Answer[], country?: string): CrawlerId | null {
  const isFar = (crawler: AnycastCrawler) =>
    mostRoomBetween(view, crawler, answers) >= fastMs && roomBetween(view, crawler, answers) >= fastMs;
  const byLoad = unasked(view)
    .filter((crawler) => country === undefined || crawler.country === country)
    .map((crawler) => ({ crawler, load: view.loadOf(crawler.crawlerId) }))
    .sort((a, b) => a.load - b.load);
  return byLoad.find(({ crawler }) => isFar(crawler))?.crawler.crawlerId ?? null;
}

function isSuspect({ listed, holder, country, isLarge }: AnycastView, fastest: AnycastCrawler): boolean {
  if (listed !== null) return !listed.isClear;
  if (holder !== null) return holder;
  return isLarge || (country !== null && fastest.country !== null && country !== fastest.country);
}

interface Pair {
  readonly beside: Answer;
  readonly against: Answer;
}

/**
 * Assumes that the target is beside one crawler of a pair, so that the third answers within its distance to that one. Returns
 * the minimum, in ms, by which this contradicts the pair's other answer. Negative if it need not contradict.
 */
function mustMissMs(view: AnycastView, third: AnycastCrawler, pair: Pair): number {
  const against = crawlerOf(view, pair.against.crawlerId);
  const wayMs = view.fleet.peerRtts.rttMs(third.crawlerId, pair.beside.crawlerId);
  const least = against === null ? null : leastSum(third, against, view.fleet);
  if (wayMs === null || least === null) return Number.NEGATIVE_INFINITY;
  return least.ms - pair.against.rttMs - (wayMs + pair.beside.rttMs);
}

/** The slowest answer of the third that still contradicts all of them. Negative if the third is not far from one of them. */
function roomBetween(view: AnycastView, third: AnycastCrawler, answers: readonly Answer[]): number {
  const rooms = answers.map(({ crawlerId, rttMs }) => {
    const crawler = crawlerOf(view, crawlerId);
    return (crawler === null ? 0 : (leastSum(crawler, third, view.fleet)?.ms ?? 0)) - rttMs;
  });
  return Math.min(...rooms);
}

/** A cheap upper bound of `roomBetween`. */
function mostRoomBetween(view: AnycastView, third: AnycastCrawler, answers: readonly Answer[]): number {
  let mostMs = Number.POSITIVE_INFINITY;
  for (const { crawlerId, rttMs } of answers) {
    const crawler = crawlerOf(view, crawlerId);
    mostMs = Math.min(mostMs, (crawler === null ? 0 : mostSumMs(crawler, third, view.fleet)) - rttMs);
  }
  return mostMs;
}

/** Answers near the fastest one, by load. */
function fastByLoad(view: AnycastView): Answer[] {
  const fastestMs = Math.min(...view.answers.map(({ rttMs }) => rttMs));
  return view.answers
    .filter(({ rttMs }) => rttMs <= Math.max(fastMs, 2 * fastestMs))
    .toSorted((a, b) => view.loadOf(a.crawlerId) - view.loadOf(b.crawlerId) || a.rttMs - b.rttMs);
}

function placed(view: AnycastView): PlacedAnswer[] {
  return view.answers.map((answer) => ({
    ...answer,
    place: crawlerOf(view, answer.crawlerId)?.place ?? null,
  }));
}

function crawlerOf(view: AnycastView, crawlerId: CrawlerId): AnycastCrawler | null {
  return view.crawlers.get(crawlerId) ?? null;
}

function unasked(view: AnycastView): AnycastCrawler[] {
  return [...view.crawlers.values()].filter(({ crawlerId }) => !view.asked.has(crawlerId));
}

function best(crawlers: readonly AnycastCrawler[], score: (crawler: AnycastCrawler) => number) {
  let found: AnycastCrawler | null = null;
  for (const crawler of crawlers) if (found === null || score(crawler) > score(found)) found = crawler;
  return found;
}

// A round's own check for anycast (delegation/anycast-check decides when and whom to ask): at most one check, two for
// a listed range, and two confirmations of one probe each.

interface AnycastContext {
  readonly policy: PolicyName;
  readonly subnetId: SubnetId;
  readonly placement: Placement;
  readonly fleet: CandidateFleet;
  readonly state: CoordinatorState;
  readonly ranges: AnycastRanges;
  readonly nowMs: number;
  readonly isLarge: boolean;
}

const mostConfirmations = 2;

export interface NotAnycast {
  readonly place: string;
  /** How many crawlers far from the nearest were asked. */
  readonly far: number;
}

export class AnycastLook {
  readonly #context: AnycastContext;
  #seen: { readonly probes: number; readonly view: AnycastView } | null = null;
  #checks = 0;
  #confirmations = 0;
  /** In a large fleet, the sample that this round uses. */
  #crawlers: Map<CrawlerId, AnycastCrawler> | null = null;

  constructor(context: AnycastContext) {
    this.#context = context;
  }

  proven(questions: RoundQuestions): AnycastRange | null {
    const view = this.#view(questions);
    return view.answers.length < 2 ? null : provenAnycast(view);
  }

  /** Whom to ask next about anycast. Null continues the round. Each question is asked once. */
  next(questions: RoundQuestions, step: RoundStep): CrawlerId | null {
    const view = this.#view(questions);
    if (this.#confirmations < mostConfirmations && view.answers.length >= 2) {
      const crawlerId = confirmingCrawler(view);
      if (crawlerId !== null) this.#confirmations += 1;
      if (crawlerId !== null) return crawlerId;
    }
    // The other policies serve for comparison and must not ask any other crawler.
    if (this.#checks >= farAsked(view) || this.#context.policy !== "nearest") return null;
    if (step.type !== "decided" || step.rttMs === null) return null;
    this.#checks += 1;
    const { ranges, subnetId, fleet } = this.#context;
    const witness = ranges.takeWitness(subnetId);
    if (witness !== null && fleet.indexOf.has(witness) && !view.asked.has(witness)) return witness;
    return checkingCrawler(view, { crawlerId: step.crawlerId, rttMs: step.rttMs });
  }

  /**
   * Notes that the round ends without finding anycast, so that what was checked need not be checked soon. Returns the lasting
   * result for a listed range.
   */
  noteNothing(questions: RoundQuestions): NotAnycast | null {
    const { ranges, placement, nowMs } = this.#context;
    const view = this.#view(questions);
    const { listed, answers } = view;
    const suspected = this.#checks > 0 && answers.length >= 2;
    const isClear = suspected && this.#confirmations === 0;
    if (isClear) ranges.noteClear(placement.holderKey, nowMs);
    const fastest = answers.toSorted((a, b) => a.rttMs - b.rttMs)[0];
    if (listed === null || listed.isClear || fastest === undefined || fastest.rttMs > fastMs) return null;
    const far = [...view.asked].filter((crawlerId) => {
      const crawler = crawlerOf(view, crawlerId);
      const isOther = crawler !== null && crawlerId !== fastest.crawlerId;
      return isOther && roomBetween(view, crawler, [fastest]) >= fastMs;
    });
    if (far.length === 0) return null;
    const isHeard = far.some((crawlerId) => answers.some((answer) => answer.crawlerId === crawlerId));
    const isOnePlace = isHeard && contradictions(placed(view), view.fleet).length === 0;
    ranges.noteListedClear(listed.place, isOnePlace ? Number.POSITIVE_INFINITY : nowMs + clearMs);
    return isOnePlace ? { place: listed.place, far: far.length } : null;
  }

  #view(questions: RoundQuestions): AnycastView {
    const probes = questions.probes.length;
    if (this.#seen?.probes !== probes) this.#seen = { probes, view: this.#viewOf(questions) };
    return this.#seen.view;
  }

  #viewOf(questions: RoundQuestions): AnycastView {
    const { placement, fleet, state, ranges, nowMs, isLarge } = this.#context;
    const { asked } = questions;
    const { listed } = placement;
    const crawlers = this.#crawlersWith(asked);
    return {
      crawlers,
      loadOf: (crawlerId) => {
        const pagesPerDay = state.crawler(crawlerId)?.pagesPerDay ?? 1;
        return state.subnetCountOf(crawlerId) / Math.max(1, pagesPerDay);
      },
      fleet: {
        candidates: crawlers.size === fleet.candidates.length ? fleet.candidates : [...crawlers.keys()],
        peerRtts: fleet.peerRtts,
      },
      answers: questions.answers,
      asked,
      country: placement.country,
      holder: ranges.ofHolder(placement.holderKey, nowMs),
      isLarge,
      listed: listed === undefined ? null : { ...listed, isClear: ranges.isListedClear(listed, nowMs) },
    };
  }

  /** Adds the asked crawlers and some in the target's country to a large fleet's sample. */
  #crawlersWith(asked: ReadonlySet<CrawlerId>): AnycastView["crawlers"] {
    const { fleet, placement, state } = this.#context;
    const { some, byCountry } = crawlersOf(fleet, state);
    if (some.size === fleet.candidates.length) return some;
    const inCountry = byCountry.get(placement.country ?? "") ?? [];
    // One map per round: each answer adds one crawler to some 260.
    this.#crawlers ??= new Map([
      ...some,
      ...inCountry.map((one) => [one, placedAnswers(one, state)] as const),
    ]);
    for (const one of asked) if (!this.#crawlers.has(one)) this.#crawlers.set(one, placedAnswers(one, state));
    return this.#crawlers;
  }
}

interface KnownCrawlers {
  /** Crawlers that may be asked or used for detours: all, or a sample of a large fleet. */
  readonly some: ReadonlyMap<CrawlerId, AnycastCrawler>;
  readonly byCountry: ReadonlyMap<string, readonly CrawlerId[]>;
}

/** Maximum crawlers per country of a large fleet. */
const mostOfCountry = 8;

/** Cached because consecutive rounds have the same fleet. */
const known = new WeakMap<
  CandidateFleet,
  { readonly records: CoordinatorState["crawlers"]; readonly crawlers: KnownCrawlers }
>();

function crawlersOf(fleet: CandidateFleet, state: CoordinatorState): KnownCrawlers {
  const before = known.get(fleet);
  if (before?.records === state.crawlers) return before.crawlers;
  const some = new Map(
    someOf(fleet.candidates).map((crawlerId) => [crawlerId, placedAnswers(crawlerId, state)]),
  );
  const byCountry = new Map<string, CrawlerId[]>();
  for (const crawlerId of some.size < fleet.candidates.length ? fleet.candidates : []) {
    const country = state.crawler(crawlerId)?.country ?? null;
    if (country === null) continue;
    const there = byCountry.get(country) ?? [];
    byCountry.set(country, there);
    if (there.length < mostOfCountry) there.push(crawlerId);
  }
  const crawlers = { some, byCountry };
  known.set(fleet, { records: state.crawlers, crawlers });
  return crawlers;
}

function placedAnswers(crawlerId: CrawlerId, state: CoordinatorState): AnycastCrawler {
  const country = state.crawler(crawlerId)?.country ?? null;
  return { crawlerId, place: placeOf(crawlerId, state), country };
}

/** Gives the range to the crawler with the most room among the fast ones. */
export function decidedByLoad({ evidence, confirmed, listed, byLoad }: AnycastRange): Decided {
  const [first, second = null] = byLoad;
  const reason: ReasonOf<"anycast"> = {
    type: "anycast",
    ...evidence,
    confirmed,
    ...(listed !== null && { listed: listed.place }),
    fast: byLoad.length,
    runnerUp: second === null ? null : { ...second, atMostMs: null },
  };
  return {
    crawlerId: first?.crawlerId ?? null,
    measured: true,
    rttMs: first?.rttMs ?? null,
    runnerUpId: second?.crawlerId ?? null,
    runnerUpRttMs: second?.rttMs ?? null,
    reason,
    anycast: true,
  };
}

// Finds delegated ranges that may be anycast although no round has shown it: a round stops at the first near answer, and a
// lone crawler gets its subnets without one.
// - A cloud or CDN lists the range, and that place of the list has not been checked.
// - The owner and the runner-up both measured it near, although they are far apart.
//
// Such a range gets a round that asks a crawler that could contradict (anycast-check.ts). Delegations are examined in turn,
// and none is a candidate again within a day.

/** Delegations examined per run. With one run a minute, a million take eight hours. */
const lookedAt = 2000;

const roundsPerTurn = 10;

interface CandidatePorts {
  readonly state: CoordinatorState;
  readonly ranges: AnycastRanges;
  readonly online: () => readonly CrawlerId[];
  readonly nowMs: () => number;
}

export class AnycastCandidates {
  readonly #ports: CandidatePorts;
  #at = 0;

  constructor(ports: CandidatePorts) {
    this.#ports = ports;
  }

  next(): SubnetId[] {
    const { state, ranges, online, nowMs } = this.#ports;
    const crawlers = someOf(online());
    const found: SubnetId[] = [];
    /** Listed places found in this run, since one range per place suffices. */
    const places = new Set<string>();
    for (let looked = 0; looked < Math.min(lookedAt, state.delegationTable.size); looked += 1) {
      if (found.length === roundsPerTurn) return found;
      this.#at = (this.#at + 1) % state.delegationTable.size;
      const delegation = state.delegationTable.at(this.#at);
      if (delegation === null || ranges.has(delegation.subnetId) || !crawlers.includes(delegation.crawlerId))
        continue;
      const { listed } = state.placementOf(delegation.subnetId) ?? {};
      const isUnchecked =
        listed !== undefined && !ranges.isListedClear(listed, nowMs()) && !places.has(listed.place);
      const witness =
        this.#contradicting(delegation) ?? (isUnchecked ? this.#farFrom(delegation, crawlers) : null);
      if (witness === null || !ranges.suspect(delegation.subnetId, witness, nowMs())) continue;
      if (listed !== undefined) places.add(listed.place);
      found.push(delegation.subnetId);
    }
    return found;
  }

  /** The runner-up, if one machine cannot have given both answers. */
  #contradicting({ crawlerId, rttMs, measured, runnerUpId, runnerUpRttMs }: Delegation): CrawlerId | null {
    if (!measured || rttMs === null || runnerUpId === null || runnerUpRttMs === null) return null;
    const { state } = this.#ports;
    const answers = [answerOf(crawlerId, rttMs, state), answerOf(runnerUpId, runnerUpRttMs, state)];
    const fleet = { candidates: [crawlerId, runnerUpId], peerRtts: state.peerRtts };
    return contradictions(answers, fleet).length > 0 ? runnerUpId : null;
  }

  /** The farthest crawler whose fast answer would contradict the owner's. */
  #farFrom({ crawlerId, rttMs }: Delegation, crawlers: readonly CrawlerId[]): CrawlerId | null {
    const { state } = this.#ports;
    if (rttMs !== null && rttMs > fastMs) return null;
    const own = answerOf(crawlerId, 0, state);
    const fleet = { candidates: crawlers, peerRtts: state.peerRtts };
    let farthest: CrawlerId | null = null;
    let mostMs = fastMs + (rttMs ?? 0);
    for (const other of crawlers) {
      const apartMs = leastSum(own, answerOf(other, 0, state), fleet)?.ms ?? 0;
      if (other === crawlerId || apartMs < mostMs) continue;
      mostMs = apartMs;
      farthest = other;
    }
    return farthest;
  }
}

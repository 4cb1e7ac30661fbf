/**
 * A live round's look-out for anycast (delegation/anycast-check says when and whom to ask): at most one
 * check and two confirmations, each one probe.
 */

import type { CrawlerId, SubnetId } from "#core/ids";
import {
  type AnycastCrawler,
  type AnycastRange,
  type AnycastView,
  checkingCrawler,
  confirmingCrawler,
  provenAnycast,
} from "./anycast-check.ts";
import type { AnycastRanges } from "./anycast-ranges.ts";
import type { CandidateFleet } from "./fleet.ts";
import type { Placement } from "./placement.ts";
import type { ReasonOf } from "./policies/reason.ts";
import type { PolicyName, RoundStep } from "./policies/round.ts";
import type { RoundQuestions } from "./round-questions.ts";
import type { Decided } from "./round-result.ts";
import type { CoordinatorState } from "./state.ts";

export interface AnycastContext {
  readonly policy: PolicyName;
  readonly subnetId: SubnetId;
  readonly placement: Placement;
  readonly fleet: CandidateFleet;
  readonly state: CoordinatorState;
  readonly ranges: AnycastRanges;
  readonly nowMs: number;
  /** There is much to fetch in the subnet. */
  readonly isLarge: boolean;
}

const mostConfirmations = 2;

export class AnycastLook {
  readonly #context: AnycastContext;
  #seen: { readonly probes: number; readonly view: AnycastView } | null = null;
  #checked = false;
  #confirmations = 0;

  constructor(context: AnycastContext) {
    this.#context = context;
  }

  proven(questions: RoundQuestions): AnycastRange | null {
    const view = this.#view(questions);
    return view.answers.length < 2 ? null : provenAnycast(view);
  }

  /** Whom to ask now for anycast's sake; null: go on with the round. Each question is asked once. */
  next(questions: RoundQuestions, step: RoundStep): CrawlerId | null {
    const view = this.#view(questions);
    if (this.#confirmations < mostConfirmations && view.answers.length >= 2) {
      const crawlerId = confirmingCrawler(view);
      if (crawlerId !== null) this.#confirmations += 1;
      if (crawlerId !== null) return crawlerId;
    }
    // The other policies are there for comparison, and ask whom they ask.
    if (this.#checked || this.#context.policy !== "nearest") return null;
    if (step.type !== "decided" || step.rttMs === null) return null;
    this.#checked = true;
    const { ranges, subnetId, fleet } = this.#context;
    const witness = ranges.takeWitness(subnetId);
    if (witness !== null && fleet.indexOf.has(witness) && !view.asked.has(witness)) return witness;
    return checkingCrawler(view, { crawlerId: step.crawlerId, rttMs: step.rttMs });
  }

  /** The round is over and found nothing: what was looked at need not be looked at again soon. */
  noteNothing(questions: RoundQuestions): void {
    const { ranges, placement, nowMs } = this.#context;
    const suspected = this.#checked && this.#view(questions).answers.length >= 2;
    if (suspected && this.#confirmations === 0) ranges.noteClear(placement.holderKey, nowMs);
  }

  #view(questions: RoundQuestions): AnycastView {
    const probes = questions.probes.length;
    if (this.#seen?.probes !== probes) this.#seen = { probes, view: this.#viewOf(questions) };
    return this.#seen.view;
  }

  #viewOf(questions: RoundQuestions): AnycastView {
    const { placement, fleet, state, ranges, nowMs, isLarge } = this.#context;
    return {
      crawlers: crawlersOf(fleet, state),
      loadOf: (crawlerId) => {
        const pagesPerDay = state.crawler(crawlerId)?.pagesPerDay ?? 1;
        return state.subnetCountOf(crawlerId) / Math.max(1, pagesPerDay);
      },
      fleet,
      answers: questions.answers,
      asked: questions.asked,
      country: placement.country,
      holder: ranges.ofHolder(placement.holderKey, nowMs),
      isLarge,
    };
  }
}

type KnownCrawlers = ReadonlyMap<CrawlerId, AnycastCrawler>;

/** Where the crawlers of the latest fleets stand: rounds follow each other with the same ones. */
const known = new WeakMap<
  CandidateFleet,
  { readonly records: CoordinatorState["crawlers"]; readonly crawlers: KnownCrawlers }
>();

function crawlersOf(fleet: CandidateFleet, state: CoordinatorState): KnownCrawlers {
  const before = known.get(fleet);
  if (before?.records === state.crawlers) return before.crawlers;
  const crawlers = new Map(fleet.candidates.map((crawlerId) => [crawlerId, placed(crawlerId, state)]));
  known.set(fleet, { records: state.crawlers, crawlers });
  return crawlers;
}

function placed(crawlerId: CrawlerId, state: CoordinatorState): AnycastCrawler {
  const { latitude = null, longitude = null, country = null } = state.crawler(crawlerId) ?? {};
  const place = latitude === null || longitude === null ? null : { latitude, longitude };
  return { crawlerId, place, country };
}

/** The range goes to the crawler with the most room among those that answered fast. */
export function decidedByLoad({ evidence, confirmed, byLoad }: AnycastRange): Decided {
  const [first, second = null] = byLoad;
  const reason: ReasonOf<"anycast"> = {
    type: "anycast",
    ...evidence,
    confirmed,
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

/**
 * A live round's look-out for anycast (core/delegation/anycast-check says when and whom to ask): at most one
 * check and two confirmations, each one probe.
 */
import {
  type AnycastCrawler,
  type AnycastRange,
  type AnycastView,
  checkingCrawler,
  confirmingCrawler,
  provenAnycast,
} from "#core/delegation/anycast-check";
import type { CandidateFleet } from "#core/delegation/fleet";
import type { Placement } from "#core/delegation/placement";
import type { ReasonOf } from "#core/delegation/reason-record";
import type { PolicyName, RoundStep } from "#core/delegation/round";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { AnycastRanges } from "./anycast-ranges.ts";
import type { CoordinatorState } from "./coordinator-state.ts";
import type { RoundQuestions } from "./round-questions.ts";
import type { Decided } from "./round-result.ts";

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
  #crawlers: readonly AnycastCrawler[] | null = null;
  #checked = false;
  #confirmations = 0;

  constructor(context: AnycastContext) {
    this.#context = context;
  }

  proven(questions: RoundQuestions): AnycastRange | null {
    return questions.answers.length < 2 ? null : provenAnycast(this.#view(questions));
  }

  /** Whom to ask now for anycast's sake; null: go on with the round. Each question is asked once. */
  next(questions: RoundQuestions, step: RoundStep): CrawlerId | null {
    if (this.#confirmations < mostConfirmations && questions.answers.length >= 2) {
      const crawlerId = confirmingCrawler(this.#view(questions));
      if (crawlerId !== null) this.#confirmations += 1;
      if (crawlerId !== null) return crawlerId;
    }
    // The other policies are there for comparison, and ask whom they ask.
    if (this.#checked || this.#context.policy !== "nearest") return null;
    if (step.type !== "decided" || step.rttMs === null) return null;
    this.#checked = true;
    const { ranges, subnetId, fleet } = this.#context;
    const witness = ranges.takeWitness(subnetId);
    if (witness !== null && fleet.indexOf.has(witness) && !questions.asked.has(witness)) return witness;
    return checkingCrawler(this.#view(questions), { crawlerId: step.crawlerId, rttMs: step.rttMs });
  }

  /** The round is over and found nothing: what was looked at need not be looked at again soon. */
  noteNothing(questions: RoundQuestions): void {
    const { ranges, placement, nowMs } = this.#context;
    const suspected = this.#checked && questions.answers.length >= 2;
    if (suspected && this.#confirmations === 0) ranges.noteClear(placement.holderKey, nowMs);
  }

  #view(questions: RoundQuestions): AnycastView {
    const { placement, fleet, ranges, nowMs, isLarge } = this.#context;
    this.#crawlers ??= this.#crawlersOf(fleet);
    return {
      crawlers: this.#crawlers,
      fleet,
      answers: questions.answers,
      asked: questions.asked,
      country: placement.country,
      holder: ranges.ofHolder(placement.holderKey, nowMs),
      isLarge,
    };
  }

  #crawlersOf({ candidates }: CandidateFleet): AnycastCrawler[] {
    const { state } = this.#context;
    return candidates.map((crawlerId) => {
      const crawler = state.crawler(crawlerId);
      const { latitude = null, longitude = null } = crawler ?? {};
      return {
        crawlerId,
        place: latitude === null || longitude === null ? null : { latitude, longitude },
        country: crawler?.country ?? null,
        load: state.subnetCountOf(crawlerId) / Math.max(1, crawler?.pagesPerDay ?? 1),
      };
    });
  }
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

/**
 * Collects the evidence for the present owner when a round checks its subnet. A challenger must beat the best evidence by
 * what a probe must be worth (λ):
 * - The owner's probes in this round. One held back by its own pace or limits, or not reported, shows nothing about the
 *   target.
 * - Its latest fetches: noise only adds, so the quickest is an upper bound of the RTT.
 * - Its earlier measurement, if this round has none and the fetches have not become slow since.
 *
 * A busy machine notices answers late and reports by how much (`lateMs`), so a challenger has to beat the earliest possible
 * time.
 */
import type { RoundCause } from "#core/explanation";
import type { CrawlerId } from "#core/ids";
import { type ProbeMethod, type ProbeOutcome, saysNothing } from "#protocol/messages";
import type { Delegation, RoundProbe } from "./delegation.ts";
import { maxNamedCrawlers, type ReasonOf } from "./policies/reason.ts";
import type { PolicyParameters, RoundStep } from "./policies/round.ts";
import { type Decided, failureWords, kept, type RoundQuestions } from "./round-questions.ts";

/** The quickest recent fetch. Null if no fetch has such a time. */
export interface FetchTimes {
  readonly connectMs: number | null;
  readonly firstByteMs: number | null;
  readonly fetches: number;
}

/** Causes of rounds that check a decision: only a nearer crawler counts against the owner. */
const checks: readonly RoundCause[] = ["slow-fetches", "refresh", "sampled", "review", "retry", "operator"];

export const isCheck = (cause: RoundCause): boolean => checks.includes(cause);

/** Maximum delay. An answer that may be later than this does not replace what was known. */
const sureWithinMs = 5;

/** True if the machine was busy: the true time is between the reported one minus the delay and the reported one. */
export const isLate = (outcome: ProbeOutcome): boolean =>
  outcome.type === "measured" && (outcome.lateMs ?? 0) > sureWithinMs;

const leastOf = (outcome: ProbeOutcome): number =>
  outcome.type === "measured" ? Math.max(0, outcome.rttMs - (outcome.lateMs ?? 0)) : 0;

const mostAskedAgain = 2;

/** Crawlers asked again before a decision: those that did not report, and busy ones that may have been the fastest. */
export class SecondQuestions {
  readonly #marginMs: number;
  readonly #asked = new Set<CrawlerId>();

  constructor({ lambdaMs }: Pick<PolicyParameters, "lambdaMs">) {
    this.#marginMs = lambdaMs;
  }

  /** Returns false if there is no crawler to ask. */
  async ask(questions: RoundQuestions, step: RoundStep): Promise<boolean> {
    if (step.type !== "decided" || this.#asked.size >= mostAskedAgain) return false;
    const toBeatMs = (step.measured ? (step.rttMs ?? 0) : Number.POSITIVE_INFINITY) - this.#marginMs;
    const crawlerId = unsureOf(questions, step.crawlerId).find(
      (one) => one.leastMs < toBeatMs && !this.#asked.has(one.crawlerId),
    )?.crawlerId;
    if (crawlerId === undefined) return false;
    this.#asked.add(crawlerId);
    await questions.probe(crawlerId);
    return true;
  }
}

/** Minimum RTTs of crawlers, except the chosen one, whose answers are uncertain. */
function unsureOf({ probes, method }: RoundQuestions, chosen: CrawlerId) {
  return probes.flatMap(({ crawlerId, outcome, how }) => {
    if (how === "get" || outcome.method !== method || crawlerId === chosen) return [];
    return saysNothing(outcome) || isLate(outcome) ? [{ crawlerId, leastMs: leastOf(outcome) }] : [];
  });
}

interface OwnerContext {
  readonly crawlerId: CrawlerId;
  readonly cause: RoundCause;
  /** The delegation at the start of the round. */
  readonly before: Delegation | null;
  readonly marginMs: number;
  readonly fetchTimes: () => Promise<FetchTimes | null>;
}

export class PresentOwner {
  readonly #context: OwnerContext;
  #wasProbed = false;
  #hasHeardFetches = false;

  constructor(context: OwnerContext) {
    this.#context = context;
  }

  /** Asks the owner before the subnet goes to another crawler. Returns false if the owner has nothing to add. */
  async hear(questions: RoundQuestions, step: RoundStep): Promise<boolean> {
    const { crawlerId, fetchTimes } = this.#context;
    if (!takesAway(step, crawlerId)) return false;
    if (!this.#wasProbed && !questions.asked.has(crawlerId)) {
      this.#wasProbed = true;
      await questions.probe(crawlerId);
      return true;
    }
    if (this.#hasHeardFetches) return false;
    this.#hasHeardFetches = true;
    const outcome = boundBy(await fetchTimes(), questions.method);
    if (outcome === null) return false;
    questions.take({ crawlerId, outcome, how: "get" });
    return true;
  }

  /** The round's outcome. `teaches` says whether later rounds may learn from its answers. */
  judged(
    questions: RoundQuestions,
    decision: Decided,
  ): { readonly ending: Decided; readonly teaches: boolean } {
    const { crawlerId, before, marginMs } = this.#context;
    const own = this.#answer(questions);
    const isAlone = decision.reason.type === "only-candidate";
    const isAnswered = decision.measured || own.isHeldBack || isAlone;
    const knownMs = before?.measured && isAnswered ? before.rttMs : null;
    const isOwn = decision.crawlerId === crawlerId;
    const asBefore = { measured: true, rttMs: own.isSure ? own.rttMs : (knownMs ?? own.rttMs) };
    if (decision.crawlerId === null || (isOwn && (own.isSure || knownMs === null)))
      return { ending: decision, teaches: true };
    if (isOwn) return { ending: { ...decision, ...asBefore }, teaches: false };
    if (!decision.measured) {
      const stays = kept(crawlerId, decision);
      return { ending: knownMs === null ? stays : { ...stays, ...asBefore }, teaches: false };
    }
    const { rttMs } = decision;
    if (rttMs === null || own.leastMs === null || rttMs < own.leastMs - marginMs)
      return { ending: decision, teaches: true };
    const challenger = { crawlerId: decision.crawlerId, rttMs };
    const reason: ReasonOf<"kept"> = {
      type: "kept",
      challenger,
      leastMs: own.leastMs,
      by: own.by,
      lambdaMs: marginMs,
      ...askedIn(questions.probes),
      runnerUp: { ...challenger, atMostMs: rttMs },
    };
    const runnerUp = { runnerUpId: challenger.crawlerId, runnerUpRttMs: rttMs };
    return { ending: { crawlerId, ...asBefore, ...runnerUp, reason }, teaches: false };
  }

  /** What is known of the owner's distance: its quickest measurement of this round, and the time that a challenger must beat. */
  #answer(questions: RoundQuestions) {
    const { crawlerId, cause, before } = this.#context;
    const { probes, method } = questions;
    const own = probes.filter((one) => one.crawlerId === crawlerId && one.outcome.method === method);
    const isHeldBack =
      own.some(({ outcome }) => saysNothing(outcome)) &&
      !own.some(({ outcome, how }) => outcome.type === "measured" && how !== "get");
    const heard = own.flatMap(({ outcome, how }): Heard[] => {
      if (outcome.type !== "measured") return [];
      const countsAs = questions.countedMs(crawlerId);
      if (countsAs !== null) return [{ rttMs: countsAs, leastMs: countsAs, by: "probe" }];
      const by = how === "get" ? "fetches" : isLate(outcome) ? "busy" : "probe";
      return [{ rttMs: outcome.rttMs, leastMs: leastOf(outcome), by }];
    });
    const rttMs = heard.length === 0 ? null : Math.min(...heard.map((one) => one.rttMs));
    const beforeMs = before?.measured ? before.rttMs : null;
    if (isHeldBack && cause !== "slow-fetches" && beforeMs !== null)
      heard.push({ rttMs: beforeMs, leastMs: beforeMs, by: "before" });
    const { leastMs = null, by = "probe" } = heard.toSorted((a, b) => a.leastMs - b.leastMs)[0] ?? {};
    // `isSure` means that a probe of this round measured it without delay.
    return { rttMs, leastMs, by, isSure: heard.some((one) => one.by === "probe"), isHeldBack };
  }
}

interface Heard {
  readonly rttMs: number;
  readonly leastMs: number;
  readonly by: ReasonOf<"kept">["by"];
}

/** True if another crawler wins or no crawler answered. A sole crawler is not asked, since nothing can be compared. */
function takesAway(step: RoundStep, owner: CrawlerId): boolean {
  if (step.type !== "decided" || (step.crawlerId === owner && step.reason.type === "only-candidate"))
    return false;
  return !step.measured || (step.crawlerId !== owner && step.rttMs !== null);
}

/** A first byte is never sooner than an answer to HEAD, and neither it nor a connect is ever sooner than an echo. */
function boundBy(times: FetchTimes | null, method: ProbeMethod): ProbeOutcome | null {
  if (times === null) return null;
  const { connectMs, firstByteMs, fetches } = times;
  const bounds = (method === "head" ? [firstByteMs] : [connectMs, firstByteMs]).filter((ms) => ms !== null);
  if (bounds.length === 0) return null;
  return { type: "measured", method, rttMs: Math.min(...bounds), tries: Math.min(20, Math.max(1, fetches)) };
}

function askedIn(probes: readonly RoundProbe[]): Pick<ReasonOf<"kept">, "asked" | "askedCount"> {
  const asked = probes.slice(0, maxNamedCrawlers).map(({ crawlerId, outcome }) => ({
    crawlerId,
    rttMs: outcome.type === "measured" ? outcome.rttMs : null,
    failed: outcome.type === "measured" ? null : failureWords(outcome),
  }));
  return { asked, askedCount: probes.length };
}

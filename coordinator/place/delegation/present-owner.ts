/**
 * What speaks for the crawler that has a subnet when a round checks that decision. A challenger has to beat the best
 * evidence there is of the owner's distance, by what a probe must be worth (λ):
 *
 * - its probes in this round. One that the owner's own pace or limits held back, or that it did not report, says
 *   nothing of the target: the owner is not unreachable;
 * - its latest fetches: noise only ever adds to a round trip, so the quickest of them bounds the distance from above;
 * - what it measured before, where this round has no measurement of it. Not where the fetches have become slow since.
 *
 * A machine that was busy notices answers late and says by how much (`lateMs`): the answer may have come that much
 * sooner, and a challenger has to beat the sooner time.
 */
import type { RoundCause } from "#core/delegation-cause";
import type { CrawlerId } from "#core/ids";
import { type ProbeMethod, type ProbeOutcome, saysNothing } from "#protocol/messages";
import type { Delegation, RoundProbe } from "./delegation.ts";
import { maxNamedCrawlers, type ReasonOf } from "./policies/reason.ts";
import type { PolicyParameters, RoundStep } from "./policies/round.ts";
import type { RoundQuestions } from "./round-questions.ts";
import { type Decided, kept } from "./round-result.ts";

/** The quickest of the latest fetches; null: none of them took such a time. */
export interface FetchTimes {
  readonly connectMs: number | null;
  readonly firstByteMs: number | null;
  readonly fetches: number;
}

/** Rounds that check a decision: nothing but a nearer crawler speaks against the owner. */
const checks: ReadonlySet<RoundCause> = new Set([
  "slow-fetches",
  "refresh",
  "sampled",
  "review",
  "retry",
  "operator",
]);

export const isCheck = (cause: RoundCause): boolean => checks.has(cause);

/** An answer that was noticed later than this says too little of the distance to replace what was known. */
const sureWithinMs = 5;

/** Its machine was busy: it was anywhere between its time less what it was late, and its time. */
export const isLate = (outcome: ProbeOutcome): boolean =>
  outcome.type === "measured" && (outcome.lateMs ?? 0) > sureWithinMs;

const leastOf = (outcome: ProbeOutcome): number =>
  outcome.type === "measured" ? Math.max(0, outcome.rttMs - (outcome.lateMs ?? 0)) : 0;

/** So many crawlers of a round are asked once more. */
const mostAskedAgain = 2;

/**
 * Crawlers that a round asks once more before it is decided: those of which nothing was heard, and those that were busy
 * and may have had their answer sooner than the one that would be chosen.
 */
export class SecondQuestions {
  readonly #marginMs: number;
  readonly #asked = new Set<CrawlerId>();

  constructor({ lambdaMs }: Pick<PolicyParameters, "lambdaMs">) {
    this.#marginMs = lambdaMs;
  }

  /** False: there is nobody to ask. */
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

/** How near they may be whose answers say too little, but for the one that would be chosen. */
function unsureOf({ probes, method }: RoundQuestions, chosen: CrawlerId) {
  return probes.flatMap(({ crawlerId, outcome, how }) => {
    if (how === "get" || outcome.method !== method || crawlerId === chosen) return [];
    return saysNothing(outcome) || isLate(outcome) ? [{ crawlerId, leastMs: leastOf(outcome) }] : [];
  });
}

interface OwnerContext {
  readonly crawlerId: CrawlerId;
  readonly cause: RoundCause;
  /** As it was when the round began. */
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

  /** Hears the owner before the subnet goes to another crawler. False: it has nothing more to say. */
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

  /** What the round comes to. `teaches`: later rounds may learn from its answers. */
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

  /** What is known of the owner's distance now. */
  #answer(questions: RoundQuestions): OwnAnswer {
    const { crawlerId, cause, before } = this.#context;
    const probes = ownProbes(questions, crawlerId);
    const isHeldBack =
      probes.some(({ outcome }) => saysNothing(outcome)) &&
      !probes.some(({ outcome, how }) => outcome.type === "measured" && how !== "get");
    const heard = probes.flatMap(({ outcome, how }): Heard[] => {
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
    const least = heard.toSorted((a, b) => a.leastMs - b.leastMs)[0];
    return {
      rttMs,
      leastMs: least?.leastMs ?? null,
      by: least?.by ?? "probe",
      isSure: heard.some(({ by }) => by === "probe"),
      isHeldBack,
    };
  }
}

interface Heard {
  readonly rttMs: number;
  readonly leastMs: number;
  /** Whence it is known. */
  readonly by: ReasonOf<"kept">["by"];
}

interface OwnAnswer extends Pick<Heard, "by"> {
  /** The quickest that was measured in this round; null: nothing was. */
  readonly rttMs: number | null;
  /** What a challenger has to beat; null: nothing speaks for the owner. */
  readonly leastMs: number | null;
  /** A probe of this round measured it, on a machine that noticed at once. */
  readonly isSure: boolean;
  readonly isHeldBack: boolean;
}

/** Another crawler would have it, or nobody answered; who is alone is not asked, since there is nobody to compare it with. */
function takesAway(step: RoundStep, owner: CrawlerId): boolean {
  if (step.type !== "decided" || (step.crawlerId === owner && step.reason.type === "only-candidate"))
    return false;
  return !step.measured || (step.crawlerId !== owner && step.rttMs !== null);
}

const ownProbes = ({ probes, method }: RoundQuestions, owner: CrawlerId): RoundProbe[] =>
  probes.filter(({ crawlerId, outcome }) => crawlerId === owner && outcome.method === method);

/** A first byte comes no sooner than an answer to HEAD would; it and a connect, no sooner than an echo. */
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
    failed: outcome.type === "measured" ? null : `${outcome.type}: ${outcome.reason}`.slice(0, 200),
  }));
  return { asked, askedCount: probes.length };
}

/**
 * The questions of one probe round. Only measurements by one method are compared: a HEAD includes the server's time
 * and may be answered by a nearby cache, a connect does not. When a crawler cannot use the round's method and falls
 * back to connect, which all support, the round settles on connect: it restarts with the connect measurements so far,
 * and the policy asks those it still needs. That happens at most once, so nobody is asked more than twice. All answers
 * are recorded with their method.
 *
 *   head: 20 ms by a ── head refused, connect: 8 ms by b ──► settled on connect: 8 ms by b ── ask a again …
 */
import type { CrawlerId } from "#core/ids";
import type { ProbeMethod, ProbeOutcome } from "#protocol/messages";
import type { RoundProbe, WaitingSubnet } from "./delegation.ts";
import type { CandidateFleet } from "./fleet.ts";
import type { LearnedRtts } from "./policies/learned-rtts.ts";
import type { PolicyName } from "./policies/policies.ts";
import { learnFromRound, nextStep, observe, type ProbeRound, startRound } from "./policies/policies.ts";
import type { Observation, RoundInput, RoundStep } from "./policies/round.ts";

interface RoundOpening {
  readonly policy: PolicyName;
  readonly input: Omit<RoundInput, "learned">;
  /** Earlier rounds' measurements by this method. */
  readonly learned: (method: ProbeMethod) => LearnedRtts;
  readonly method: ProbeMethod;
  /** Lets the crawler measure; never rejects. */
  readonly ask: (crawlerId: CrawlerId, method: ProbeMethod) => Promise<ProbeOutcome>;
}

/** The method that all fall back to. */
const common: ProbeMethod = "connect";

export class RoundQuestions {
  readonly #opening: RoundOpening;
  readonly #probes: RoundProbe[] = [];
  #method: ProbeMethod;
  #round: ProbeRound;

  constructor(opening: RoundOpening) {
    this.#opening = opening;
    this.#method = opening.method;
    this.#round = this.#start();
  }

  /** Every answer in order of arrival, including other methods. */
  get probes(): readonly RoundProbe[] {
    return this.#probes;
  }

  /** The compared method. */
  get method(): ProbeMethod {
    return this.#method;
  }

  /** The value in ms that counts when others contradict the crawler's report; otherwise null. */
  countedMs(crawlerId: CrawlerId): number | null {
    return this.#round.witnessed?.countedMs.get(crawlerId) ?? null;
  }

  /** Comparable answers: each crawler's smallest, since noise only adds. */
  get answers(): { readonly crawlerId: CrawlerId; readonly rttMs: number }[] {
    const smallest = new Map<CrawlerId, number>();
    for (const { crawlerId, outcome } of this.#probes) {
      if (outcome.type !== "measured" || outcome.method !== this.#method) continue;
      smallest.set(crawlerId, Math.min(outcome.rttMs, smallest.get(crawlerId) ?? Number.POSITIVE_INFINITY));
    }
    return [...smallest].map(([crawlerId, rttMs]) => ({ crawlerId, rttMs }));
  }

  /** Crawlers asked by the compared method. */
  get asked(): ReadonlySet<CrawlerId> {
    const counting = this.#probes.filter(({ outcome }) => outcome.method === this.#method);
    return new Set(counting.map(({ crawlerId }) => crawlerId));
  }

  get fleet(): CandidateFleet {
    return this.#opening.input.fleet;
  }

  step(): RoundStep {
    return nextStep(this.#round);
  }

  async probe(crawlerId: CrawlerId): Promise<void> {
    const outcome = await this.#opening.ask(crawlerId, this.#method);
    this.take({ crawlerId, outcome });
    if (!isFiltered(outcome)) return;
    // A missing echo says little, since many networks drop them.
    this.take({ crawlerId, outcome: await this.#opening.ask(crawlerId, common) });
  }

  /** Takes any answer, even without a probe. With a second answer of a crawler, the round is replayed with the smaller one. */
  take(probe: RoundProbe): void {
    const { crawlerId, outcome } = probe;
    const isSecond = this.asked.has(crawlerId);
    const settles = outcome.type === "measured" && outcome.method === common && this.#method !== common;
    this.#probes.push(probe);
    if (settles) this.#method = common;
    if (settles || isSecond) this.#goThroughAgain();
    else if (!isFiltered(outcome)) this.#observe(crawlerId, outcome);
  }

  /** Lets later rounds learn, once the answers support the decision. */
  learn(): void {
    learnFromRound(this.#round);
  }

  #start(): ProbeRound {
    const { policy, input, learned } = this.#opening;
    return startRound(policy, { ...input, learned: learned(this.#method) });
  }

  #goThroughAgain(): void {
    this.#round = this.#start();
    const smallest = new Map(this.answers.map(({ crawlerId, rttMs }) => [crawlerId, rttMs]));
    for (const { crawlerId, outcome } of this.#probes) {
      if (outcome.method !== this.#method) continue;
      const rttMs = smallest.get(crawlerId);
      if (rttMs === undefined) this.#observe(crawlerId, outcome);
      else this.#round = observe(this.#round, crawlerId, { rttMs });
    }
  }

  #observe(crawlerId: CrawlerId, outcome: ProbeOutcome): void {
    this.#round = observe(this.#round, crawlerId, observationOf(outcome, this.#method));
  }
}

/** Also true for crawlers that cannot send echoes at all. */
const isFiltered = ({ type, method }: ProbeOutcome) => method === "icmp" && type !== "measured";

function observationOf(outcome: ProbeOutcome, method: ProbeMethod): Observation {
  if (outcome.type !== "measured") return { failed: `${outcome.type}: ${outcome.reason}`.slice(0, 200) };
  if (outcome.method === method) return { rttMs: outcome.rttMs };
  return { failed: `measured by ${outcome.method}, which is not comparable with ${method}` };
}

// A probe's target: the host of a URL, at its port.

export interface ProbeSettings {
  readonly method: ProbeMethod;
  /** The smallest of this many tries counts. */
  readonly tries: number;
  readonly deadlineMs: number;
}

export function originOf({ url, host }: WaitingSubnet): { host: string; port: number; secure: boolean } {
  const parsed = new URL(url);
  const secure = parsed.protocol === "https:";
  return { host, port: parsed.port ? Number(parsed.port) : secure ? 443 : 80, secure };
}

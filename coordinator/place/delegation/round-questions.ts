/**
 * The questions of one probe round, and how its answers are compared. Only measurements by one method are compared: a HEAD
 * includes the server's time and may be answered by a nearby cache, a connect does not. If a crawler cannot use the round's
 * method and falls back to connect, which all support, the round settles on connect: it restarts with the connect
 * measurements so far, and the policy asks those it still needs. That happens at most once, so no crawler is asked more than
 * twice. All answers are recorded with their method.
 *
 *     head: 20 ms by a ── head refused, connect: 8 ms by b ──► settled on connect: 8 ms by b ── ask a again …
 */
import type { CrawlerId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { type AllowedSpecialPurpose, refusedBlockOf } from "#core/ip/special-purpose";
import type { ProbeMethod, ProbeOutcome } from "#protocol/messages";
import type { Fleet } from "../crawlers/crawler.ts";
import type { FinishedRound, RoundProbe, WaitingSubnet } from "./delegation.ts";
import type { DeniedTargets } from "./denied-targets.ts";
import type { CandidateFleet } from "./fleet.ts";
import type { Placement } from "./placement.ts";
import {
  learnFromRound,
  nextStep,
  observe,
  type PolicyName,
  type ProbeRound,
  startRound,
} from "./policies/policies.ts";
import type { PolicyParameters, RoundInput, RoundStep } from "./policies/round.ts";
import type { CoordinatorState } from "./state.ts";

export interface ProbeSettings {
  readonly method: ProbeMethod;
  /** Number of tries. The smallest time counts. */
  readonly tries: number;
  readonly deadlineMs: number;
}

export interface RoundSettings {
  readonly policy: PolicyName;
  readonly parameters: PolicyParameters;
  readonly probe: ProbeSettings;
  readonly allowSpecialPurpose: AllowedSpecialPurpose;
  /** Whether a winning report needs other crawlers' confirmation (policies/policies.ts). */
  readonly hasWitnesses?: boolean;
  /** A new subnet with at least this many waiting URLs is crawled while it is probed. 0 disables this. */
  readonly getFirstFromUrls?: number;
}

/** Dependencies of every round, whether of a whole subnet or of a finer delegation. */
export interface AskingPorts {
  readonly state: CoordinatorState;
  readonly fleet: Fleet;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly now: () => Date;
  /** If omitted, no crawler denies anything. */
  readonly denied?: DeniedTargets;
  /** True if the round is abandoned and nothing more is stored. */
  readonly isStopping?: () => boolean;
}

interface RoundOpening {
  readonly policy: PolicyName;
  readonly target: WaitingSubnet;
  readonly placement: Placement;
  readonly candidates: readonly CrawlerId[];
  readonly parameters: PolicyParameters;
  readonly settings: RoundSettings;
  readonly method: ProbeMethod;
  /** If true, each crawler measures the address to which it resolves the host. */
  readonly byName?: boolean;
  readonly onAnswer?: (crawlerId: CrawlerId, method: ProbeMethod, outcome: ProbeOutcome) => void;
}

/** The method to which all fall back. */
const common: ProbeMethod = "connect";

export class RoundQuestions {
  readonly #opening: RoundOpening;
  readonly #ports: AskingPorts;
  readonly #input: Omit<RoundInput, "learned">;
  readonly #probes: RoundProbe[] = [];
  #method: ProbeMethod;
  #round: ProbeRound;

  constructor(opening: RoundOpening, ports: AskingPorts) {
    const { target, placement, parameters, settings, byName = false } = opening;
    this.#opening = opening;
    this.#ports = ports;
    this.#method = opening.method;
    this.#input = {
      placement,
      parameters,
      fleet: ports.state.fleetOf(opening.candidates),
      knowledge: ports.state.knowledge,
      random: ports.random(),
      hasWitnesses: settings.hasWitnesses === true && !byName,
      mayTake: (crawlerId) => !isDenied(crawlerId, target, ports),
    };
    this.#round = this.#start();
  }

  /** Every answer in order of arrival, including other methods. */
  get probes(): readonly RoundProbe[] {
    return this.#probes;
  }

  get method(): ProbeMethod {
    return this.#method;
  }

  get fleet(): CandidateFleet {
    return this.#input.fleet;
  }

  /** The value in ms that counts if others contradict the crawler's report. Otherwise null. */
  countedMs(crawlerId: CrawlerId): number | null {
    return this.#round.witnessed?.countedMs.get(crawlerId) ?? null;
  }

  /** Comparable answers. Each crawler's smallest counts, since noise only adds. */
  get answers(): { readonly crawlerId: CrawlerId; readonly rttMs: number }[] {
    const smallest = new Map<CrawlerId, number>();
    for (const { crawlerId, outcome } of this.#probes) {
      if (outcome.type !== "measured" || outcome.method !== this.#method) continue;
      smallest.set(crawlerId, Math.min(outcome.rttMs, smallest.get(crawlerId) ?? Number.POSITIVE_INFINITY));
    }
    return [...smallest].map(([crawlerId, rttMs]) => ({ crawlerId, rttMs }));
  }

  get asked(): ReadonlySet<CrawlerId> {
    const counting = this.#probes.filter(({ outcome }) => outcome.method === this.#method);
    return new Set(counting.map(({ crawlerId }) => crawlerId));
  }

  step(): RoundStep {
    return nextStep(this.#round);
  }

  async probe(crawlerId: CrawlerId): Promise<void> {
    const outcome = await this.#ask(crawlerId, this.#method);
    this.take({ crawlerId, outcome });
    // A missing echo is weak evidence, since many networks drop them.
    if (isFiltered(outcome)) this.take({ crawlerId, outcome: await this.#ask(crawlerId, common) });
  }

  /** Takes any answer, even without a probe. If it is a crawler's second answer, the round is replayed with the smaller one. */
  take(probe: RoundProbe): void {
    const { crawlerId, outcome } = probe;
    const isSecond = this.asked.has(crawlerId);
    const settles = outcome.type === "measured" && outcome.method === common && this.#method !== common;
    this.#probes.push(probe);
    if (settles) this.#method = common;
    if (settles || isSecond) this.#goThroughAgain();
    else if (!isFiltered(outcome)) this.#observe(crawlerId, outcome);
  }

  /** Lets later rounds learn. Call it once the answers support the decision. */
  learn(): void {
    learnFromRound(this.#round);
  }

  finished(cause: FinishedRound["cause"], startedAt: Date, ending: Decided): Omit<FinishedRound, "subnetId"> {
    const { policy, parameters, target } = this.#opening;
    return {
      cause,
      policy,
      parameters: { ...parameters },
      targetUrl: target.url,
      targetAddress: target.address,
      startedAt,
      decidedAt: this.#ports.now(),
      probes: this.#probes,
      method: this.#method,
      ...ending,
    };
  }

  async #ask(crawlerId: CrawlerId, method: ProbeMethod): Promise<ProbeOutcome> {
    const { target, settings, byName, onAnswer } = this.#opening;
    const { tries, deadlineMs } = settings.probe;
    const asked = { ...originOf(target), address: target.address, method, tries, deadlineMs };
    const outcome = await this.#ports.fleet.probe(crawlerId, byName ? { ...asked, byName } : asked);
    onAnswer?.(crawlerId, method, outcome);
    // A crawler that does not support names has measured the coordinator's address, which does not count.
    if (!byName || outcome.type !== "measured" || outcome.address !== undefined) return outcome;
    return { type: "failed", method: outcome.method, reason: "its software does not measure by name" };
  }

  #start(): ProbeRound {
    const learned = this.#ports.state.learnedRtts(this.#method);
    return startRound(this.#opening.policy, { ...this.#input, learned });
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
    const isComparable = outcome.type === "measured" && outcome.method === this.#method;
    const failed =
      outcome.type === "measured"
        ? `measured by ${outcome.method}, which is not comparable with ${this.#method}`
        : failureWords(outcome);
    this.#round = observe(this.#round, crawlerId, isComparable ? { rttMs: outcome.rttMs } : { failed });
  }
}

export const failureWords = ({ type, reason }: Exclude<ProbeOutcome, { type: "measured" }>) =>
  `${type}: ${reason}`.slice(0, 200);

/** Also true for crawlers that cannot send echoes at all. */
const isFiltered = ({ type, method }: ProbeOutcome) => method === "icmp" && type !== "measured";

export function isDenied(
  crawlerId: CrawlerId,
  target: WaitingSubnet,
  { denied, now }: Pick<AskingPorts, "denied" | "now">,
): boolean {
  return denied?.denies(crawlerId, target, now().getTime()) ?? false;
}

export function isForbidden(address: string, allowSpecialPurpose: AllowedSpecialPurpose): boolean {
  const parsed = parseAddress(address);
  return parsed === null || refusedBlockOf(parsed, allowSpecialPurpose) !== null;
}

/** A probe's target: the host of a URL, at its port. */
export function originOf({ url, host }: Pick<WaitingSubnet, "url" | "host">) {
  const parsed = new URL(url);
  const secure = parsed.protocol === "https:";
  return { host, port: parsed.port ? Number(parsed.port) : secure ? 443 : 80, secure };
}

export type Decided = Pick<
  FinishedRound,
  "crawlerId" | "measured" | "rttMs" | "runnerUpId" | "runnerUpRttMs" | "reason" | "anycast"
>;

/** Turns a round's last step into what is stored. */
export function decided(step: Exclude<RoundStep, { type: "probe" }>): Decided {
  const { type: _, ...decision } = step;
  const nobody = { crawlerId: null, measured: false, rttMs: null, runnerUpId: null, runnerUpRttMs: null };
  return { ...nobody, ...decision };
}

/** If no crawler answered, the owner keeps the subnet, because a guess is no reason to move it. */
export function kept(present: CrawlerId, decision: Decided): Decided {
  if (decision.measured || decision.crawlerId === null || decision.crawlerId === present) return decision;
  const reason = { ...decision.reason, kept: true };
  return { ...decision, crawlerId: present, runnerUpId: decision.crawlerId, runnerUpRttMs: null, reason };
}

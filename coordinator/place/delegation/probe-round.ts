/**
 * Runs one probe round for a subnet: asks the policy for each step, lets the crawler measure, and records the decision
 * with every probe, the reason and the runner-up. Candidates are connected, not draining or full, speak IPv6 if
 * needed, and are allowed the target. The round also checks for anycast, and for a subnet with many waiting URLs its
 * first observation is the crawl's own first fetch (get-first).
 */

import type { AlarmClock } from "#core/clock";
import type { RoundCause } from "#core/delegation-cause";
import type { CrawlerId, SubnetId } from "#core/ids";
import { isIpv6Text, parseAddress } from "#core/ip/address";
import { type AllowedSpecialPurpose, refusedBlockOf } from "#core/ip/special-purpose";
import type { ProbeMethod, ProbeOutcome } from "#protocol/messages";
import type { FetchResult } from "#protocol/result";
import { type Fleet, isBelieved } from "../crawlers/crawler.ts";
import type { ResultBatch } from "../crawlers/result-batch.ts";
import type { AnycastRanges } from "./anycast.ts";
import { AnycastLook, decidedByLoad, type NotAnycast } from "./anycast-check.ts";
import type { Delegation, FinishedRound, WaitingSubnet } from "./delegation.ts";
import type { DeniedTargets } from "./denied-targets.ts";
import type { Placement } from "./placement.ts";
import type { PolicyName } from "./policies/policies.ts";
import type { PolicyParameters, RoundStep } from "./policies/round.ts";
import { type FetchTimes, isCheck, PresentOwner, SecondQuestions } from "./present-owner.ts";
import { originOf, type ProbeSettings, RoundQuestions } from "./round-questions.ts";
import { type Decided, decided, kept, remember } from "./round-result.ts";
import type { CoordinatorState } from "./state.ts";
import type { DelegationStore } from "./store.ts";

export interface RoundSettings {
  readonly policy: PolicyName;
  readonly parameters: PolicyParameters;
  readonly probe: ProbeSettings;
  readonly allowSpecialPurpose: AllowedSpecialPurpose;
  /** Whether a winning report needs other crawlers' confirmation (policies/second-witness.ts). */
  readonly hasWitnesses?: boolean;
  /** A new subnet with at least this many waiting URLs is crawled while it is probed; 0 disables this. */
  readonly getFirstFromUrls?: number;
}

export interface RoundPorts {
  readonly state: CoordinatorState;
  readonly fleet: Fleet;
  readonly delegations: Pick<DelegationStore, "saveRound" | "delegateProvisionally">;
  /** Uniform in [0, 1), for the policy `random`. */
  readonly random: () => number;
  readonly now: () => Date;
  /** Crawlers that must not take this subnet now (full, draining, turned slow …). */
  readonly excluded: (subnet: WaitingSubnet) => ReadonlySet<CrawlerId>;
  readonly denied?: DeniedTargets;
  /** Nothing counts as anycast when omitted. */
  readonly anycast?: AnycastRanges;
  /** No round begins with a fetch when omitted. */
  readonly firstFetches?: FirstFetches;
  /** Recent fetch times of a subnet's crawler; they do not count when omitted. */
  readonly fetchTimes?: (asked: OwnFetches) => Promise<FetchTimes | null>;
  /** When true, the round is abandoned and nothing more is stored. */
  readonly isStopping?: () => boolean;
}

/** Whose fetches, and where; after an alarm, the slow ones. */
export interface OwnFetches {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  readonly url: string;
  readonly cause: RoundCause;
}

/** Runs and stores the round; returns null when the subnet is gone or may not be probed, its crawler is briefly away, or we stop. */
export async function delegateSubnet(
  subnet: WaitingSubnet,
  cause: RoundCause,
  ports: RoundPorts & { readonly settings: RoundSettings },
): Promise<FinishedRound | null> {
  const placement = ports.state.placementOf(subnet.subnetId);
  if (!placement || isForbidden(subnet.address, ports.settings)) return null;
  const startedAt = ports.now();
  const before = ports.state.delegationOf(subnet.subnetId);
  const round: LiveRound = { subnet, cause, placement, ports, before };
  if (isOwnerAway(round)) return null;
  const parameters = parametersOf(round);
  const questions = openQuestions(round, parameters);
  const result = await endingOf(round, questions);
  if (result === null) return null;
  const { ending, teaches, notAnycast } = result;
  const finished: FinishedRound = {
    subnetId: subnet.subnetId,
    cause,
    policy: ports.settings.policy,
    parameters: { ...parameters },
    targetUrl: subnet.url,
    targetAddress: subnet.address,
    startedAt,
    decidedAt: ports.now(),
    probes: questions.probes,
    method: questions.method,
    ...ending,
    ...(notAnycast !== null && {
      notAnycast: notAnycast.place,
      reason: { ...ending.reason, notAnycast },
    }),
  };
  if (isKnown(finished, ports.state)) return finished;
  await ports.delegations.saveRound(finished);
  remember(finished, { ...ports, placement });
  if (teaches && finished.measured && finished.reason.type !== "anycast") questions.learn();
  return finished;
}

/** False when there was still nobody to compare with, so nothing is stored. */
function isKnown({ subnetId, crawlerId, measured, probes }: FinishedRound, state: CoordinatorState): boolean {
  const present = state.delegationOf(subnetId);
  return !measured && probes.length === 0 && present?.measured === false && present.crawlerId === crawlerId;
}

interface LiveRound {
  readonly subnet: WaitingSubnet;
  readonly cause: RoundCause;
  readonly placement: Placement;
  readonly ports: RoundPorts & { readonly settings: RoundSettings };
  /** The delegation at the start of the round. */
  readonly before: Delegation | null;
}

/** Waits for a crawler that lost its connection until it counts as gone, which other jobs handle. */
function isOwnerAway({ before, cause, ports }: LiveRound): boolean {
  if (before === null || !isCheck(cause) || cause === "operator") return false;
  return !ports.fleet.online().includes(before.crawlerId) && mayKeep(before.crawlerId, ports);
}

interface Ending {
  readonly ending: Decided;
  /** Whether later rounds may learn from its answers. */
  readonly teaches: boolean;
  readonly notAnycast: NotAnycast | null;
}

/** Asks until the round ends; returns null when we stop before. */
async function endingOf(round: LiveRound, questions: RoundQuestions): Promise<Ending | null> {
  const look = lookFor(round, questions);
  const hasFetched = await takeFetched(round, questions);
  const owner = hasFetched ? null : presentOwner(round, questions);
  const second = new SecondQuestions(round.ports.settings.parameters);
  for (;;) {
    if (round.ports.isStopping?.()) return null;
    const range = look?.proven(questions) ?? null;
    if (range !== null) return { ending: decidedByLoad(range), teaches: false, notAnycast: null };
    const step = questions.step();
    const suspect = allowed(look?.next(questions, step) ?? null, round);
    const doubted = suspect === null ? doubtedFetch(questions, step, round.ports.settings.probe.tries) : null;
    if (suspect !== null || doubted !== null) await questions.probe((suspect ?? doubted)!);
    else if (step.type !== "probe") {
      if (await second.ask(questions, step)) continue;
      if (await owner?.hear(questions, step)) continue;
      const notAnycast = look?.noteNothing(questions) ?? null;
      const decision = decided(step);
      const judged = owner?.judged(questions, decision);
      return { notAnycast, ...(judged ?? { ending: keptOrNot(round, questions, decision), teaches: true }) };
    } else if (step.how === "get") await fetchFirst(round, questions, step.crawlerId);
    else await questions.probe(step.crawlerId);
  }
}

function keptOrNot({ subnet, ports }: LiveRound, { fleet }: RoundQuestions, decision: Decided): Decided {
  if (decision.reason.type === "no-candidates" && isUnspoken(subnet, ports))
    return { ...decision, reason: { ...decision.reason, needsIpv6: true } };
  const present = ports.state.ownerOf(subnet.subnetId);
  const isCandidate = present !== null && fleet.indexOf.has(present) && !isDenied(present, subnet, ports);
  return isCandidate ? kept(present, decision) : decision;
}

/** True when the subnet needs IPv6 and no online crawler speaks it. */
export function isUnspoken(
  { address }: Pick<WaitingSubnet, "address">,
  { fleet, denied }: RoundPorts,
): boolean {
  return isIpv6Text(address) && fleet.online().every((crawlerId) => denied?.speaksIpv6(crawlerId) === false);
}

/** The owner, if the round checks whether it keeps the subnet. */
function presentOwner(round: LiveRound, { fleet }: RoundQuestions): PresentOwner | null {
  const { before, cause, subnet, ports } = round;
  if (before === null || !isCheck(cause) || ports.anycast?.has(subnet.subnetId)) return null;
  const { crawlerId } = before;
  if (!fleet.indexOf.has(crawlerId) || isDenied(crawlerId, subnet, ports)) return null;
  const { subnetId, url } = subnet;
  return new PresentOwner({
    crawlerId,
    cause,
    before,
    marginMs: ports.settings.parameters.lambdaMs,
    fetchTimes: async () => (await ports.fetchTimes?.({ subnetId, crawlerId, url, cause })) ?? null,
  });
}

/** Whether the crawler may keep the subnets that it has, even where its day's budget is used up and it gets no new ones. */
function mayKeep(crawlerId: CrawlerId, { state }: RoundPorts): boolean {
  const crawler = state.crawler(crawlerId);
  return (
    crawler !== null && crawler.state !== "draining" && crawler.measuresOnly !== true && isBelieved(crawler)
  );
}

/** The crawler chosen by the anycast check, if its partner allows the target. */
const allowed = (crawlerId: CrawlerId | null, { subnet, ports }: LiveRound) =>
  crawlerId !== null && isDenied(crawlerId, subnet, ports) ? null : crawlerId;

/** Uses fetch times as the answer of an owner that was never compared. */
async function takeFetched({ subnet, cause, ports }: LiveRound, questions: RoundQuestions): Promise<boolean> {
  const { fleet, method } = questions;
  const { subnetId, url } = subnet;
  const crawlerId = ports.state.ownerOf(subnetId);
  if (crawlerId === null || !fleet.indexOf.has(crawlerId) || fleet.candidates.length < 2) return false;
  if (method !== "connect" || (cause !== "joined" && cause !== "retry")) return false;
  const times = (await ports.fetchTimes?.({ subnetId, crawlerId, url, cause })) ?? null;
  if (times === null || times.connectMs === null) return false;
  const { connectMs: rttMs, fetches: tries } = times;
  questions.take({ crawlerId, outcome: { type: "measured", method, rttMs, tries }, how: "get" });
  return true;
}

/**
 * A fetch is one try by a busy crawler, while a probe is the smallest of several. So a crawler with few fetches is
 * also probed before it loses the subnet.
 */
function doubtedFetch(questions: RoundQuestions, step: RoundStep, tries: number): CrawlerId | null {
  const first = questions.probes.find(({ how }) => how === "get");
  if (first === undefined || (first.outcome.type === "measured" && first.outcome.tries >= tries)) return null;
  const fetched = first.crawlerId;
  if (step.type !== "decided" || step.crawlerId === fetched) return null;
  const isProbed = questions.probes.some(({ crawlerId, how }) => crawlerId === fetched && how !== "get");
  return isProbed ? null : fetched;
}

/** Assigns the subnet provisionally to the crawler, which starts crawling; without a fetch time, it is probed. */
async function fetchFirst(
  { subnet: { subnetId }, ports }: LiveRound,
  questions: RoundQuestions,
  crawlerId: CrawlerId,
): Promise<void> {
  const { delegations, firstFetches, state } = ports;
  const isOurs = await delegations.delegateProvisionally(subnetId, crawlerId, ports.now());
  if (!isOurs || !firstFetches) return await questions.probe(crawlerId);
  const unknown = { measured: false, rttMs: null, runnerUpId: null, runnerUpRttMs: null };
  state.setDelegation({ subnetId, crawlerId, ...unknown });
  const outcome = await firstFetches.of(subnetId, crawlerId);
  if (ports.isStopping?.()) return;
  if (outcome === null) await questions.probe(crawlerId);
  else questions.take({ crawlerId, outcome, how: "get" });
}

function lookFor(round: LiveRound, questions: RoundQuestions): AnycastLook | null {
  const { state, anycast, settings, now } = round.ports;
  if (!anycast) return null;
  return new AnycastLook({
    policy: settings.policy,
    subnetId: round.subnet.subnetId,
    placement: round.placement,
    fleet: questions.fleet,
    state,
    ranges: anycast,
    nowMs: now().getTime(),
    isLarge: hasMuch(round),
  });
}

function hasMuch({ subnet, ports }: LiveRound): boolean {
  const { getFirstFromUrls = 0 } = ports.settings;
  return getFirstFromUrls > 0 && (subnet.dueUrls ?? 0) >= getFirstFromUrls;
}

/** get-first is for new subnets with much to fetch, when the crawl's connects are comparable with probes. */
function parametersOf(round: LiveRound): PolicyParameters {
  const { subnet, cause, ports } = round;
  const { parameters, probe } = ports.settings;
  const isPossible = cause === "new-subnet" && probe.method === "connect" && ports.firstFetches !== undefined;
  const isNew = ports.state.delegationOf(subnet.subnetId) === null;
  return { ...parameters, getFirst: isPossible && isNew && (hasMuch(round) || parameters.getFirst) };
}

function isForbidden(address: string, settings: RoundSettings): boolean {
  const parsed = parseAddress(address);
  return parsed === null || refusedBlockOf(parsed, settings.allowSpecialPurpose) !== null;
}

// Starts a live round: its candidates, their method, and how one is asked.

function openQuestions(
  { subnet, cause, placement, ports, before }: LiveRound,
  parameters: PolicyParameters,
): RoundQuestions {
  const { settings, state, fleet } = ports;
  const candidates = candidatesFor(subnet, isCheck(cause) ? before : null, ports);
  const input = {
    placement,
    fleet: state.fleetOf(candidates),
    knowledge: state.knowledge,
    parameters,
    random: ports.random(),
    hasWitnesses: settings.hasWitnesses === true,
    mayTake: (crawlerId: CrawlerId) => !isDenied(crawlerId, subnet, ports),
  };
  const target = { ...originOf(subnet), address: subnet.address };
  const { method: wanted, tries, deadlineMs } = settings.probe;
  return new RoundQuestions({
    policy: settings.policy,
    input,
    learned: (method) => state.learnedRtts(method),
    method: possibleMethod(wanted, candidates, state),
    ask: async (crawlerId, method) => {
      const outcome = await fleet.probe(crawlerId, { ...target, method, tries, deadlineMs });
      noteDenial(outcome, { crawlerId, method, subnet, ports });
      return outcome;
    },
  });
}

/** Up to this size every candidate's partner is checked; in a larger fleet only those that `nearest` would ask. */
const largestCheckedFleet = 1000;

function candidatesFor(
  subnet: WaitingSubnet,
  /** The owner may keep the subnet although it gets no new ones. */
  present: Delegation | null,
  ports: RoundPorts & { readonly settings: RoundSettings },
): CrawlerId[] {
  const excluded = ports.excluded(subnet);
  const online = ports.fleet.online();
  const kept = present !== null && mayKeep(present.crawlerId, ports) ? present.crawlerId : null;
  const able = online.filter(
    (crawlerId) =>
      (crawlerId === kept || !excluded.has(crawlerId)) &&
      !ports.denied?.lacksFamily(crawlerId, subnet.address),
  );
  if (ports.settings.policy === "nearest" && able.length > largestCheckedFleet) return able;
  return able.filter((crawlerId) => !isDenied(crawlerId, subnet, ports));
}

function isDenied(crawlerId: CrawlerId, subnet: WaitingSubnet, { denied, now }: RoundPorts): boolean {
  return denied?.denies(crawlerId, subnet, now().getTime()) ?? false;
}

/** The configured method, unless no candidate supports it. */
function possibleMethod(
  wanted: ProbeMethod,
  candidates: readonly CrawlerId[],
  state: CoordinatorState,
): ProbeMethod {
  const isUsable = (method: ProbeMethod) =>
    candidates.some((crawlerId) => {
      const methods = state.crawler(crawlerId)?.probeMethods ?? [];
      return methods.length === 0 || methods.includes(method);
    });
  if (candidates.length === 0 || isUsable(wanted)) return wanted;
  return (["connect", "head", "icmp"] as const).find(isUsable) ?? wanted;
}

/** Ignores refusals of the method, which the crawler announced before. */
function noteDenial(
  outcome: ProbeOutcome,
  context: {
    readonly crawlerId: CrawlerId;
    readonly method: ProbeMethod;
    readonly subnet: WaitingSubnet;
    readonly ports: RoundPorts;
  },
): void {
  const { crawlerId, method, subnet, ports } = context;
  if (outcome.type !== "not-allowed") return;
  const methods = ports.state.crawler(crawlerId)?.probeMethods ?? [];
  const needed: readonly ProbeMethod[] = method === "head" ? ["head", "connect"] : [method];
  if (methods.length > 0 && !needed.every((one) => methods.includes(one))) return;
  ports.denied?.noteRefusal(crawlerId, subnet.subnetId, ports.now().getTime());
}

// get-first (design section 5): a subnet with much to fetch is crawled at once by the likeliest crawler, and the
// connect time of its first fetch is the round's first observation, for free. Rounds wait here for that fetch; if it
// fails, has no time or does not arrive in time, the answer is null and the crawler is probed.

interface FirstFetchPorts {
  readonly clock: AlarmClock;
  readonly subnetOf: (address: string) => SubnetId | null;
  /** False when the crawler's results go to another coordinator; there is none when omitted. */
  readonly isHere?: (crawlerId: CrawlerId) => boolean;
}

interface Awaited {
  readonly crawlerId: CrawlerId;
  readonly settle: (outcome: ProbeOutcome | null) => void;
}

export class FirstFetches {
  readonly #ports: FirstFetchPorts;
  readonly #waitMs: number;
  readonly #awaited = new Map<SubnetId, Awaited>();

  /** `waitMs` limits the wait for the fetch. An idle crawler asks for work every two seconds. */
  constructor(ports: FirstFetchPorts, waitMs: number) {
    this.#ports = ports;
    this.#waitMs = waitMs;
  }

  /** Waiting rounds, which use no resources. */
  get waiting(): number {
    return this.#awaited.size;
  }

  /** The crawler's first fetch in this subnet as a connect probe of one try, or null. */
  async of(subnetId: SubnetId, crawlerId: CrawlerId): Promise<ProbeOutcome | null> {
    this.#awaited.get(subnetId)?.settle(null);
    if (this.#ports.isHere?.(crawlerId) === false) return null;
    return await new Promise((resolve) => {
      const settle = (outcome: ProbeOutcome | null) => {
        callOff();
        this.#awaited.delete(subnetId);
        resolve(outcome);
      };
      const callOff = this.#ports.clock.wake(this.#waitMs, () => settle(null));
      this.#awaited.set(subnetId, { crawlerId, settle });
    });
  }

  note(batch: Pick<ResultBatch, "crawlerId" | "results">): void {
    if (this.#awaited.size === 0) return;
    for (const { result } of batch.results) this.#take(batch.crawlerId, result);
  }

  /** Releases all waiting rounds at shutdown. */
  close(): void {
    for (const { settle } of [...this.#awaited.values()]) settle(null);
  }

  /** A connect time belongs to the address connected to, which may be in another subnet. */
  #take(crawlerId: CrawlerId, { address, timing }: FetchResult): void {
    if (address === null) return;
    const subnetId = this.#ports.subnetOf(address);
    const awaited = subnetId === null ? undefined : this.#awaited.get(subnetId);
    if (awaited?.crawlerId !== crawlerId) return;
    const { connectMs } = timing;
    awaited.settle(
      connectMs === null ? null : { type: "measured", method: "connect", rttMs: connectMs, tries: 1 },
    );
  }
}

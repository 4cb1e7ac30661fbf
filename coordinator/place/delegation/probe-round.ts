/**
 * One probe round for one subnet: asks the policy for the next step, has the crawler measure, and records the
 * decision with every probe, the reason and the runner-up. Candidates are the crawlers that are connected, not
 * draining, not full, that speak IPv6 where it takes that, and whose partners allow the target. On the way the round looks out for anycast, and
 * where a subnet has many URLs waiting, its first observation is the crawl's own first fetch (get-first).
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
  /** A report that wins is held against other crawlers (policies/second-witness.ts); left out: it is taken as it is. */
  readonly hasWitnesses?: boolean;
  /** A new subnet with so many URLs waiting is crawled while it is probed; 0: none is. */
  readonly getFirstFromUrls?: number;
}

export interface RoundPorts {
  readonly state: CoordinatorState;
  readonly fleet: Fleet;
  readonly delegations: Pick<DelegationStore, "saveRound" | "delegateProvisionally">;
  /** Uniform in [0, 1): the policy `random` draws from it. */
  readonly random: () => number;
  readonly now: () => Date;
  /** Crawlers that must not take this subnet now (full, draining, the one that turned slow …). */
  readonly excluded: (subnet: WaitingSubnet) => ReadonlySet<CrawlerId>;
  readonly denied?: DeniedTargets;
  /** Without it, nothing is taken for anycast. */
  readonly anycast?: AnycastRanges;
  /** Without it, no round begins with a fetch. */
  readonly firstFetches?: FirstFetches;
  /** What the latest fetches of a subnet's crawler took; without it, they do not count. */
  readonly fetchTimes?: (asked: OwnFetches) => Promise<FetchTimes | null>;
  /** True: what is under way is given up, and nothing more is stored. */
  readonly isStopping?: () => boolean;
}

/** Whose fetches, and where; of a round for slow fetches, those that were slow. */
export interface OwnFetches {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  readonly url: string;
  readonly cause: RoundCause;
}

/**
 * Runs the round and stores it; null when the subnet is no longer in the tree, may not be probed, its crawler is away
 * for a moment, or we stop.
 */
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

/** There was still nobody to compare with: nothing is to be written of it. */
function isKnown({ subnetId, crawlerId, measured, probes }: FinishedRound, state: CoordinatorState): boolean {
  const present = state.delegationOf(subnetId);
  return !measured && probes.length === 0 && present?.measured === false && present.crawlerId === crawlerId;
}

interface LiveRound {
  readonly subnet: WaitingSubnet;
  readonly cause: RoundCause;
  readonly placement: Placement;
  readonly ports: RoundPorts & { readonly settings: RoundSettings };
  /** As it was delegated when the round began. */
  readonly before: Delegation | null;
}

/** A crawler that lost its connection is waited for until it counts as gone, which others see to. */
function isOwnerAway({ before, cause, ports }: LiveRound): boolean {
  if (before === null || !isCheck(cause) || cause === "operator") return false;
  return !ports.fleet.online().includes(before.crawlerId) && mayKeep(before.crawlerId, ports);
}

interface Ending {
  readonly ending: Decided;
  /** Later rounds may learn from its answers. */
  readonly teaches: boolean;
  readonly notAnycast: NotAnycast | null;
}

/** Asks until the round has its end; null when we stop before. */
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

/** It takes IPv6 to reach the subnet, and nobody who is online speaks it. */
export function isUnspoken(
  { address }: Pick<WaitingSubnet, "address">,
  { fleet, denied }: RoundPorts,
): boolean {
  return isIpv6Text(address) && fleet.online().every((crawlerId) => denied?.speaksIpv6(crawlerId) === false);
}

/** The crawler that has the subnet, where the round checks whether it is still to have it. */
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

/** Nothing but its day's work being done keeps it from new subnets. */
function mayKeep(crawlerId: CrawlerId, { state }: RoundPorts): boolean {
  const crawler = state.crawler(crawlerId);
  return (
    crawler !== null && crawler.state !== "draining" && crawler.measuresOnly !== true && isBelieved(crawler)
  );
}

/** Whom the look-out for anycast chose, if its partner allows the target. */
const allowed = (crawlerId: CrawlerId | null, { subnet, ports }: LiveRound) =>
  crawlerId !== null && isDenied(crawlerId, subnet, ports) ? null : crawlerId;

/** Whoever has the subnet without ever having been compared has fetched there: those times are its answer. */
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
 * One fetch is one try, taken while the crawler was busy, where a probe is the smallest of several: before the
 * subnet is taken from the crawler that fetched so few times, it is probed as well.
 */
function doubtedFetch(questions: RoundQuestions, step: RoundStep, tries: number): CrawlerId | null {
  const first = questions.probes.find(({ how }) => how === "get");
  if (first === undefined || (first.outcome.type === "measured" && first.outcome.tries >= tries)) return null;
  const fetched = first.crawlerId;
  if (step.type !== "decided" || step.crawlerId === fetched) return null;
  const isProbed = questions.probes.some(({ crawlerId, how }) => crawlerId === fetched && how !== "get");
  return isProbed ? null : fetched;
}

/** The crawler has the subnet for the time being, and crawls; where no fetch tells a time, it is probed. */
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

/** get-first is for new subnets with much to fetch, where the crawl's connects can be held against probes. */
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

// The beginning of a live round: who is a candidate, by which method they measure, and how one is asked.

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

/** So many candidates are asked one by one whether their partners allow the target; of a larger fleet only those that `nearest` would ask. */
const largestCheckedFleet = 1000;

function candidatesFor(
  subnet: WaitingSubnet,
  /** It may keep what it has although it gets nothing new. */
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

/** The settings' method, unless none of the candidates can use it. */
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

/** A refusal of the target, not of the method, which the crawler said before that it does not use. */
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

// get-first (design section 5): a subnet that will be fetched often is crawled at once by the likeliest
// crawler, and the connect time of its first fetch there is the round's first observation, for free. Here
// rounds wait for that fetch; results that come in are held against what is waited for.
//
// a round waits ──► a fetch of that crawler to that subnet connected ──► its time
// └─► it failed, told no time, or none came in time ──► null: the crawler is probed instead

interface FirstFetchPorts {
  readonly clock: AlarmClock;
  readonly subnetOf: (address: string) => SubnetId | null;
  /** False: its results go to another coordinator; left out, there is none. */
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

  /** `waitMs`: how long a round waits for the fetch. An idle crawler asks for work every two seconds. */
  constructor(ports: FirstFetchPorts, waitMs: number) {
    this.#ports = ports;
    this.#waitMs = waitMs;
  }

  /** Rounds that wait; they use nothing meanwhile. */
  get waiting(): number {
    return this.#awaited.size;
  }

  /** The crawler's first fetch in this subnet, as a connect probe of one try; null when there was none to speak of. */
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

  /** Results came in. */
  note(batch: Pick<ResultBatch, "crawlerId" | "results">): void {
    if (this.#awaited.size === 0) return;
    for (const { result } of batch.results) this.#take(batch.crawlerId, result);
  }

  /** Nobody waits any longer: the coordinator stops. */
  close(): void {
    for (const { settle } of [...this.#awaited.values()]) settle(null);
  }

  /** A connect time is that of the address that was really connected to, which may lie in another subnet. */
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

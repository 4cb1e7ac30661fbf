/**
 * Runs one probe round for a subnet: asks the policy for each step, lets the crawler measure, and records the decision with
 * every probe, the reason and the runner-up. Candidates are connected, not draining or full, use IPv6 if needed, and are
 * allowed the target. The round also checks for anycast, and for a subnet with many waiting URLs its first observation is the
 * crawl's own first fetch (get-first).
 */

import type { AlarmClock } from "#core/clock";
import type { RoundCause } from "#core/explanation";
import type { CrawlerId, SubnetId } from "#core/ids";
import { isIpv6Text } from "#core/ip/address";
import type { ProbeMethod, ProbeOutcome } from "#protocol/messages";
import type { FetchResult } from "#protocol/result";
import { isBelieved, type ResultBatch } from "../crawlers/crawler.ts";
import type { AnycastRanges } from "./anycast.ts";
import { AnycastLook, decidedByLoad, type NotAnycast } from "./anycast-check.ts";
import type { Delegation, FinishedRound, WaitingSubnet } from "./delegation.ts";
import type { Placement } from "./placement.ts";
import type { PolicyParameters, RoundStep } from "./policies/round.ts";
import { type FetchTimes, isCheck, PresentOwner, SecondQuestions } from "./present-owner.ts";
import {
  type AskingPorts,
  type Decided,
  decided,
  isDenied,
  isForbidden,
  kept,
  RoundQuestions,
  type RoundSettings,
} from "./round-questions.ts";
import type { CoordinatorState } from "./state.ts";
import type { DelegationStore } from "./store.ts";

export interface RoundPorts extends AskingPorts {
  readonly delegations: Pick<DelegationStore, "saveRound" | "delegateProvisionally">;
  /** Crawlers that must not take this subnet now, because they are full, draining or have become slow. */
  readonly excluded: (subnet: WaitingSubnet) => ReadonlySet<CrawlerId>;
  /** If omitted, no range counts as anycast. */
  readonly anycast?: AnycastRanges;
  /** If omitted, no round begins with a fetch. */
  readonly firstFetches?: FirstFetches;
  /** Recent fetch times of a subnet's crawler. If omitted, they do not count. */
  readonly fetchTimes?: (asked: OwnFetches) => Promise<FetchTimes | null>;
}

/** Which crawler's fetches are asked for, and where. After an alarm, only the slow ones. */
export interface OwnFetches {
  readonly subnetId: SubnetId;
  readonly crawlerId: CrawlerId;
  readonly url: string;
  readonly cause: RoundCause;
}

/**
 * Runs and stores the round. Returns null if the subnet is gone or may not be probed, its crawler is briefly away, or the
 * coordinator is stopping.
 */
export async function delegateSubnet(
  subnet: WaitingSubnet,
  cause: RoundCause,
  ports: RoundPorts & { readonly settings: RoundSettings },
): Promise<FinishedRound | null> {
  const { state, settings } = ports;
  const { subnetId } = subnet;
  const placement = state.placementOf(subnetId);
  if (!placement || isForbidden(subnet.address, settings.allowSpecialPurpose)) return null;
  const startedAt = ports.now();
  const round: LiveRound = { subnet, cause, placement, ports, before: state.delegationOf(subnetId) };
  if (isOwnerAway(round)) return null;
  const candidates = candidatesFor(round);
  const questions = new RoundQuestions(
    {
      ...{ policy: settings.policy, target: subnet, placement, candidates, settings },
      parameters: parametersOf(round),
      method: possibleMethod(settings.probe.method, candidates, state),
      onAnswer: (crawlerId, method, outcome) => noteDenial(crawlerId, method, outcome, round),
    },
    ports,
  );
  const result = await endingOf(round, questions);
  if (result === null) return null;
  const { ending, teaches, notAnycast } = result;
  const finished: FinishedRound = {
    subnetId,
    ...questions.finished(cause, startedAt, ending),
    ...(notAnycast !== null && {
      notAnycast: notAnycast.place,
      reason: { ...ending.reason, notAnycast },
    }),
  };
  if (isKnown(finished, state)) return finished;
  await ports.delegations.saveRound(finished);
  remember(finished, round);
  if (teaches && finished.measured && finished.reason.type !== "anycast") questions.learn();
  return finished;
}

/** True if there was still no crawler to compare with, so that nothing is stored. */
function isKnown({ subnetId, crawlerId, measured, probes }: FinishedRound, state: CoordinatorState): boolean {
  const present = state.delegationOf(subnetId);
  return !measured && probes.length === 0 && present?.measured === false && present.crawlerId === crawlerId;
}

function remember(round: FinishedRound, { ports: { state, anycast }, placement }: LiveRound): void {
  const { subnetId, crawlerId, measured, rttMs, runnerUpId, runnerUpRttMs } = round;
  if (crawlerId === null) return;
  const teaches = measured && round.anycast !== true;
  state.setDelegation({ subnetId, crawlerId, measured: teaches, rttMs, runnerUpId, runnerUpRttMs });
  if (round.anycast) anycast?.mark(subnetId, placement.holderKey);
  else if (measured) anycast?.unmark(subnetId);
}

interface LiveRound {
  readonly subnet: WaitingSubnet;
  readonly cause: RoundCause;
  readonly placement: Placement;
  readonly ports: RoundPorts & { readonly settings: RoundSettings };
  /** The delegation at the start of the round. */
  readonly before: Delegation | null;
}

/** True if the owner has lost its connection but does not count as gone yet. Once it does, other jobs replace it. */
function isOwnerAway({ before, cause, ports }: LiveRound): boolean {
  if (before === null || !isCheck(cause) || cause === "operator") return false;
  return !ports.fleet.online().includes(before.crawlerId) && mayKeep(before.crawlerId, ports);
}

interface Ending {
  readonly ending: Decided;
  readonly teaches: boolean;
  readonly notAnycast: NotAnycast | null;
}

/** Asks until the round ends. Returns null if the coordinator stops before. */
async function endingOf(round: LiveRound, questions: RoundQuestions): Promise<Ending | null> {
  const { subnet, ports } = round;
  const look = lookFor(round, questions);
  const hasFetched = await takeFetched(round, questions);
  const owner = hasFetched ? null : presentOwner(round, questions);
  const second = new SecondQuestions(ports.settings.parameters);
  for (;;) {
    if (ports.isStopping?.()) return null;
    const range = look?.proven(questions) ?? null;
    if (range !== null) return { ending: decidedByLoad(range), teaches: false, notAnycast: null };
    const step = questions.step();
    const suspected = look?.next(questions, step) ?? null;
    const isAllowed = suspected !== null && !isDenied(suspected, subnet, ports);
    const extra = isAllowed ? suspected : doubtedFetch(questions, step, ports.settings.probe.tries);
    if (extra !== null) await questions.probe(extra);
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

/** True if the subnet needs IPv6 and no online crawler uses it. */
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

/** Whether the crawler may keep the subnets that it has, even if its day's budget is used up and it gets no new ones. */
function mayKeep(crawlerId: CrawlerId, { state }: RoundPorts): boolean {
  const crawler = state.crawler(crawlerId);
  return (
    crawler !== null && crawler.state !== "draining" && crawler.measuresOnly !== true && isBelieved(crawler)
  );
}

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
 * A fetch is one try by a busy crawler, while a probe is the smallest of several. So a crawler with few fetches is also
 * probed before it loses the subnet.
 */
function doubtedFetch(questions: RoundQuestions, step: RoundStep, tries: number): CrawlerId | null {
  const first = questions.probes.find(({ how }) => how === "get");
  if (first === undefined || (first.outcome.type === "measured" && first.outcome.tries >= tries)) return null;
  const fetched = first.crawlerId;
  if (step.type !== "decided" || step.crawlerId === fetched) return null;
  const isProbed = questions.probes.some(({ crawlerId, how }) => crawlerId === fetched && how !== "get");
  return isProbed ? null : fetched;
}

/** Assigns the subnet provisionally to the crawler, which starts crawling. If its fetch has no time, it is probed. */
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

/** get-first is for new subnets with much to fetch, if the crawl's connects are comparable with probes. */
function parametersOf(round: LiveRound): PolicyParameters {
  const { subnet, cause, ports } = round;
  const { parameters, probe } = ports.settings;
  const isPossible = cause === "new-subnet" && probe.method === "connect" && ports.firstFetches !== undefined;
  const isNew = ports.state.delegationOf(subnet.subnetId) === null;
  return { ...parameters, getFirst: isPossible && isNew && (hasMuch(round) || parameters.getFirst) };
}

/** Up to this size every candidate's partner is checked. In a larger fleet only those that `nearest` would ask are checked. */
const largestCheckedFleet = 1000;

/** The owner of a checked subnet may keep it although it gets no new ones. */
function candidatesFor({ subnet, cause, before, ports }: LiveRound): CrawlerId[] {
  const excluded = ports.excluded(subnet);
  const owner = isCheck(cause) ? (before?.crawlerId ?? null) : null;
  const mayStay = owner !== null && mayKeep(owner, ports);
  const able = ports.fleet
    .online()
    .filter((crawlerId) => (mayStay && crawlerId === owner) || !excluded.has(crawlerId))
    .filter((crawlerId) => !ports.denied?.lacksFamily(crawlerId, subnet.address));
  if (ports.settings.policy === "nearest" && able.length > largestCheckedFleet) return able;
  return able.filter((crawlerId) => !isDenied(crawlerId, subnet, ports));
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

/** Ignores refusals of the method, which the crawler has announced before. */
function noteDenial(
  crawlerId: CrawlerId,
  method: ProbeMethod,
  outcome: ProbeOutcome,
  { subnet, ports }: LiveRound,
): void {
  if (outcome.type !== "not-allowed") return;
  const methods = ports.state.crawler(crawlerId)?.probeMethods ?? [];
  const needed: readonly ProbeMethod[] = method === "head" ? ["head", "connect"] : [method];
  if (methods.length > 0 && !needed.every((one) => methods.includes(one))) return;
  ports.denied?.noteRefusal(crawlerId, subnet.subnetId, ports.now().getTime());
}

// get-first (design section 5): a subnet with much to fetch is crawled at once by the likeliest crawler, and the connect time
// of its first fetch is the round's first observation, for free. Rounds wait here for that fetch. If it fails, has no time or
// does not arrive in time, the answer is null and the crawler is probed.

interface FirstFetchPorts {
  readonly clock: AlarmClock;
  readonly subnetOf: (address: string) => SubnetId | null;
  /** False if the crawler's results go to another coordinator. If omitted, there is no other coordinator. */
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

/**
 * One newcomer's search for the subnets that it is nearest to: the most promising ones are asked about first
 * (balance/newcomer), a few at a time, and those to which it measures nearer by the margin come to it.
 *
 *   rank all ─► the best few thousand, with everything that was measured of them ─► ask the best of these,
 *   learn, rank again … ─► none left: rank all again ─► over when nothing promises enough, too little was
 *   found lately, or so many were asked about that it is enough
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { ProbeMethod } from "#protocol/messages";
import type { Fleet } from "../crawlers/crawler.ts";
import type { AnycastRanges } from "../delegation/anycast.ts";
import type { Delegation, DelegationMove, WaitingSubnet } from "../delegation/delegation.ts";
import type { DeniedTargets } from "../delegation/denied-targets.ts";
import { backOffLevels, type Level } from "../delegation/knowledge.ts";
import type { Placement } from "../delegation/placement.ts";
import { originOf, type ProbeSettings } from "../delegation/round-questions.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import type { DelegationStore } from "../delegation/store.ts";
import { lookedAtWhole } from "../distances/peers.ts";
import { makeMoves } from "./successors.ts";

export interface SearchPorts {
  readonly state: CoordinatorState;
  /** Paced probes. */
  readonly fleet: Pick<Fleet, "online" | "probe">;
  readonly delegations: Pick<DelegationStore, "probedRtts" | "targetsFor" | "move">;
  readonly probe: () => ProbeSettings;
  readonly now: () => Date;
  /** Nobody denies anything when omitted. */
  readonly denied?: DeniedTargets;
  /** Nothing counts as anycast when omitted. */
  readonly anycast?: AnycastRanges;
}

interface SearchFigures {
  readonly probes: number;
  readonly gained: number;
}

/** Smaller promises are not worth a probe; of the order of the policy's λ, since a mistake here affects a single subnet. */
const leastPromiseMs = 0.5;

/** The search ends when fewer of the last `yieldWindow` probes found something. */
const leastYield = 0.05;

const yieldWindow = 40;

/** Maximum probes as a share of all delegations. */
const mostShare = 0.5;

/** Candidates kept between two full rankings. */
export const keptCandidates = 2000;

/** Crawlers of a large fleet whose subnets are ranked. */
const ownersLookedAt = 256;

/** Subnets ranked before yielding to other work. */
export const rankedAtOnce = 5000;

/** Tracks whether recent probes were worth it. */
export class LatestFinds {
  #latest: boolean[] = [];

  note(isFind: boolean): void {
    this.#latest = [...this.#latest.slice(1 - yieldWindow), isFind];
  }

  get arePoor(): boolean {
    return (
      this.#latest.length >= yieldWindow && this.#latest.filter(Boolean).length < leastYield * yieldWindow
    );
  }
}

interface Candidate extends PossibleGain {
  readonly subnetId: SubnetId;
  readonly owner: CrawlerId;
  /** The owner's method. */
  readonly method: ProbeMethod | null;
}

export class NewcomerSearch {
  readonly #newcomer: CrawlerId;
  readonly #ports: SearchPorts;
  readonly #findings: NewcomerFindings;
  readonly #asked = new Set<SubnetId>();
  #kept = new Map<SubnetId, Candidate>();
  readonly #latest = new LatestFinds();
  #gained = 0;
  #probes = 0;

  constructor(newcomer: CrawlerId, findings: NewcomerFindings, ports: SearchPorts) {
    this.#newcomer = newcomer;
    this.#ports = ports;
    this.#findings = findings;
  }

  get figures(): SearchFigures {
    return { probes: this.#probes, gained: this.#gained };
  }

  /** Probes at most `most` candidates; returns false when the search is over. */
  async step(most: number): Promise<boolean> {
    if (this.#isEnough()) return false;
    let best = this.#best(most);
    if (best.length === 0) {
      await this.#fill();
      best = this.#best(most);
    }
    if (best.length === 0) return false;
    for (const { subnetId } of best) {
      this.#asked.add(subnetId);
      this.#kept.delete(subnetId);
    }
    const moves = await this.#ask(best);
    await this.#make(moves);
    return true;
  }

  #isEnough(): boolean {
    return (
      this.#latest.arePoor ||
      this.#probes >= Math.max(yieldWindow, mostShare * this.#ports.state.delegationTable.size)
    );
  }

  #best(most: number): Candidate[] {
    return [...this.#kept.values()]
      .map((candidate) => ({ candidate, promiseMs: this.#findings.promiseMs(candidate) }))
      .filter(({ promiseMs }) => promiseMs >= leastPromiseMs)
      .sort((a, b) => b.promiseMs - a.promiseMs || a.candidate.subnetId - b.candidate.subnetId)
      .slice(0, most)
      .map(({ candidate }) => candidate);
  }

  /** Ranks all subnets of others by the owner's and the runner-up's RTT, then the best of them by all measurements. */
  async #fill(): Promise<void> {
    const ranked: { readonly subnetId: SubnetId; readonly promiseMs: number }[] = [];
    let seen = 0;
    for (const owner of this.#others()) {
      for (const subnetId of this.#ports.state.subnetsOf(owner)) {
        seen += 1;
        if (seen % rankedAtOnce === 0) await nextTurn();
        const gain = this.#asked.has(subnetId) ? null : this.#gainOf(subnetId);
        const promiseMs = gain === null ? 0 : this.#findings.promiseMs(gain);
        if (promiseMs >= leastPromiseMs) ranked.push({ subnetId, promiseMs });
      }
    }
    ranked.sort((a, b) => b.promiseMs - a.promiseMs);
    await this.#keep(ranked.slice(0, keptCandidates).map(({ subnetId }) => subnetId));
  }

  /** Leaving crawlers are excluded, since their subnets are handed over anyway. */
  #others(): CrawlerId[] {
    const { fleet, state } = this.#ports;
    const isStaying = (crawlerId: CrawlerId) =>
      crawlerId !== this.#newcomer && (state.crawler(crawlerId)?.drainingSince ?? null) === null;
    const online = fleet.online();
    return (online.length > lookedAtWhole ? this.#nearestOf(online) : online).filter(isStaying);
  }

  /** In a large fleet, the crawlers nearest to the newcomer, and those nearest to them. */
  #nearestOf(online: readonly CrawlerId[]): CrawlerId[] {
    const here = new Set(online);
    const matrix = this.#ports.state.peerRtts;
    const near = matrix.nearestOf(matrix.slotOf(this.#newcomer));
    const found = new Set<number>(near);
    for (const slot of near) {
      if (found.size >= ownersLookedAt) break;
      for (const next of matrix.nearestOf(slot)) found.add(next);
    }
    const crawlers = Array.from(found, (slot) => matrix.crawlerAt(slot));
    return crawlers.filter((crawlerId) => here.has(crawlerId)).slice(0, ownersLookedAt);
  }

  /** Null for anycast ranges, which are near to many and assigned by load. */
  #gainOf(subnetId: SubnetId): PossibleGain | null {
    if (this.#ports.anycast?.has(subnetId)) return null;
    if (this.#ports.denied?.deniesSubnet(this.#newcomer, subnetId)) return null;
    const delegation = this.#ports.state.delegationOf(subnetId);
    if (delegation === null || delegation.rttMs === null) return null;
    const measured = this.#measuredBy(delegation);
    if (possibleSavingMs(delegation.rttMs, measured) <= joinMarginMs) return null;
    const placement = this.#ports.state.placementOf(subnetId);
    return placement && { placement, ownerRttMs: delegation.rttMs, measured };
  }

  #measuredBy({ crawlerId, rttMs, runnerUpId, runnerUpRttMs }: Delegation): MeasuredNearby[] {
    const measured = rttMs === null ? [] : [this.#nearby(crawlerId, rttMs)];
    if (runnerUpId === null || runnerUpRttMs === null || runnerUpId === this.#newcomer) return measured;
    return [...measured, this.#nearby(runnerUpId, runnerUpRttMs)];
  }

  #nearby(crawlerId: CrawlerId, rttMs: number): MeasuredNearby {
    return { rttMs, peerRttMs: this.#ports.state.peerRtts.rttMs(crawlerId, this.#newcomer) };
  }

  async #keep(subnetIds: readonly SubnetId[]): Promise<void> {
    const { delegations, state } = this.#ports;
    const probed = new Map<SubnetId, { crawlerId: CrawlerId; rttMs: number; method: ProbeMethod }[]>();
    for (const { subnetId, ...probe } of await delegations.probedRtts(subnetIds)) {
      probed.set(subnetId, [...(probed.get(subnetId) ?? []), probe]);
    }
    this.#kept = new Map();
    for (const subnetId of subnetIds) {
      const delegation = state.delegationOf(subnetId);
      const gain = this.#gainOf(subnetId);
      if (!delegation || !gain) continue;
      const probes = probed.get(subnetId) ?? [];
      const others = probes
        .filter(({ crawlerId }) => crawlerId !== delegation.crawlerId && crawlerId !== this.#newcomer)
        .map(({ crawlerId, rttMs }) => this.#nearby(crawlerId, rttMs));
      const method = probes.find(({ crawlerId }) => crawlerId === delegation.crawlerId)?.method ?? null;
      const measured = [this.#nearby(delegation.crawlerId, gain.ownerRttMs), ...others];
      this.#kept.set(subnetId, { ...gain, measured, subnetId, owner: delegation.crawlerId, method });
    }
  }

  /** Returns the subnets to which it measured nearer. */
  async #ask(candidates: readonly Candidate[]): Promise<DelegationMove[]> {
    const targets = await this.#ports.delegations.targetsFor(candidates.map(({ subnetId }) => subnetId));
    const targetOf = new Map(targets.map((target) => [target.subnetId, target]));
    const asked = await Promise.all(
      candidates.map(async (candidate) => {
        const target = targetOf.get(candidate.subnetId);
        return target && !this.#isDenied(target) ? await this.#probe(candidate, target) : null;
      }),
    );
    return asked.filter((move) => move !== null);
  }

  #isDenied(target: WaitingSubnet): boolean {
    const { denied, now } = this.#ports;
    return denied?.denies(this.#newcomer, target, now().getTime()) ?? false;
  }

  async #probe(candidate: Candidate, target: WaitingSubnet): Promise<DelegationMove | null> {
    const { fleet } = this.#ports;
    const probe = this.#ports.probe();
    const method = candidate.method ?? probe.method;
    const asked = { ...originOf(target), address: target.address, ...probe, method };
    const outcome = await fleet.probe(this.#newcomer, asked);
    this.#probes += 1;
    // Other methods are not comparable with the owner's.
    const isMeasured = outcome.type === "measured" && outcome.method === method;
    const isNearer = isMeasured && outcome.rttMs < candidate.ownerRttMs - joinMarginMs;
    this.#latest.note(isNearer);
    if (isMeasured) this.#findings.note(candidate.placement, isNearer);
    if (!isNearer) return null;
    const ms = `${outcome.rttMs.toFixed(1)} ms against ${candidate.ownerRttMs.toFixed(1)} ms`;
    return {
      subnetId: candidate.subnetId,
      from: candidate.owner,
      to: this.#newcomer,
      cause: "joined",
      reason: `it joined and is nearer: ${ms} of the crawler before`,
      rttMs: outcome.rttMs,
    };
  }

  async #make(moves: readonly DelegationMove[]): Promise<void> {
    this.#gained += (await makeMoves(moves, this.#ports, this.#ports.now())).length;
  }
}

// Which subnets of others a crawler that joined is worth asking about (design section 5, turned round: there a
// subnet looks for its crawler, here a crawler for its subnets).
//
// Two things speak for a subnet. The triangle: crawler a measured y ms to it and is D ms from the newcomer,
// so the newcomer is at least about |D − y| from it, and likely near it where D ≈ y. And what was found out so
// far: how often the newcomer was nearer among the subnets of the same holder, ancestors, country, /8; the
// first such finding is its own subnet, in which it stands.
//
// promise = P(nearer) · what it would save if it were,   in ms of RTT per page

/** A measurement of a subnet, and that crawler's distance from the newcomer; null when unknown. */
interface MeasuredNearby {
  readonly rttMs: number;
  readonly peerRttMs: number | null;
}

export interface PossibleGain {
  readonly placement: Placement;
  /** The owner's measurement. */
  readonly ownerRttMs: number;
  /** The owner and all others that measured it. */
  readonly measured: readonly MeasuredNearby[];
}

/** The newcomer must be nearer by more than this to take a subnet. */
export const joinMarginMs = 5;

/** The part of the triangle's bound that is believed: less than in a round, where others remain to be asked. */
const trust = 0.6;

/** Weight of the triangle's fit, as in the policy `nearest`. */
const fitScaleMs = 5;

const fitScalePerMs = 0.3;

/** Fit of the triangle where the newcomer is not near, measured over fleets from real matrices. */
const chanceFit = 0.25;

/** Minimum chance at any level. */
const leastShare = 0.02;

/** Upper bound of the saving in ms by the triangle; negative when it cannot be nearer. */
function possibleSavingMs(ownerRttMs: number, measured: readonly MeasuredNearby[]): number {
  let leastMs = 0;
  for (const { rttMs, peerRttMs } of measured) {
    if (peerRttMs !== null) leastMs = Math.max(leastMs, trust * Math.abs(peerRttMs - rttMs));
  }
  return ownerRttMs - leastMs;
}

export class NewcomerFindings {
  readonly #counts = new Map<string, { tried: number; won: number }>();

  /** `own` is the newcomer's own location; null when unknown. */
  constructor(own: Placement | null) {
    if (own !== null) this.note(own, true);
  }

  /** Notes whether the newcomer was nearer to this subnet by the margin. */
  note(placement: Placement, isNearer: boolean): void {
    for (const level of levelsOf(placement)) {
      const key = keyOf(level);
      const count = this.#counts.get(key) ?? { tried: 0, won: 0 };
      count.tried += 1;
      count.won += isNearer ? 1 : 0;
      this.#counts.set(key, count);
    }
  }

  /** Expected saving per page in ms; 0 when the newcomer cannot be nearer by the margin. */
  promiseMs({ placement, ownerRttMs, measured }: PossibleGain): number {
    const savingMs = possibleSavingMs(ownerRttMs, measured);
    if (savingMs <= joinMarginMs) return 0;
    let fit = 1;
    for (const { rttMs, peerRttMs } of measured) {
      // Where the crawlers have not measured each other, the answer neither fits nor rules out.
      const gapMs = peerRttMs === null ? rttMs : Math.abs(peerRttMs - rttMs);
      fit /= 1 + (gapMs / (fitScaleMs + fitScalePerMs * rttMs)) ** 2;
    }
    const before = this.shareAround(placement);
    const likelihood = fit / chanceFit ** measured.length;
    const nearer = (before * likelihood) / (before * likelihood + 1 - before);
    return (nearer * savingMs) / 2;
  }

  /** The newcomer's past success around here; each level has the weight of its evidence, s / (s + 1). */
  shareAround(placement: Placement): number {
    let share = 0;
    let rest = 1;
    for (const level of levelsOf(placement)) {
      const count = this.#counts.get(keyOf(level));
      if (count === undefined) continue;
      share += (rest * count.won) / (count.tried + 1);
      rest /= count.tried + 1;
    }
    return leastShare + (1 - 2 * leastShare) * share;
  }
}

/** Published places say more than registrations, so they come first. */
const levelsOf = (placement: Placement): Level[] => [
  ...(placement.published ?? []).map(({ place }): Level => ({ kind: "published", key: place })),
  ...backOffLevels(placement),
];

const keyOf = ({ kind, key }: Level) => `${kind} ${key}`;

/**
 * Searches for the subnets to which a crawler that joined is nearest, a few questions at a time. Subnets whose crawler was
 * never compared with others are decided by probe rounds. Of all others, the newcomer probes the most promising itself.
 *
 *     rank all ─► keep the best few thousand ─► ask about the best of these, learn, rank them again … ─► none left:
 *     rank all again ─► over when nothing promises enough, too few recent questions found something, or it asked enough
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CrawlerId, SubnetId } from "#core/ids";
import type { ProbeMethod } from "#protocol/messages";
import type { Fleet } from "../crawlers/crawler.ts";
import type { AnycastRanges } from "../delegation/anycast.ts";
import type { DelegationMove, UnmeasuredSubnet, WaitingSubnet } from "../delegation/delegation.ts";
import type { DeniedTargets } from "../delegation/denied-targets.ts";
import { backOffLevels, type Level } from "../delegation/knowledge.ts";
import type { Placement } from "../delegation/placement.ts";
import type { DelegationQueue } from "../delegation/queue.ts";
import { originOf, type ProbeSettings } from "../delegation/round-questions.ts";
import type { CoordinatorState } from "../delegation/state.ts";
import type { DelegationStore } from "../delegation/store.ts";
import { lookedAtWhole } from "../distances/peers.ts";
import { makeMoves } from "./hand-overs.ts";

export interface SearchPorts {
  readonly state: CoordinatorState;
  readonly fleet: Pick<Fleet, "online" | "probe">;
  readonly delegations: Pick<DelegationStore, "probedRtts" | "targetsFor" | "move">;
  readonly rounds: Pick<DelegationQueue, "request" | "isUnderWay">;
  readonly probe: () => ProbeSettings;
  readonly now: () => Date;
  /** If omitted, no crawler denies anything. */
  readonly denied?: DeniedTargets;
  /** If omitted, no range counts as anycast. */
  readonly anycast?: AnycastRanges;
}

/** A search ends if fewer than this share of its last `yieldWindow` questions found something. */
const leastYield = 0.05;

const yieldWindow = 40;

/** Candidates kept between two full rankings. */
const keptCandidates = 2000;

/** Subnets ranked before yielding to other work. */
const rankedAtOnce = 5000;

/** Whether the last questions of a search found something. */
class LatestFinds {
  #latest: boolean[] = [];

  note(isFind: boolean): void {
    this.#latest = [...this.#latest.slice(1 - yieldWindow), isFind];
  }

  get arePoor(): boolean {
    const finds = this.#latest.filter(Boolean).length;
    return this.#latest.length >= yieldWindow && finds < leastYield * yieldWindow;
  }
}

async function ranked<One, Ranked>(
  ones: Iterable<One>,
  rank: (one: One) => Ranked | null,
): Promise<Ranked[]> {
  const found: Ranked[] = [];
  let seen = 0;
  for (const one of ones) {
    seen += 1;
    if (seen % rankedAtOnce === 0) await nextTurn();
    const rankedOne = rank(one);
    if (rankedOne !== null) found.push(rankedOne);
  }
  return found;
}

const isDraining = (crawlerId: CrawlerId, state: CoordinatorState) =>
  (state.crawler(crawlerId)?.drainingSince ?? null) !== null;

// Subnets whose crawler was never compared with others: a crawler that was alone has every subnet, which does not show which
// crawlers are near. Those where the newcomer is likely near come first (by tree, holder, country, published ranges, and by
// how earlier rounds ended), and among equals those with the most fetches. A round may find that another crawler is nearer
// still. What it has decided is never asked about here again.

type UnmeasuredPorts = Pick<SearchPorts, "state" | "rounds" | "anycast"> & {
  readonly fleet: Pick<Fleet, "online">;
};

export class UnmeasuredSearch {
  readonly #newcomer: CrawlerId;
  readonly #findings: NewcomerFindings;
  readonly #ports: UnmeasuredPorts;
  readonly #asked = new Set<SubnetId>();
  readonly #underWay = new Set<SubnetId>();
  readonly #latest = new LatestFinds();
  #ranked: readonly UnmeasuredSubnet[] | null = null;
  #kept: UnmeasuredSubnet[] = [];
  #gained = 0;

  constructor(newcomer: CrawlerId, findings: NewcomerFindings, ports: UnmeasuredPorts) {
    this.#newcomer = newcomer;
    this.#findings = findings;
    this.#ports = ports;
  }

  get figures(): { readonly asked: number; readonly gained: number } {
    return { asked: this.#asked.size, gained: this.#gained };
  }

  /** `rounds` is the concurrency, `room` the number of subnets it may gain. Returns false if the search is over. */
  async step(
    unmeasured: readonly UnmeasuredSubnet[],
    { rounds, room }: Record<"rounds" | "room", number>,
  ): Promise<boolean> {
    const gained = this.#noteEnded();
    if (this.#latest.arePoor) return this.#underWay.size > 0;
    const best = await this.#best(unmeasured, Math.min(rounds, room - gained) - this.#underWay.size);
    for (const subnetId of best) {
      this.#asked.add(subnetId);
      this.#underWay.add(subnetId);
    }
    this.#ports.rounds.request(best, "joined");
    return this.#underWay.size > 0;
  }

  /** Evaluates the rounds that ended and returns the gains. Other jobs retry unanswered subnets later. */
  #noteEnded(): number {
    const { state, rounds } = this.#ports;
    const before = this.#gained;
    for (const subnetId of this.#underWay) {
      if (rounds.isUnderWay(subnetId)) continue;
      this.#underWay.delete(subnetId);
      const delegation = state.delegationOf(subnetId);
      if (!delegation?.measured) continue;
      const isGained = delegation.crawlerId === this.#newcomer;
      if (isGained) this.#gained += 1;
      this.#latest.note(isGained);
      const placement = state.placementOf(subnetId);
      if (placement !== null) this.#findings.note(placement, isGained);
    }
    return this.#gained - before;
  }

  async #best(unmeasured: readonly UnmeasuredSubnet[], wanted: number): Promise<SubnetId[]> {
    if (wanted <= 0) return [];
    this.#kept = await this.#rank(this.#kept);
    if (this.#kept.length === 0 && this.#ranked !== unmeasured) {
      this.#ranked = unmeasured;
      this.#kept = await this.#rank(unmeasured);
    }
    return this.#kept.splice(0, wanted).map(({ subnetId }) => subnetId);
  }

  /** Ranks by likelihood in tenths, then by pages. */
  async #rank(subnets: readonly UnmeasuredSubnet[]): Promise<UnmeasuredSubnet[]> {
    const online = new Set(this.#ports.fleet.online());
    const open = await ranked(subnets, (subnet) => {
      if (!this.#isOpen(subnet.subnetId, online)) return null;
      const placement = this.#ports.state.placementOf(subnet.subnetId);
      return placement && { ...subnet, share: Math.round(10 * this.#findings.shareAround(placement)) };
    });
    return open
      .sort((a, b) => b.share - a.share || b.pagesPerDay - a.pagesPerDay || a.subnetId - b.subnetId)
      .slice(0, keptCandidates);
  }

  #isOpen(subnetId: SubnetId, online: ReadonlySet<CrawlerId>): boolean {
    const { state, rounds, anycast } = this.#ports;
    if (this.#asked.has(subnetId) || rounds.isUnderWay(subnetId) || anycast?.has(subnetId)) return false;
    const delegation = state.delegationOf(subnetId);
    if (delegation === null || delegation.measured || delegation.crawlerId === this.#newcomer) return false;
    // A leaving crawler's subnets will be handed over anyway.
    return online.has(delegation.crawlerId) && !isDraining(delegation.crawlerId, state);
  }
}

// Subnets with a measured owner: the newcomer takes those to which it measures nearer by the margin.

/** Smaller promises are not worth a probe. Of the order of the policy's λ, since a mistake here affects a single subnet. */
const leastPromiseMs = 0.5;

/** Maximum probes as a share of all delegations. */
const mostShare = 0.5;

/** How many crawlers of a large fleet have their subnets ranked. */
const ownersLookedAt = 256;

interface Candidate extends PossibleGain {
  readonly subnetId: SubnetId;
  readonly owner: CrawlerId;
  /** The owner's method, if it was read. Measurements by other methods are not comparable. */
  readonly method: ProbeMethod | null;
}

interface Probed {
  readonly crawlerId: CrawlerId;
  readonly rttMs: number;
  readonly method: ProbeMethod;
}

export class NewcomerSearch {
  readonly #newcomer: CrawlerId;
  readonly #ports: SearchPorts;
  readonly #findings: NewcomerFindings;
  readonly #asked = new Set<SubnetId>();
  #kept: Candidate[] = [];
  readonly #latest = new LatestFinds();
  #gained = 0;
  #probes = 0;

  constructor(newcomer: CrawlerId, findings: NewcomerFindings, ports: SearchPorts) {
    this.#newcomer = newcomer;
    this.#ports = ports;
    this.#findings = findings;
  }

  get figures(): { readonly probes: number; readonly gained: number } {
    return { probes: this.#probes, gained: this.#gained };
  }

  /** Probes at most `most` candidates. Returns false if the search is over. */
  async step(most: number): Promise<boolean> {
    const { state, delegations } = this.#ports;
    const enough = Math.max(yieldWindow, mostShare * state.delegationTable.size);
    if (this.#latest.arePoor || this.#probes >= enough) return false;
    const best = this.#best(most);
    if (best.length === 0) {
      await this.#fill();
      best.push(...this.#best(most));
    }
    if (best.length === 0) return false;
    for (const { subnetId } of best) this.#asked.add(subnetId);
    const found = await delegations.targetsFor(best.map(({ subnetId }) => subnetId));
    const targets = new Map(found.map((target) => [target.subnetId, target]));
    const moves = await Promise.all(
      best.map(async (candidate) => await this.#ask(candidate, targets.get(candidate.subnetId))),
    );
    const nearer = moves.filter((move) => move !== null);
    this.#gained += (await makeMoves(nearer, this.#ports, this.#ports.now())).length;
    return true;
  }

  #best(most: number): Candidate[] {
    const kept = this.#kept
      .filter(({ subnetId }) => !this.#asked.has(subnetId))
      .map((candidate) => ({ candidate, promiseMs: this.#findings.promiseMs(candidate) }))
      .sort((a, b) => b.promiseMs - a.promiseMs || a.candidate.subnetId - b.candidate.subnetId);
    return kept
      .filter(({ promiseMs }) => promiseMs >= leastPromiseMs)
      .slice(0, most)
      .map(({ candidate }) => candidate);
  }

  /** Ranks all subnets of others by the owner's and the runner-up's RTT, then the best of them by all measurements. */
  async #fill(): Promise<void> {
    const { delegations, state } = this.#ports;
    const all = await ranked(
      this.#others().flatMap((owner) => state.subnetsOf(owner)),
      (subnetId) => {
        const candidate = this.#asked.has(subnetId) ? null : this.#candidate(subnetId);
        const promiseMs = candidate === null ? 0 : this.#findings.promiseMs(candidate);
        return promiseMs >= leastPromiseMs ? { subnetId, promiseMs } : null;
      },
    );
    const best = all.sort((a, b) => b.promiseMs - a.promiseMs).slice(0, keptCandidates);
    const subnetIds = best.map(({ subnetId }) => subnetId);
    const probed = new Map<SubnetId, Probed[]>(subnetIds.map((subnetId) => [subnetId, []]));
    for (const { subnetId, ...probe } of await delegations.probedRtts(subnetIds))
      probed.get(subnetId)?.push(probe);
    this.#kept = [...probed].flatMap(([subnetId, probes]) => this.#candidate(subnetId, probes) ?? []);
  }

  /** Leaves out leaving crawlers, since their subnets will be handed over anyway. */
  #others(): CrawlerId[] {
    const { fleet, state } = this.#ports;
    const online = fleet.online();
    return (online.length > lookedAtWhole ? this.#nearestOf(online) : online).filter(
      (crawlerId) => crawlerId !== this.#newcomer && !isDraining(crawlerId, state),
    );
  }

  /** In a large fleet, returns the crawlers nearest to the newcomer, and those nearest to them. */
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

  /** Null for anycast ranges, which are near to many and assigned by load, and for subnets where nothing can be gained. */
  #candidate(subnetId: SubnetId, probes: readonly Probed[] = []): Candidate | null {
    const { state, anycast, denied } = this.#ports;
    if (anycast?.has(subnetId) || denied?.deniesSubnet(this.#newcomer, subnetId)) return null;
    const delegation = state.delegationOf(subnetId);
    if (delegation === null || delegation.rttMs === null) return null;
    const { crawlerId: owner, rttMs: ownerRttMs, runnerUpId, runnerUpRttMs } = delegation;
    const rtts = new Map(probes.map(({ crawlerId, rttMs }) => [crawlerId, rttMs]));
    if (runnerUpId !== null && runnerUpRttMs !== null && !rtts.has(runnerUpId))
      rtts.set(runnerUpId, runnerUpRttMs);
    rtts.set(owner, ownerRttMs).delete(this.#newcomer);
    const measured = [...rtts].map(([crawlerId, rttMs]) => {
      return { rttMs, peerRttMs: state.peerRtts.rttMs(crawlerId, this.#newcomer) };
    });
    const placement = state.placementOf(subnetId);
    const method = probes.find(({ crawlerId }) => crawlerId === owner)?.method ?? null;
    return placement && { subnetId, owner, method, placement, ownerRttMs, measured };
  }

  /**
   * Has the newcomer probe the subnet. Returns the move if its RTT beats the owner's by more than the margin, otherwise null.
   */
  async #ask(
    { subnetId, owner, ownerRttMs, placement, method: ownMethod }: Candidate,
    target: WaitingSubnet | undefined,
  ): Promise<DelegationMove | null> {
    const { fleet, denied, now } = this.#ports;
    if (target === undefined || denied?.denies(this.#newcomer, target, now().getTime())) return null;
    const probe = this.#ports.probe();
    const method = ownMethod ?? probe.method;
    const asked = { ...originOf(target), address: target.address, ...probe, method };
    const outcome = await fleet.probe(this.#newcomer, asked);
    this.#probes += 1;
    const isMeasured = outcome.type === "measured" && outcome.method === method;
    const isNearer = isMeasured && outcome.rttMs < ownerRttMs - joinMarginMs;
    this.#latest.note(isNearer);
    if (isMeasured) this.#findings.note(placement, isNearer);
    if (!isNearer) return null;
    const ms = `${outcome.rttMs.toFixed(1)} ms against ${ownerRttMs.toFixed(1)} ms`;
    return {
      ...{ subnetId, from: owner, to: this.#newcomer, cause: "joined", rttMs: outcome.rttMs },
      reason: `it joined and is nearer: ${ms} of the crawler before`,
    };
  }
}

// Which subnets of others are worth a question (design section 5 reversed: there a subnet looks for its crawler, here a
// crawler for its subnets). Two things speak for a subnet. One is the triangle: if crawler a measured y ms to it and is D ms
// from the newcomer, the newcomer is at least about |D − y| from it, and likely near it where D ≈ y. The other is earlier
// findings: how often the newcomer was nearer among the subnets of the same holder, ancestors, country and /8. The first such
// finding is the subnet that it is located in.
//
// promise = P(nearer) · what it would save if it were, in ms of RTT per page

/** A measurement of a subnet, and that crawler's distance from the newcomer. The distance is null if unknown. */
interface MeasuredNearby {
  readonly rttMs: number;
  readonly peerRttMs: number | null;
}

export interface PossibleGain {
  readonly placement: Placement;
  readonly ownerRttMs: number;
  /** The owner and all others that measured it. */
  readonly measured: readonly MeasuredNearby[];
}

/** The newcomer must be nearer by more than this to take a subnet. */
export const joinMarginMs = 5;

/** The part of the triangle's bound that is believed. It is less than in a round, where others remain to be asked. */
const trust = 0.6;

/** Weight of the triangle's fit, the same as in the policy `nearest`. */
const fitScaleMs = 5;

const fitScalePerMs = 0.3;

/** Fit of the triangle at subnets to which the newcomer is not near, measured over fleets from real matrices. */
const chanceFit = 0.25;

const leastShare = 0.02;

export class NewcomerFindings {
  readonly #counts = new Map<string, { tried: number; won: number }>();

  /** `own` is the newcomer's own location. Null if unknown. */
  constructor(own: Placement | null) {
    if (own !== null) this.note(own, true);
  }

  /** Notes whether the newcomer was nearer to this subnet by the margin. */
  note(placement: Placement, isNearer: boolean): void {
    for (const level of levelsOf(placement)) {
      const count = this.#counts.get(level) ?? { tried: 0, won: 0 };
      this.#counts.set(level, { tried: count.tried + 1, won: count.won + Number(isNearer) });
    }
  }

  /** Expected saving per page in ms. 0 if the newcomer cannot be nearer by the margin. */
  promiseMs({ placement, ownerRttMs, measured }: PossibleGain): number {
    let [leastMs, fit] = [0, 1];
    for (const { rttMs, peerRttMs } of measured) {
      // If the crawlers have not measured each other, the answer neither fits nor rules out anything.
      const gapMs = peerRttMs === null ? rttMs : Math.abs(peerRttMs - rttMs);
      if (peerRttMs !== null) leastMs = Math.max(leastMs, trust * gapMs);
      fit /= 1 + (gapMs / (fitScaleMs + fitScalePerMs * rttMs)) ** 2;
    }
    const savingMs = ownerRttMs - leastMs;
    if (savingMs <= joinMarginMs) return 0;
    const before = this.shareAround(placement);
    const likelihood = fit / chanceFit ** measured.length;
    const nearer = (before * likelihood) / (before * likelihood + 1 - before);
    return (nearer * savingMs) / 2;
  }

  /** The newcomer's past success around the placement. Each level has the weight of its evidence, s / (s + 1). */
  shareAround(placement: Placement): number {
    let [share, rest] = [0, 1];
    for (const level of levelsOf(placement)) {
      const { tried, won } = this.#counts.get(level) ?? { tried: 0, won: 0 };
      share += (rest * won) / (tried + 1);
      rest /= tried + 1;
    }
    return leastShare + (1 - 2 * leastShare) * share;
  }
}

/** Published places say more than registrations, so they come first. */
const levelsOf = (placement: Placement): string[] => {
  const published = (placement.published ?? []).map(
    ({ place }): Level => ({ kind: "published", key: place }),
  );
  return [...published, ...backOffLevels(placement)].map(({ kind, key }) => `${kind} ${key}`);
};

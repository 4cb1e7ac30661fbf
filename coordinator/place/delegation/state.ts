/**
 * The coordinator's memory: the IP tree, owners, knowledge from past delegations, the fleet and its distances. All of it is
 * in the database and reloaded at start. Every change is written there first, so a crash loses nothing.
 */
import type { CrawlerId, SubnetId } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import type { ProbeMethod } from "#protocol/messages";
import type { CrawlerRecord, PeerRtt } from "../crawlers/crawler.ts";
import { PeerMatrix } from "../distances/peer-matrix.ts";
import { landmarkCount, landmarksOf, lookedAtWhole, neighbourCount } from "../distances/peers.ts";
import { nothingPublished, type PublishedRanges } from "../subnets/published-ranges.ts";
import { buildSubnetTree, type SubnetTree } from "../subnets/subnet-tree.ts";
import type { Delegation, DelegationMove } from "./delegation.ts";
import { DelegationTable } from "./delegation-table.ts";
import { type CandidateFleet, candidateFleet } from "./fleet.ts";
import { DelegationKnowledge } from "./knowledge.ts";
import { type Placement, placementOf } from "./placement.ts";
import { LearnedRtts } from "./policies/learned-rtts.ts";

/** Called with a newly delegated subnet, or with null after the tree or all delegations were replaced. */
type StateWatcher = (changed: SubnetId | null) => void;

export class CoordinatorState {
  #tree: SubnetTree = buildSubnetTree([]);
  #generation: number | null = null;
  #published: PublishedRanges = nothingPublished;
  #knowledge = new DelegationKnowledge();
  readonly #learnedRtts = new Map<ProbeMethod, LearnedRtts>();
  #delegations = new DelegationTable();
  #crawlers: readonly CrawlerRecord[] = [];
  #crawlerAt: ReadonlyMap<CrawlerId, number> = new Map();
  readonly #fleets = new RecentFleets();
  readonly #watchers = new Set<StateWatcher>();
  /** RTTs between crawlers. Unmeasured pairs stay unknown and rule no crawler out. */
  readonly peerRtts = new PeerMatrix();

  get tree(): SubnetTree {
    return this.#tree;
  }

  /** Measurements of finished rounds by this method. RTTs of different methods are never compared. */
  learnedRtts(method: ProbeMethod): LearnedRtts {
    const known = this.#learnedRtts.get(method) ?? new LearnedRtts();
    this.#learnedRtts.set(method, known);
    return known;
  }

  get knowledge(): DelegationKnowledge {
    return this.#knowledge;
  }

  get crawlers(): readonly CrawlerRecord[] {
    return this.#crawlers;
  }

  /** The read-only table of delegations. `setDelegations` replaces it. */
  get delegationTable(): Omit<DelegationTable, "set"> {
    return this.#delegations;
  }

  watch(watcher: StateWatcher): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** The registry generation of the tree. A newer one may have begun meanwhile. */
  get generation(): number | null {
    return this.#generation;
  }

  /** Sets the published locations. Call it before `setTree`, which makes the placements. */
  setPublished(published: PublishedRanges): void {
    this.#published = published;
  }

  get publishedRanges(): number {
    return this.#published.count;
  }

  /** Sets a new tree and places everything learned in it again. */
  setTree(tree: SubnetTree, generation: number | null): void {
    this.#tree = tree;
    this.#generation = generation;
    this.#relearn();
  }

  setCrawlers(crawlers: readonly CrawlerRecord[]): void {
    this.#forgetOldPlaces(crawlers);
    this.#crawlers = crawlers;
    this.#crawlerAt = new Map(crawlers.map(({ crawlerId }, index) => [crawlerId, index]));
  }

  putCrawlers(changed: readonly CrawlerRecord[]): void {
    if (changed.length === 0) return;
    this.#forgetOldPlaces(changed);
    const crawlers = [...this.#crawlers];
    const strangers = changed.filter((crawler) => {
      const index = this.#crawlerAt.get(crawler.crawlerId);
      if (index !== undefined) crawlers[index] = crawler;
      return index === undefined;
    });
    if (strangers.length === 0) this.#crawlers = crawlers;
    else this.setCrawlers([...crawlers, ...strangers].sort((a, b) => a.crawlerId - b.crawlerId));
  }

  /** Drops RTTs from and to crawlers that moved. */
  #forgetOldPlaces(changed: readonly CrawlerRecord[]): void {
    for (const { crawlerId, placedAt } of changed) {
      const known = this.crawler(crawlerId);
      if (known === null || known.placedAt?.getTime() === placedAt?.getTime()) continue;
      this.peerRtts.forget(this.peerRtts.slotOf(crawlerId));
      for (const learned of this.#learnedRtts.values()) learned.forget(crawlerId);
    }
  }

  crawler(crawlerId: CrawlerId): CrawlerRecord | null {
    const index = this.#crawlerAt.get(crawlerId);
    return index === undefined ? null : (this.#crawlers[index] ?? null);
  }

  /** Replaces all delegations and takes over the table. */
  setDelegations(delegations: DelegationTable): void {
    this.#delegations = delegations;
    this.#relearn();
  }

  /** `now` is the time of the measurement. If omitted, the time is unknown and 0, long ago, is used. */
  learnRtts(rtts: readonly PeerRtt[], now?: Date): void {
    const atMs = now?.getTime() ?? 0;
    for (const { from, to, rttMs } of rtts)
      this.peerRtts.learn(this.peerRtts.slotOf(from), this.peerRtts.slotOf(to), rttMs, atMs);
  }

  /** Share of these crawlers' pairs that are measured, 0 to 1. In a large fleet, of the landmarks' pairs with a sample. */
  rttCoverage(crawlerIds: readonly CrawlerId[]): number {
    const landmarks = landmarksOf(crawlerIds);
    const every = Math.ceil(crawlerIds.length / crawlersLookedAt);
    const some = crawlerIds.filter((_, index) => index % every === 0);
    const isLarge = landmarks.length > 0;
    let pairs = 0;
    let known = 0;
    for (const [at, a] of (isLarge ? landmarks : some).entries()) {
      for (const b of isLarge ? some : some.slice(at + 1)) {
        if (a === b) continue;
        pairs += 1;
        if (this.peerRtts.rttMs(a, b) !== null) known += 1;
      }
    }
    return pairs === 0 ? 1 : known / pairs;
  }

  /** Whether the crawler knows its distance to this share of the others or, in a large fleet, of its landmarks and neighbours. */
  knowsDistances(crawlerId: CrawlerId, online: readonly CrawlerId[], share: number): boolean {
    if (online.length > lookedAtWhole) {
      const slot = this.peerRtts.slots.get(crawlerId) ?? -1;
      return this.peerRtts.knownOf(slot) >= landmarkCount + neighbourCount;
    }
    const others = online.filter((other) => other !== crawlerId);
    const known = others.filter((other) => this.peerRtts.rttMs(crawlerId, other) !== null);
    return known.length >= share * others.length;
  }

  /** Cached as long as the candidates and their known distances are unchanged. */
  fleetOf(candidates: readonly CrawlerId[]): CandidateFleet {
    return this.#fleets.of(candidates, this.peerRtts);
  }

  /** Smallest subnet of more than one address that contains this address (paper section 4.3). */
  subnetOf(address: string): SubnetId | null {
    const parsed = parseAddress(address);
    return parsed ? this.#tree.mostSpecificNonUnaryId(parsed) : null;
  }

  placementOf(subnetId: SubnetId): Placement | null {
    return placementOf(this.#tree, subnetId, this.#published);
  }

  delegationOf(subnetId: SubnetId): Delegation | null {
    return this.#delegations.get(subnetId);
  }

  /** Returns the owner without creating the record. */
  ownerOf(subnetId: SubnetId): CrawlerId | null {
    return this.#delegations.ownerOf(subnetId);
  }

  /** The current subnets, in order of delegation. */
  subnetsOf(crawlerId: CrawlerId): readonly SubnetId[] {
    return this.#delegations.subnetsOf(crawlerId);
  }

  subnetCountOf(crawlerId: CrawlerId): number {
    return this.#delegations.countOf(crawlerId);
  }

  /** Unmeasured delegations teach nothing, because a guess must not become evidence for the next one. */
  setDelegation(delegation: Delegation): void {
    const { subnetId } = delegation;
    const before = this.#delegations.get(subnetId);
    const placement = this.placementOf(subnetId);
    if (placement && before?.measured) this.#knowledge.forget(placement, before.crawlerId);
    this.#delegations.set(delegation);
    if (placement && delegation.measured) this.#knowledge.record(placement, delegation.crawlerId);
    for (const watcher of this.#watchers) watcher(subnetId);
  }

  /** As in the store, the former crawler becomes the runner-up unless it has left. */
  moveDelegation(move: DelegationMove): void {
    const stays = move.cause !== "crawler-left";
    this.setDelegation({
      subnetId: move.subnetId,
      crawlerId: move.to,
      measured: move.rttMs !== null,
      rttMs: move.rttMs,
      runnerUpId: stays ? move.from : null,
      runnerUpRttMs: stays ? (this.#delegations.get(move.subnetId)?.rttMs ?? null) : null,
    });
  }

  #relearn(): void {
    this.#knowledge = new DelegationKnowledge();
    this.#delegations.eachMeasured((subnetId, crawlerId) => {
      const placement = this.placementOf(subnetId);
      if (placement) this.#knowledge.record(placement, crawlerId);
    });
    for (const watcher of this.#watchers) watcher(null);
  }
}

/** Sample size for the progress of a large fleet. */
const crawlersLookedAt = 500;

// Caches fleets of recent rounds. Nearly every round has the same candidates as the one before, and building a fleet of 200
// takes longer than a whole look-up.

/** Number of candidate sets that alternate, because partners deny a target or crawlers are full for the day. */
const kept = 8;

class RecentFleets {
  readonly #recent: { readonly crawlerIds: readonly CrawlerId[]; readonly fleet: CandidateFleet }[] = [];

  /** The fleet of these candidates in this order, built unless it is cached. */
  of(crawlerIds: readonly CrawlerId[], peerRtts: PeerMatrix): CandidateFleet {
    const at = this.#recent.findIndex(
      (one) => one.fleet.peerRtts === peerRtts && isSame(one.crawlerIds, crawlerIds),
    );
    if (at === 0) return this.#recent[0]!.fleet;
    const known = at < 0 ? null : this.#recent.splice(at, 1)[0]!;
    // The caller may change its list afterwards.
    const one = known ?? { crawlerIds: [...crawlerIds], fleet: candidateFleet(crawlerIds, peerRtts) };
    this.#recent.unshift(one);
    this.#recent.length = Math.min(this.#recent.length, kept);
    return one.fleet;
  }
}

function isSame(some: readonly CrawlerId[], others: readonly CrawlerId[]): boolean {
  return some.length === others.length && some.every((crawlerId, index) => crawlerId === others[index]);
}

/**
 * What the coordinator keeps in memory: the IP tree, who owns what, what past delegations teach, the fleet and
 * its distances. All of it is in the database too and is read again at the start; the flows write there first
 * and here after, so a crash loses nothing.
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

/** Told of a subnet that was delegated anew; null: the tree, or all delegations, are others now. */
type StateWatcher = (changed: SubnetId | null) => void;

export class CoordinatorState {
  #tree: SubnetTree = buildSubnetTree([]);
  #generation: number | null = null;
  #published: PublishedRanges = nothingPublished;
  #knowledge = new DelegationKnowledge();
  readonly #learnedRtts = new Map<ProbeMethod, LearnedRtts>();
  #delegations = new DelegationTable();
  #crawlers: readonly CrawlerRecord[] = [];
  /** Where each stands among them. */
  #crawlerAt: ReadonlyMap<CrawlerId, number> = new Map();
  readonly #fleets = new RecentFleets();
  readonly #watchers = new Set<StateWatcher>();
  /** Round-trip times between crawlers; pairs that nobody could measure stay unknown, and rule nobody out. */
  readonly peerRtts = new PeerMatrix();

  get tree(): SubnetTree {
    return this.#tree;
  }

  /** What finished rounds measured by this method; methods are not compared with each other. */
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

  /** What all delegations stand in; another one after `setDelegations`. To be read only. */
  get delegationTable(): Omit<DelegationTable, "set"> {
    return this.#delegations;
  }

  /** Returns how to stop watching. */
  watch(watcher: StateWatcher): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** The registry's generation that the tree was read from; a newer one may have begun meanwhile. */
  get generation(): number | null {
    return this.#generation;
  }

  /** What networks publish of where their ranges lie; to be set before the tree that placements are made in. */
  setPublished(published: PublishedRanges): void {
    this.#published = published;
  }

  /** How many ranges networks publish places of. */
  get publishedRanges(): number {
    return this.#published.count;
  }

  /** A new tree: everything that was learned is placed in it anew. */
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

  /** Some of them have changed, or are new. */
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

  /** Of crawlers that are elsewhere than before, what was measured of the way to them and from them is void. */
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

  /** All delegations, in place of those that were known. The table is the state's own from now on. */
  setDelegations(delegations: DelegationTable): void {
    this.#delegations = delegations;
    this.#relearn();
  }

  /** Measured now, or at a time that is not known: 0 stands for long ago. */
  learnRtts(rtts: readonly PeerRtt[], now?: Date): void {
    const atMs = now?.getTime() ?? 0;
    for (const { from, to, rttMs } of rtts)
      this.peerRtts.learn(this.peerRtts.slotOf(from), this.peerRtts.slotOf(to), rttMs, atMs);
  }

  /**
   * How far these crawlers have got with measuring each other, 0 to 1: the share of their pairs that somebody has
   * measured; in a large fleet, of the pairs of its landmarks with a part of it.
   */
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

  /** Whether a crawler knows its distance to this share of the others; of a large fleet, to as many as are its landmarks and neighbours. */
  knowsDistances(crawlerId: CrawlerId, online: readonly CrawlerId[], share: number): boolean {
    if (online.length > lookedAtWhole) {
      const slot = this.peerRtts.slots.get(crawlerId) ?? -1;
      return this.peerRtts.knownOf(slot) >= landmarkCount + neighbourCount;
    }
    const others = online.filter((other) => other !== crawlerId);
    const known = others.filter((other) => this.peerRtts.rttMs(crawlerId, other) !== null);
    return known.length >= share * others.length;
  }

  /** The same fleet again while the candidates and what is known of their distances are the same. */
  fleetOf(candidates: readonly CrawlerId[]): CandidateFleet {
    return this.#fleets.of(candidates, this.peerRtts);
  }

  /** The most specific subnet with more than one address that holds this one (paper section 4.3). */
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

  /** Who crawls the subnet, without the record. */
  ownerOf(subnetId: SubnetId): CrawlerId | null {
    return this.#delegations.ownerOf(subnetId);
  }

  /** As they are now, first come first. */
  subnetsOf(crawlerId: CrawlerId): readonly SubnetId[] {
    return this.#delegations.subnetsOf(crawlerId);
  }

  /** How many subnets a crawler has, without listing them. */
  subnetCountOf(crawlerId: CrawlerId): number {
    return this.#delegations.countOf(crawlerId);
  }

  /** What nobody measured teaches nothing: a guess must not become the evidence for the next one. */
  setDelegation(delegation: Delegation): void {
    const { subnetId } = delegation;
    const before = this.#delegations.get(subnetId);
    const placement = this.placementOf(subnetId);
    if (placement && before?.measured) this.#knowledge.forget(placement, before.crawlerId);
    this.#delegations.set(delegation);
    if (placement && delegation.measured) this.#knowledge.record(placement, delegation.crawlerId);
    for (const watcher of this.#watchers) watcher(subnetId);
  }

  /** As the store moves it: the former crawler stays as runner-up, unless it has left. */
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

/** Of a large fleet, to tell how far it has got. */
const crawlersLookedAt = 500;

// The fleets of the latest rounds. Nearly every round has the candidates of the one before, and a fleet of 200
// takes longer to make than a whole look-up.

/** As many sets of candidates take turns: partners that deny a target, crawlers that are full for the day. */
const kept = 8;

class RecentFleets {
  /** The latest first. */
  readonly #recent: { readonly crawlerIds: readonly CrawlerId[]; readonly fleet: CandidateFleet }[] = [];

  /** The fleet of these candidates in this order, made anew where it is not among the latest. */
  of(crawlerIds: readonly CrawlerId[], peerRtts: PeerMatrix): CandidateFleet {
    const at = this.#recent.findIndex(
      (one) => one.fleet.peerRtts === peerRtts && isSame(one.crawlerIds, crawlerIds),
    );
    if (at === 0) return this.#recent[0]!.fleet;
    const known = at < 0 ? null : this.#recent.splice(at, 1)[0]!;
    // The caller's list may change behind our back.
    const one = known ?? { crawlerIds: [...crawlerIds], fleet: candidateFleet(crawlerIds, peerRtts) };
    this.#recent.unshift(one);
    this.#recent.length = Math.min(this.#recent.length, kept);
    return one.fleet;
  }
}

function isSame(some: readonly CrawlerId[], others: readonly CrawlerId[]): boolean {
  return some.length === others.length && some.every((crawlerId, index) => crawlerId === others[index]);
}

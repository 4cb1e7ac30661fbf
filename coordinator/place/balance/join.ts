/**
 * Gives a crawler that joins a working fleet the subnets nearest to it, at a limited rate. It first gets its former subnets,
 * if its own measurement still beats the present crawler's. Then come subnets without comparison and those it measures nearer
 * than their owner (newcomer-search). A crawler present before anything is delegated is asked by ordinary rounds.
 */
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { CrawlerRecord } from "../crawlers/crawler.ts";
import type { CrawlerStore } from "../crawlers/crawler-store.ts";
import type { DelegationMove, UnmeasuredSubnet } from "../delegation/delegation.ts";
import type { DelegationStore } from "../delegation/store.ts";
import { makeMoves } from "./hand-overs.ts";
import { type Rtts, recordsOf, roomsOf, sumOf, withoutDenied } from "./input.ts";
import { NewcomerFindings, NewcomerSearch, type SearchPorts, UnmeasuredSearch } from "./newcomer-search.ts";
import { refreshCrawlers } from "./presence.ts";

interface SettlingPorts extends SearchPorts {
  readonly crawlers: Pick<CrawlerStore, "hasJoined" | "list">;
  readonly delegations: SearchPorts["delegations"] &
    Pick<DelegationStore, "crawlerLoads" | "formerSubnets" | "unmeasured">;
  readonly recrawlDays: () => number;
  readonly onMoved: (subnets: number) => void;
  readonly log: Log;
}

/** Probes per pass, for all newcomers. */
const probesPerPass = 10;
/** Concurrent rounds for subnets without comparison, for all newcomers. */
const roundsAtOnce = 60;
/** Maximum number of subnets without comparison. Those fetched most come first. */
const mostUnmeasured = 200_000;
/** How often those subnets and the fleet's rooms are read while a crawler joins. */
const readAgainMs = 60_000;
const reportMs = 60_000;
/** Subnets returned to their former crawler per pass. */
const returnsPerPass = 1000;
/** Maximum age of a former crawler's measurements. */
const formerMs = 24 * 3_600_000;
/** How much nearer, in ms, a former crawler must be to get a subnet back. */
const returnMarginMs = 1;
/** Share of its distances (in a large fleet, to landmarks and neighbours) that a newcomer needs, and the maximum wait. */
const enoughDistances = 0.9;
const patienceMs = 60_000;

class Newcomer {
  readonly unmeasured: UnmeasuredSearch;
  readonly search: NewcomerSearch;
  isSearching = true;
  /** Whether all its former subnets were returned. */
  isBack = false;
  returned = 0;
  reportedAtMs: number;

  constructor(crawlerId: CrawlerId, ports: SettlingPorts) {
    const own = ports.state.crawler(crawlerId)?.subnetId ?? null;
    const findings = new NewcomerFindings(own === null ? null : ports.state.placementOf(own));
    this.unmeasured = new UnmeasuredSearch(crawlerId, findings, ports);
    this.search = new NewcomerSearch(crawlerId, findings, ports);
    this.reportedAtMs = ports.now().getTime();
  }

  get gained(): number {
    return this.unmeasured.figures.gained + this.search.figures.gained;
  }
}

interface FleetReading {
  readonly atMs: number;
  /** Number of mean-sized subnets that each crawler can still take, reduced by what it gets. */
  readonly rooms: Map<CrawlerId, number>;
  readonly unmeasured: readonly UnmeasuredSubnet[];
}

export class NewcomerSettling {
  readonly #ports: SettlingPorts;
  readonly #newcomers = new Map<CrawlerId, Newcomer>();
  readonly #since = new Map<CrawlerId, number>();
  #reading: FleetReading = { atMs: Number.NEGATIVE_INFINITY, rooms: new Map(), unmeasured: [] };

  constructor(ports: SettlingPorts) {
    this.#ports = ports;
  }

  async pass(): Promise<void> {
    const { fleet, state } = this.#ports;
    const waiting = recordsOf(fleet.online(), state).filter(
      ({ joiningSince, drainingSince }) => joiningSince !== null && drainingSince === null,
    );
    const here = new Set(waiting.map(({ crawlerId }) => crawlerId));
    for (const waited of [this.#newcomers, this.#since])
      for (const crawlerId of waited.keys()) if (!here.has(crawlerId)) waited.delete(crawlerId);
    const owners = this.#owners();
    const isFirst = (crawlerId: CrawlerId) => owners.every((owner) => owner === crawlerId);
    const ready = this.#firstReady(waiting, isFirst);
    if (ready.length === 0) return;
    await this.#readFleet(ready);
    const { rooms } = this.#reading;
    const most = {
      probes: Math.max(1, Math.floor(probesPerPass / ready.length)),
      rounds: Math.floor(roundsAtOnce / ready.length),
    };
    for (const crawlerId of ready) {
      const newcomer = this.#newcomers.get(crawlerId) ?? new Newcomer(crawlerId, this.#ports);
      this.#newcomers.set(crawlerId, newcomer);
      const room = rooms.get(crawlerId) ?? 0;
      const before = newcomer.returned + newcomer.gained;
      const goesOn = await this.#settle(crawlerId, newcomer, {
        ...most,
        room: isFirst(crawlerId) ? 0 : room,
      });
      const gained = newcomer.returned + newcomer.gained - before;
      rooms.set(crawlerId, room - gained);
      this.#ports.onMoved(gained);
      if (!goesOn) await this.#hasJoined(crawlerId, newcomer);
    }
  }

  /** As many newcomers as one pass handles, with those already begun first. Starts the wait of the others. */
  #firstReady(waiting: readonly CrawlerRecord[], isFirst: (crawlerId: CrawlerId) => boolean): CrawlerId[] {
    const online = this.#ports.fleet.online();
    const nowMs = this.#ports.now().getTime();
    const isNew = (crawlerId: CrawlerId) => Number(!this.#newcomers.has(crawlerId));
    return waiting
      .map(({ crawlerId }) => crawlerId)
      .sort((a, b) => isNew(a) - isNew(b))
      .filter((crawlerId) => {
        const sinceMs = this.#since.get(crawlerId) ?? nowMs;
        this.#since.set(crawlerId, sinceMs);
        if (isFirst(crawlerId) || nowMs - sinceMs >= patienceMs) return true;
        return this.#ports.state.knowsDistances(crawlerId, online, enoughDistances);
      })
      .slice(0, probesPerPass);
  }

  /** Crawlers that own a subnet other than the one they are located in. Two are enough for the caller. */
  #owners(): CrawlerId[] {
    const { state } = this.#ports;
    const found: CrawlerId[] = [];
    for (const { crawlerId } of state.crawlers) {
      const hasOne = state.subnetsOf(crawlerId).some((subnetId) => {
        const delegation = state.delegationOf(subnetId);
        return delegation !== null && (delegation.rttMs !== null || !delegation.measured);
      });
      if (hasOne) found.push(crawlerId);
      if (found.length === 2) break;
    }
    return found;
  }

  /** Reads sums over all hosts once a minute, and when there is a crawler that the last reading did not include. */
  async #readFleet(ready: readonly CrawlerId[]): Promise<void> {
    const { fleet, state, delegations, recrawlDays, now } = this.#ports;
    const atMs = now().getTime();
    const isFresh = atMs - this.#reading.atMs < readAgainMs;
    const isKnown = (crawlerId: CrawlerId) =>
      this.#newcomers.has(crawlerId) && this.#reading.rooms.has(crawlerId);
    if (isFresh && ready.every(isKnown)) return;
    const loads = await delegations.crawlerLoads(recrawlDays());
    const pagesPerSubnet = sumOf(loads, "pagesPerDay") / sumOf(loads, "subnets");
    const rooms = [...roomsOf(recordsOf(fleet.online(), state), loads)].map(([crawlerId, room]) => {
      return [crawlerId, pagesPerSubnet > 0 ? Math.floor(room / pagesPerSubnet) : Infinity] as const;
    });
    const asked = { limit: mostUnmeasured, dueBy: null, except: [], recrawlDays: recrawlDays() };
    const unmeasured = await delegations.unmeasured(asked);
    this.#reading = { atMs, rooms: new Map(rooms), unmeasured };
  }

  /** Returns false if the crawler is finished or full. */
  async #settle(
    crawlerId: CrawlerId,
    newcomer: Newcomer,
    { room, probes, rounds }: Record<"room" | "probes" | "rounds", number>,
  ): Promise<boolean> {
    if (!newcomer.isBack) {
      const { own, others } = await this.#formerSubnets(crawlerId);
      // No crawler can be nearer to the subnet that it is located in, so it gets that one back whatever its room.
      const returned = others.slice(0, Math.max(0, Math.min(room - own.length, returnsPerPass)));
      const made = await makeMoves([...own, ...returned], this.#ports, this.#ports.now());
      newcomer.returned += made.length;
      newcomer.isBack = returned.length < returnsPerPass;
      return room > own.length;
    }
    if (room <= 0) return false;
    const isComparing = await newcomer.unmeasured.step(this.#reading.unmeasured, { rounds, room });
    newcomer.isSearching &&= await newcomer.search.step(Math.min(room, probes));
    this.#report(crawlerId, newcomer);
    return isComparing || newcomer.isSearching;
  }

  #report(crawlerId: CrawlerId, newcomer: Newcomer): void {
    const nowMs = this.#ports.now().getTime();
    if (nowMs - newcomer.reportedAtMs < reportMs) return;
    newcomer.reportedAtMs = nowMs;
    const { gained, unmeasured } = newcomer;
    const counts = { crawlerId, gained, rounds: unmeasured.figures.asked };
    this.#ports.log.info(
      { ...counts, unmeasured: this.#reading.unmeasured.length },
      "a crawler is joining: it is asked about what may be near to it",
    );
  }

  /** What the crawler gets back: the subnet that it is located in (paper section 4.1), and former ones to which it is nearer. */
  async #formerSubnets(
    crawlerId: CrawlerId,
  ): Promise<{ readonly own: DelegationMove[]; readonly others: DelegationMove[] }> {
    const { delegations, state, anycast, now } = this.#ports;
    const ownId = state.crawler(crawlerId)?.subnetId ?? null;
    const former = await delegations.formerSubnets(crawlerId, new Date(now().getTime() - formerMs));
    const rttOf = new Map(former.map(({ subnetId, rttMs }) => [subnetId, rttMs]));
    const allowed: Rtts = new Map(
      former
        .filter((one) => one.subnetId === ownId || (one.rttMs !== null && !anycast?.has(one.subnetId)))
        .map(({ subnetId, rttMs }) => [subnetId, new Map([[crawlerId, rttMs ?? 0]])]),
    );
    await withoutDenied(allowed, this.#ports, now());
    const moves = [...allowed.keys()].flatMap((subnetId): DelegationMove[] => {
      const present = state.delegationOf(subnetId);
      if (present === null || present.crawlerId === crawlerId) return [];
      const rttMs = rttOf.get(subnetId) ?? null;
      const move = { subnetId, from: present.crawlerId, to: crawlerId, cause: "joined", rttMs } as const;
      if (subnetId === ownId) return [{ ...move, reason: "the crawler that stands in it is back" }];
      if (rttMs === null || (present.rttMs !== null && rttMs >= present.rttMs - returnMarginMs)) return [];
      const against = present.rttMs === null ? "" : ` against ${present.rttMs.toFixed(1)} ms`;
      return [{ ...move, reason: `the crawler that had it is back: ${rttMs.toFixed(1)} ms${against}` }];
    });
    const isOwn = ({ subnetId }: DelegationMove) => subnetId === ownId;
    return { own: moves.filter(isOwn), others: moves.filter((move) => !isOwn(move)) };
  }

  async #hasJoined(crawlerId: CrawlerId, { gained, returned, unmeasured, search }: Newcomer): Promise<void> {
    const { crawlers, log } = this.#ports;
    this.#newcomers.delete(crawlerId);
    this.#since.delete(crawlerId);
    await crawlers.hasJoined(crawlerId);
    await refreshCrawlers(this.#ports, [crawlerId]);
    const asked = { rounds: unmeasured.figures.asked, probes: search.figures.probes };
    const counts = { crawlerId, returned, gained, ...asked };
    log.info(counts, "a crawler has joined: it has what was found nearest to it");
  }
}

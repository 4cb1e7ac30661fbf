/**
 * Gives a crawler that joins a working fleet what is nearest to it, at a limited rate: first its former subnets, if
 * its own measurement still beats the present crawler's; then subnets without comparison (unmeasured-search); then
 * those it measures nearer than their owner (join-search). A crawler present before anything is delegated is asked by
 * ordinary rounds.
 */
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { CrawlerRecord } from "../crawlers/crawler.ts";
import type { CrawlerStore } from "../crawlers/crawler-store.ts";
import type { DelegationMove, UnmeasuredSubnet } from "../delegation/delegation.ts";
import type { DelegationStore } from "../delegation/store.ts";
import { fleetLoad, roomsOf } from "./input.ts";
import { NewcomerFindings, NewcomerSearch, type SearchPorts } from "./join-search.ts";
import { refreshCrawlers } from "./presence.ts";
import { makeMoves, withoutDenied } from "./successors.ts";
import { type UnmeasuredPorts, UnmeasuredSearch } from "./unmeasured-search.ts";

interface SettlingPorts extends SearchPorts, UnmeasuredPorts {
  readonly fleet: SearchPorts["fleet"];
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
/** Limit of subnets without comparison, those fetched most first, and how often they are read again. */
const mostUnmeasured = 200_000;
const unmeasuredMs = 60_000;
/** How often a long search is reported. */
const tellMs = 60_000;
/** Subnets returned to their former crawler per pass. */
const returnsPerPass = 1000;
/** How long a former crawler's measurements are believed. */
const formerMs = 24 * 3_600_000;
/** Advantage, in ms, with which a former crawler gets a subnet back. */
const returnMarginMs = 1;
/** Share of its distances (in a large fleet, to landmarks and neighbours) that a newcomer needs, and the longest wait for them. */
const enoughDistances = 0.9;
const patienceMs = 60_000;
const roomsMs = 60_000;

interface Newcomer {
  readonly unmeasured: UnmeasuredSearch;
  readonly search: NewcomerSearch;
  isSearching: boolean;
  returned: number;
  isBack: boolean;
  toldAtMs: number;
}

export class NewcomerSettling {
  readonly #ports: SettlingPorts;
  readonly #newcomers = new Map<CrawlerId, Newcomer>();
  /** Start of each newcomer's wait. */
  readonly #since = new Map<CrawlerId, number>();
  /** As of the beginning of the pass. */
  #owners: readonly CrawlerId[] = [];
  #unmeasured: readonly UnmeasuredSubnet[] = [];
  #unmeasuredAtMs = Number.NEGATIVE_INFINITY;
  #rooms = new Map<CrawlerId, number>();
  #roomsAtMs = Number.NEGATIVE_INFINITY;

  constructor(ports: SettlingPorts) {
    this.#ports = ports;
  }

  async pass(): Promise<void> {
    const waiting = this.#waiting();
    const here = new Set(waiting.map(({ crawlerId }) => crawlerId));
    for (const waited of [this.#newcomers, this.#since])
      for (const crawlerId of waited.keys()) if (!here.has(crawlerId)) waited.delete(crawlerId);
    this.#owners = this.#withSubnets();
    const ready = this.#firstReady(waiting);
    if (ready.length === 0) return;
    const rooms = await this.#freshRooms(ready);
    await this.#readUnmeasured(ready.some(({ crawlerId }) => !this.#newcomers.has(crawlerId)));
    const probes = Math.max(1, Math.floor(probesPerPass / ready.length));
    const rounds = Math.floor(roundsAtOnce / ready.length);
    for (const crawler of ready) {
      const { crawlerId } = crawler;
      const room = rooms.get(crawlerId) ?? 0;
      const { goesOn, gained } = await this.#settle(crawler, { room, probes, rounds });
      rooms.set(crawlerId, room - gained);
      this.#ports.onMoved(gained);
      if (!goesOn) await this.#hasJoined(crawler);
    }
  }

  #waiting(): CrawlerRecord[] {
    const { fleet, state } = this.#ports;
    return fleet
      .online()
      .map((crawlerId) => state.crawler(crawlerId))
      .filter((crawler): crawler is CrawlerRecord => crawler !== null)
      .filter(({ joiningSince, drainingSince }) => joiningSince !== null && drainingSince === null);
  }

  /** As many newcomers as one pass handles, those already begun first; starts the others' wait. */
  #firstReady(waiting: readonly CrawlerRecord[]): CrawlerRecord[] {
    const online = this.#ports.fleet.online();
    const nowMs = this.#ports.now().getTime();
    const [begun, others] = [true, false].map((isBegun) =>
      waiting.filter(({ crawlerId }) => this.#newcomers.has(crawlerId) === isBegun),
    );
    const ready: CrawlerRecord[] = [];
    for (const crawler of [...begun!, ...others!]) {
      const sinceMs = this.#since.get(crawler.crawlerId) ?? nowMs;
      this.#since.set(crawler.crawlerId, sinceMs);
      if (ready.length < probesPerPass && this.#isReady(crawler, nowMs - sinceMs, online))
        ready.push(crawler);
    }
    return ready;
  }

  #isReady({ crawlerId }: CrawlerRecord, waitedMs: number, online: readonly CrawlerId[]): boolean {
    if (this.#isFirst(crawlerId) || waitedMs >= patienceMs) return true;
    return this.#ports.state.knowsDistances(crawlerId, online, enoughDistances);
  }

  /** True when the others only have the subnets they are in. */
  #isFirst(newcomer: CrawlerId): boolean {
    return this.#owners.every((crawlerId) => crawlerId === newcomer);
  }

  /** Crawlers with a subnet, assigned by comparison or not; two are enough to know. */
  #withSubnets(): CrawlerId[] {
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

  #newcomerOf(crawlerId: CrawlerId): Newcomer {
    const known = this.#newcomers.get(crawlerId);
    if (known) return known;
    const { state, now } = this.#ports;
    const own = state.crawler(crawlerId)?.subnetId ?? null;
    const findings = new NewcomerFindings(own === null ? null : state.placementOf(own));
    const newcomer = {
      unmeasured: new UnmeasuredSearch(crawlerId, findings, this.#ports),
      search: new NewcomerSearch(crawlerId, findings, this.#ports),
      isSearching: true,
      returned: 0,
      isBack: false,
      toldAtMs: now().getTime(),
    };
    this.#newcomers.set(crawlerId, newcomer);
    return newcomer;
  }

  /** Reads them once a minute while somebody joins, and for the first newcomer. */
  async #readUnmeasured(isFirstLook: boolean): Promise<void> {
    const { delegations, recrawlDays, now } = this.#ports;
    if (!isFirstLook && now().getTime() - this.#unmeasuredAtMs < unmeasuredMs) return;
    const asked = { limit: mostUnmeasured, dueBy: null, except: [], recrawlDays: recrawlDays() };
    this.#unmeasured = await delegations.unmeasured(asked);
    this.#unmeasuredAtMs = now().getTime();
  }

  /** One sum over all hosts a minute, reduced by what was given since. */
  async #freshRooms(newcomers: readonly CrawlerRecord[]): Promise<Map<CrawlerId, number>> {
    const nowMs = this.#ports.now().getTime();
    const isFresh = nowMs - this.#roomsAtMs < roomsMs;
    if (isFresh && newcomers.every(({ crawlerId }) => this.#rooms.has(crawlerId))) return this.#rooms;
    this.#rooms = await this.#readRooms();
    this.#roomsAtMs = nowMs;
    return this.#rooms;
  }

  /** Number of mean-sized subnets that each crawler can still take. */
  async #readRooms(): Promise<Map<CrawlerId, number>> {
    const { fleet, state, delegations, recrawlDays } = this.#ports;
    const online = new Set(fleet.online());
    const crawlers = state.crawlers.filter(({ crawlerId }) => online.has(crawlerId));
    const loads = await delegations.crawlerLoads(recrawlDays());
    const pages = loads.reduce((sum, { pagesPerDay }) => sum + pagesPerDay, 0);
    const subnets = loads.reduce((sum, one) => sum + one.subnets, 0);
    const pagesPerSubnet = subnets > 0 ? pages / subnets : 0;
    const rooms = roomsOf(fleetLoad(crawlers, loads, []));
    return new Map(
      [...rooms].map(([crawlerId, room]) => [
        crawlerId,
        pagesPerSubnet > 0 ? Math.floor(room / pagesPerSubnet) : Number.POSITIVE_INFINITY,
      ]),
    );
  }

  /** Returns false when the crawler is finished or full. */
  async #settle(
    { crawlerId }: CrawlerRecord,
    { room, probes, rounds }: Record<"room" | "probes" | "rounds", number>,
  ): Promise<{ readonly goesOn: boolean; readonly gained: number }> {
    const newcomer = this.#newcomerOf(crawlerId);
    const own = newcomer.isBack ? 0 : await this.#giveOwnBack(crawlerId);
    newcomer.returned += own;
    if (this.#isFirst(crawlerId) || room <= own) return { goesOn: false, gained: own };
    if (!newcomer.isBack) {
      const returned = await this.#giveBack(crawlerId, Math.min(room - own, returnsPerPass));
      newcomer.returned += returned;
      newcomer.isBack = returned < returnsPerPass;
      return { goesOn: true, gained: own + returned };
    }
    const { unmeasured, search } = newcomer;
    const before = gainedBy(newcomer);
    const isComparing = await unmeasured.step(this.#unmeasured, { rounds, room });
    newcomer.isSearching &&= await search.step(Math.min(room, probes));
    this.#tell(crawlerId, newcomer);
    return { goesOn: isComparing || newcomer.isSearching, gained: gainedBy(newcomer) - before };
  }

  #tell(crawlerId: CrawlerId, newcomer: Newcomer): void {
    const nowMs = this.#ports.now().getTime();
    if (nowMs - newcomer.toldAtMs < tellMs) return;
    newcomer.toldAtMs = nowMs;
    const { asked } = newcomer.unmeasured.figures;
    const counts = {
      crawlerId,
      gained: gainedBy(newcomer),
      rounds: asked,
      unmeasured: this.#unmeasured.length,
    };
    this.#ports.log.info(counts, "a crawler is joining: it is asked about what may be near to it");
  }

  /** Returns the subnet it is in (paper section 4.1) if it had that before, since nobody can be nearer. */
  async #giveOwnBack(crawlerId: CrawlerId): Promise<number> {
    const { delegations, state, denied, now } = this.#ports;
    const subnetId = state.crawler(crawlerId)?.subnetId ?? null;
    const present = subnetId === null ? null : state.delegationOf(subnetId);
    if (subnetId === null || present === null || present.crawlerId === crawlerId) return 0;
    const former = await delegations.formerSubnets(crawlerId, new Date(now().getTime() - formerMs));
    const had = former.find((one) => one.subnetId === subnetId);
    if (had === undefined) return 0;
    const allowed = new Map([[subnetId, new Map([[crawlerId, had.rttMs ?? 0]])]]);
    await withoutDenied(allowed, { delegations, ...(denied ? { denied } : {}) }, now());
    if (!allowed.has(subnetId)) return 0;
    const back: DelegationMove = {
      subnetId,
      from: present.crawlerId,
      to: crawlerId,
      cause: "joined",
      rttMs: had.rttMs,
      reason: "the crawler that stands in it is back",
    };
    return (await makeMoves([back], this.#ports, now())).length;
  }

  async #giveBack(crawlerId: CrawlerId, most: number): Promise<number> {
    const moves = (await this.#backMoves(crawlerId)).slice(0, most);
    return (await makeMoves(moves, this.#ports, this.#ports.now())).length;
  }

  async #backMoves(crawlerId: CrawlerId): Promise<DelegationMove[]> {
    const { delegations, state, anycast, now } = this.#ports;
    const former = await delegations.formerSubnets(crawlerId, new Date(now().getTime() - formerMs));
    const measured = former.flatMap(({ subnetId, rttMs }) =>
      rttMs === null || anycast?.has(subnetId) ? [] : [[subnetId, new Map([[crawlerId, rttMs]])] as const],
    );
    const allowed = new Map(measured);
    await withoutDenied(allowed, this.#ports, now());
    return [...allowed].flatMap(([subnetId, rtts]) => {
      const rttMs = rtts.get(crawlerId)!;
      const present = state.delegationOf(subnetId);
      if (present === null || present.crawlerId === crawlerId) return [];
      if (present.rttMs !== null && rttMs >= present.rttMs - returnMarginMs) return [];
      const against = present.rttMs === null ? "" : ` against ${present.rttMs.toFixed(1)} ms`;
      return [
        {
          subnetId,
          from: present.crawlerId,
          to: crawlerId,
          cause: "joined",
          reason: `the crawler that had it is back: ${rttMs.toFixed(1)} ms${against}`,
          rttMs,
        },
      ];
    });
  }

  async #hasJoined({ crawlerId }: CrawlerRecord): Promise<void> {
    const { crawlers, log } = this.#ports;
    const newcomer = this.#newcomers.get(crawlerId);
    this.#newcomers.delete(crawlerId);
    this.#since.delete(crawlerId);
    await crawlers.hasJoined(crawlerId);
    await refreshCrawlers(this.#ports, [crawlerId]);
    const gained = newcomer === undefined ? 0 : gainedBy(newcomer);
    const asked = {
      rounds: newcomer?.unmeasured.figures.asked ?? 0,
      probes: newcomer?.search.figures.probes ?? 0,
    };
    const counts = { crawlerId, returned: newcomer?.returned ?? 0, gained, ...asked };
    log.info(counts, "a crawler has joined: it has what was found nearest to it");
  }
}

const gainedBy = ({ unmeasured, search }: Newcomer) => unmeasured.figures.gained + search.figures.gained;

/**
 * A crawler that joins a fleet at work gets what is nearest to it, at a bounded rate: first what it had before
 * it left, where its own measurement still beats that of the crawler that has it now; then by a search
 * (newcomer-search). One that is there before anything is delegated needs neither: the rounds ask it.
 */
import type { CrawlerId } from "#core/ids";
import type { Log } from "#core/log";
import type { CrawlerRecord, CrawlerStore } from "../crawlers/crawler.ts";
import type { DelegationMove, DelegationStore } from "../delegation/delegation.ts";
import { fleetLoad, roomsOf } from "./input.ts";
import { NewcomerSearch, type SearchPorts } from "./join-search.ts";
import { refreshCrawlers } from "./presence.ts";
import { makeMoves, withoutDenied } from "./successors.ts";

export interface SettlingPorts extends SearchPorts {
  readonly crawlers: Pick<CrawlerStore, "hasJoined" | "list">;
  readonly delegations: SearchPorts["delegations"] & Pick<DelegationStore, "crawlerLoads" | "formerSubnets">;
  readonly recrawlDays: number;
  readonly onMoved: (subnets: number) => void;
  readonly log: Log;
}

/** Probes of one pass, of all newcomers together. */
const probesPerPass = 10;
/** Subnets that go back to their former crawler in one pass. */
const returnsPerPass = 1000;
/** What a crawler measured before it left is believed for so long. */
const formerMs = 24 * 3_600_000;
/** A former crawler gets a subnet back for this. */
const returnMarginMs = 1;
/**
 * The newcomer has to know its distance to this share of the others (in a large fleet to its landmarks and neighbours), but is
 * not waited for any longer than that.
 */
const enoughDistances = 0.9;
const patienceMs = 60_000;
const roomsMs = 60_000;

interface Newcomer {
  readonly search: NewcomerSearch;
  returned: number;
  isBack: boolean;
}

export class NewcomerSettling {
  readonly #ports: SettlingPorts;
  readonly #newcomers = new Map<CrawlerId, Newcomer>();
  /** Since when each waits. */
  readonly #since = new Map<CrawlerId, number>();
  /** At the beginning of the pass. */
  #measured: readonly CrawlerId[] = [];
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
    this.#measured = this.#withMeasurements();
    const ready = this.#firstReady(waiting);
    if (ready.length === 0) return;
    const rooms = await this.#freshRooms(ready);
    const probes = Math.max(1, Math.floor(probesPerPass / ready.length));
    for (const crawler of ready) {
      const { crawlerId } = crawler;
      const room = rooms.get(crawlerId) ?? 0;
      const { goesOn, gained } = await this.#settle(crawler, room, probes);
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

  /** As many as one pass settles; each of the others has begun to wait. Those that were begun with come first. */
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

  /** Nothing of the others was measured yet: they have but the subnets that they stand in. */
  #isFirst(newcomer: CrawlerId): boolean {
    return this.#measured.every((crawlerId) => crawlerId === newcomer);
  }

  /** Crawlers that have a subnet that was measured; two of them tell all that is asked here. */
  #withMeasurements(): CrawlerId[] {
    const { state } = this.#ports;
    const found: CrawlerId[] = [];
    for (const { crawlerId } of state.crawlers) {
      const hasOne = state
        .subnetsOf(crawlerId)
        .some((subnetId) => (state.delegationOf(subnetId)?.rttMs ?? null) !== null);
      if (hasOne) found.push(crawlerId);
      if (found.length === 2) break;
    }
    return found;
  }

  #newcomerOf(crawlerId: CrawlerId): Newcomer {
    const known = this.#newcomers.get(crawlerId);
    if (known) return known;
    const search = new NewcomerSearch(crawlerId, this.#ports);
    const newcomer = { search, returned: 0, isBack: false };
    this.#newcomers.set(crawlerId, newcomer);
    return newcomer;
  }

  /** One sum over all hosts a minute; in between, what came is taken off. */
  async #freshRooms(newcomers: readonly CrawlerRecord[]): Promise<Map<CrawlerId, number>> {
    const nowMs = this.#ports.now().getTime();
    const isFresh = nowMs - this.#roomsAtMs < roomsMs;
    if (isFresh && newcomers.every(({ crawlerId }) => this.#rooms.has(crawlerId))) return this.#rooms;
    this.#rooms = await this.#readRooms();
    this.#roomsAtMs = nowMs;
    return this.#rooms;
  }

  /** Subnets of the mean size that each may still take. */
  async #readRooms(): Promise<Map<CrawlerId, number>> {
    const { fleet, state, delegations, recrawlDays } = this.#ports;
    const online = new Set(fleet.online());
    const crawlers = state.crawlers.filter(({ crawlerId }) => online.has(crawlerId));
    const loads = await delegations.crawlerLoads(recrawlDays);
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

  /** False when it has what is nearest to it, or is full. */
  async #settle(
    { crawlerId }: CrawlerRecord,
    room: number,
    probes: number,
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
    const before = newcomer.search.figures.gained;
    const goesOn = await newcomer.search.step(Math.min(room, probes));
    return { goesOn, gained: newcomer.search.figures.gained - before };
  }

  /** The subnet that it stands in (paper section 4.1), where it had that before: nobody can be nearer. */
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
      ...{ from: present.crawlerId, to: crawlerId, cause: "joined", rttMs: had.rttMs },
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
    const { probes = 0, gained = 0 } = newcomer?.search.figures ?? {};
    const counts = { crawlerId, returned: newcomer?.returned ?? 0, gained, probes };
    log.info(counts, "a crawler has joined: it has what is nearest to it");
  }
}

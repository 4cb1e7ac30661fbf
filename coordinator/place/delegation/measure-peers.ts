/**
 * Tells crawlers whom to measure. Every minute a tenth of the fleet has its turn, so that each comes up once in
 * the refresh interval; a crawler that is new gets what it needs first (landmarks, then its neighbours; in a
 * small fleet everybody) at once, and again each minute until it has its answers.
 *
 * Beyond 500 crawlers no more measurements are asked for in a second than the coordinator can take in beside its work,
 * and of no crawler more than its share of an interval, however many arrive together: those that wait have their
 * turn in the next seconds, each in its place of the line.
 */
import type { CrawlerId } from "#core/ids";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { CrawlerMessage } from "#protocol/messages";
import { type CrawlerRecord, type PeerRtt, peerAddressOf } from "../crawlers/crawler.ts";
import type { CrawlerStore } from "../crawlers/crawler-store.ts";
import { peersKeptByEach } from "../distances/peer-matrix.ts";
import {
  isNewcomer,
  landmarkCount,
  landmarksOf,
  lookedAtWhole,
  PeerSearch,
  type PeerTurn,
  peerRefreshMs,
  peersFor,
  peersPerTurn,
} from "../distances/peers.ts";
import type { CoordinatorState } from "./state.ts";

const peerTurnMs = 60_000;
const turnsPerRefresh = peerRefreshMs / peerTurnMs;

/** A large fleet is looked at so often. */
const largeTurnMs = 2000;

/** Measurements asked for in a second at most, of a large fleet: those of 10,000 newcomers are spread over ten minutes. */
const largestPerSecond = 800;

/** The same while more crawlers arrive than are let in at once. */
const crowdedPerSecond = 100;

/** Where a crawler's host answers, or refuses: either is an answer from it. */
const peerPort = 443;

interface SendPeersPorts {
  readonly state: CoordinatorState;
  readonly gateway: {
    online(): readonly CrawlerId[];
    /** Of them, those that are connected to this coordinator; left out: all. */
    here?(): readonly CrawlerId[];
    send(crawlerId: CrawlerId, message: CoordinatorMessage): boolean;
    /** More arrive than are let in at once; left out: never. */
    isCrowded?(): boolean;
  };
  readonly now: () => Date;
}

/** What a crawler of a large fleet was asked for since its interval began. */
interface Share {
  sinceMs: number;
  lastMs: number;
  asked: number;
}

export class PeerTurns {
  readonly #ports: SendPeersPorts;
  /** Whose turn was taken in this minute: arrivals hurry the next turn, and nobody has two. */
  readonly #served = new Set<CrawlerId>();
  #minute = -1;
  readonly #shares = new Map<CrawlerId, Share>();
  #largeAtMs = Number.NEGATIVE_INFINITY;
  /** Who was served last: the line goes on behind it. */
  #last: CrawlerId | null = null;
  #isLarge = false;

  constructor(ports: SendPeersPorts) {
    this.#ports = ports;
  }

  /** After how long the next turn is, in ms. */
  get everyMs(): number {
    return this.#isLarge ? largeTurnMs : peerTurnMs;
  }

  /** Sends what is due now; returns how many measurements were asked for. */
  next(): number {
    const { gateway, now } = this.#ports;
    const nowMs = now().getTime();
    const online = gateway.online();
    const here = gateway.here?.() ?? online;
    this.#begin(Math.floor(nowMs / peerTurnMs), nowMs);
    this.#isLarge = online.length > lookedAtWhole;
    if (!this.#isLarge) return this.#askAllDue(this.#turnOf(online, nowMs), here);
    // Arrivals hurry the next turn. Clocks may also be set back.
    if (Math.abs(nowMs - this.#largeAtMs) < largeTurnMs) return 0;
    this.#largeAtMs = nowMs;
    return this.#askSome(this.#turnOf(online, nowMs), here);
  }

  #turnOf(fleet: readonly CrawlerId[], nowMs: number): PeerTurn {
    const online = fleet.filter((crawlerId) => this.#addressOf(crawlerId) !== null);
    return { matrix: this.#ports.state.peerRtts, online, landmarks: landmarksOf(online), nowMs };
  }

  #begin(minute: number, nowMs: number): void {
    if (minute === this.#minute) return;
    this.#minute = minute;
    this.#served.clear();
    for (const [crawlerId, { sinceMs }] of this.#shares)
      if (Math.abs(nowMs - sinceMs) >= peerRefreshMs) this.#shares.delete(crawlerId);
  }

  #askAllDue(turn: PeerTurn, here: readonly CrawlerId[]): number {
    const due = here.filter((one) => this.#isDue(one, turn));
    const search = due.length > 0 && turn.landmarks.length > 0 ? new PeerSearch(turn) : null;
    return due.reduce((asked, one) => asked + this.#ask(one, peersFor(one, turn, { search })), 0);
  }

  /** In a large fleet once a minute at most; a small one measures every arrival at once. */
  #isDue(crawlerId: CrawlerId, turn: PeerTurn): boolean {
    const isNew = isNewcomer(crawlerId, turn);
    if (isNew && turn.landmarks.length === 0) return true;
    if (this.#served.has(crawlerId)) return false;
    if (!isNew && crawlerId % turnsPerRefresh !== this.#minute % turnsPerRefresh) return false;
    this.#served.add(crawlerId);
    return true;
  }

  #askSome(turn: PeerTurn, here: readonly CrawlerId[]): number {
    const start = this.#last === null ? 0 : here.indexOf(this.#last) + 1;
    let search: PeerSearch | null = null;
    let asked = 0;
    const perSecond = this.#ports.gateway.isCrowded?.() ? crowdedPerSecond : largestPerSecond;
    for (let step = 0; step < here.length; step++) {
      const crawlerId = here[(start + step) % here.length]!;
      const most = this.#leftFor(crawlerId, turn);
      if (most === 0) continue;
      if (asked + most > perSecond * (largeTurnMs / 1000)) break;
      search ??= new PeerSearch(turn);
      asked += this.#ask(crawlerId, this.#takeShare(crawlerId, turn, { search, most }));
      this.#last = crawlerId;
    }
    return asked;
  }

  /** How many measurements a crawler may be asked for now: all of its share, or of a newcomer a third a minute. */
  #leftFor(crawlerId: CrawlerId, turn: PeerTurn): number {
    const share = this.#shares.get(crawlerId);
    const isNew = isNewcomer(crawlerId, turn);
    if (share === undefined || turn.nowMs - share.sinceMs >= peerRefreshMs)
      return isNew ? landmarkCount : peersPerTurn;
    if (!isNew || turn.nowMs - share.lastMs < peerTurnMs) return 0;
    return Math.min(landmarkCount, peersPerTurn - share.asked);
  }

  #takeShare(
    crawlerId: CrawlerId,
    turn: PeerTurn,
    limits: { readonly search: PeerSearch; readonly most: number },
  ): CrawlerId[] {
    const before = this.#shares.get(crawlerId);
    const isOver = before === undefined || turn.nowMs - before.sinceMs >= peerRefreshMs;
    const peers = peersFor(crawlerId, turn, limits);
    const share = isOver ? { sinceMs: turn.nowMs, lastMs: 0, asked: 0 } : before;
    share.lastMs = turn.nowMs;
    share.asked += peers.length;
    this.#shares.set(crawlerId, share);
    return peers;
  }

  #ask(crawlerId: CrawlerId, peers: readonly CrawlerId[]): number {
    if (peers.length === 0) return 0;
    this.#ports.gateway.send(crawlerId, {
      type: "coordinator:peers",
      peers: peers.map((peer) => ({
        crawlerId: peer,
        address: this.#addressOf(peer)!,
        port: peerPort,
      })),
    });
    return peers.length;
  }

  #addressOf(crawlerId: CrawlerId): string | null {
    const crawler = this.#ports.state.crawler(crawlerId);
    if (crawler === null) return null;
    const known = addresses.get(crawler);
    if (known !== undefined) return known;
    const address = peerAddressOf(crawler);
    addresses.set(crawler, address);
    return address;
  }
}

/** Parsed once for each record. */
const addresses = new WeakMap<CrawlerRecord, string | null>();

// Whether a new fleet is ready for its first probe round: the first delegations steer all later ones, so they
// wait until the expected crawlers are there and have measured each other, but not for ever.

interface SettlingSettings {
  readonly expectedCrawlers: number;
  readonly settleMs: number;
}

/** Pairs of crawlers that have to be measured, as a share. */
const enoughCoverage = 0.9;

export class FleetSettling {
  readonly #settings: SettlingSettings;
  #firstSeenMs: number | null = null;
  #settled = false;

  constructor(settings: SettlingSettings) {
    this.#settings = settings;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** Once settled, always settled. */
  isSettled(online: readonly CrawlerId[], state: CoordinatorState, nowMs: number): boolean {
    if (this.#settled) return true;
    if (online.length === 0) return false;
    this.#firstSeenMs ??= nowMs;
    const complete =
      online.length >= this.#settings.expectedCrawlers && state.rttCoverage(online) >= enoughCoverage;
    this.#settled = complete || nowMs - this.#firstSeenMs >= this.#settings.settleMs;
    return this.#settled;
  }
}

// The crawlers' round-trip times to each other, D of the design's section 5: each crawler measures its peers'
// public addresses by itself; the smaller of both directions counts, since congestion only adds. Pairs that
// nobody could measure stay unknown, and rule nobody out.

type PeerReport = Extract<CrawlerMessage, { type: "crawler:peer-rtts" }>;

/** What a report measured; outcomes other than `measured`, and the crawler itself, are left out. */
export function measuredPeers(from: CrawlerId, report: PeerReport): PeerRtt[] {
  return report.peers.flatMap(({ crawlerId, outcome }) =>
    outcome.type === "measured" && crawlerId !== from
      ? [{ from, to: crawlerId as CrawlerId, rttMs: outcome.rttMs, method: outcome.method }]
      : [],
  );
}

export async function takePeerReport(
  from: CrawlerId,
  report: PeerReport,
  ports: { readonly crawlers: Pick<CrawlerStore, "saveRtts">; readonly state: CoordinatorState },
  now: Date,
): Promise<void> {
  const known = measuredPeers(from, report).filter(({ to }) => ports.state.crawler(to) !== null);
  if (known.length === 0) return;
  await ports.crawlers.saveRtts(known, now, peersKeptByEach(ports.state.peerRtts.size));
  ports.state.learnRtts(known, now);
}

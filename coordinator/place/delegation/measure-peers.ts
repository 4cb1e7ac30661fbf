/**
 * Tells crawlers which peers to measure. Each minute a tenth of the fleet is served, so that each crawler is served once per
 * refresh interval. A new crawler immediately gets what it needs first (landmarks, then neighbours; in a small fleet every
 * peer), and again each minute until it has answers.
 *
 * In a fleet of more than 500 crawlers, measurements per second are limited to what the coordinator can process, and each
 * crawler to its share per interval. The rest is queued for the next seconds.
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

const largeTurnMs = 2000;

/** Maximum measurements per second in a large fleet. Those of 10,000 newcomers take ten minutes. */
const largestPerSecond = 800;

/** The same limit while more crawlers arrive than can be admitted at once. */
const crowdedPerSecond = 100;

/** The peer's host answers or refuses at this port, and either yields an RTT. */
const peerPort = 443;

interface SendPeersPorts {
  readonly state: CoordinatorState;
  readonly gateway: {
    online(): readonly CrawlerId[];
    /** Peers connected to this coordinator. All if omitted. */
    here?(): readonly CrawlerId[];
    send(crawlerId: CrawlerId, message: CoordinatorMessage): boolean;
    /** True while more crawlers arrive than can be admitted at once. Never if omitted. */
    isCrowded?(): boolean;
  };
  readonly now: () => Date;
}

/** Measurements requested of one crawler since its interval began. */
interface Share {
  sinceMs: number;
  lastMs: number;
  asked: number;
}

export class PeerTurns {
  readonly #ports: SendPeersPorts;
  /** Crawlers served in this minute, since arrivals advance the next run and no crawler is served twice. */
  readonly #served = new Set<CrawlerId>();
  #minute = -1;
  readonly #shares = new Map<CrawlerId, Share>();
  #largeAtMs = Number.NEGATIVE_INFINITY;
  /** The queue continues after this crawler. */
  #last: CrawlerId | null = null;
  #isLarge = false;

  constructor(ports: SendPeersPorts) {
    this.#ports = ports;
  }

  get everyMs(): number {
    return this.#isLarge ? largeTurnMs : peerTurnMs;
  }

  /** Sends what is due. Returns how many measurements were requested. */
  next(): number {
    const { gateway, now } = this.#ports;
    const nowMs = now().getTime();
    const online = gateway.online();
    const here = gateway.here?.() ?? online;
    this.#begin(Math.floor(nowMs / peerTurnMs), nowMs);
    this.#isLarge = online.length > lookedAtWhole;
    if (!this.#isLarge) return this.#askAllDue(this.#turnOf(online, nowMs), here);
    // Arrivals advance the next run. The clock may also have been set back.
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

  /** In a large fleet at most once a minute. A small one measures every arrival at once. */
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

  /** Measurements that may be requested now: the whole share, or a third per minute for a newcomer. */
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

const addresses = new WeakMap<CrawlerRecord, string | null>();

// Decides when a new fleet may run its first probe rounds. The first delegations affect all later ones, so rounds wait, for a
// limited time, until the expected crawlers have measured each other.

interface SettlingSettings {
  readonly expectedCrawlers: number;
  readonly settleMs: number;
}

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

// RTTs between crawlers (D in section 5 of the design). Each crawler measures its peers' public addresses. The smaller
// direction counts, since congestion only adds. Unmeasured pairs stay unknown and rule no crawler out.

type PeerReport = Extract<CrawlerMessage, { type: "crawler:peer-rtts" }>;

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

/**
 * Tells crawlers whom to measure. Every minute a tenth of the fleet has its turn, so that each comes up once in
 * the refresh interval; a crawler that is new gets what it needs first (landmarks, then its neighbours; in a
 * small fleet everybody) at once, and again each minute until it has its answers.
 */
import type { CrawlerId } from "#core/ids";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import type { CrawlerMessage } from "#protocol/messages";
import { type CrawlerStore, type PeerRtt, peerAddressOf } from "../crawlers/crawler.ts";
import { isNewcomer, landmarksOf, type PeerTurn, peerRefreshMs, peersFor } from "./peers.ts";
import type { CoordinatorState } from "./state.ts";

export const peerTurnMs = 60_000;
const turnsPerRefresh = peerRefreshMs / peerTurnMs;

/** Where a crawler's host answers, or refuses: either is an answer from it. */
const peerPort = 443;

export interface SendPeersPorts {
  readonly state: CoordinatorState;
  readonly gateway: {
    online(): readonly CrawlerId[];
    /** Of them, those that are connected to this coordinator; left out: all. */
    here?(): readonly CrawlerId[];
    send(crawlerId: CrawlerId, message: CoordinatorMessage): boolean;
  };
  readonly now: () => Date;
}

export class PeerTurns {
  readonly #ports: SendPeersPorts;
  /** Whose turn was taken in this minute: arrivals hurry the next turn, and nobody has two. */
  readonly #served = new Set<CrawlerId>();
  #minute = -1;

  constructor(ports: SendPeersPorts) {
    this.#ports = ports;
  }

  /** Sends what is due now; returns how many measurements were asked for. */
  next(): number {
    const { state, gateway, now } = this.#ports;
    const nowMs = now().getTime();
    this.#begin(Math.floor(nowMs / peerTurnMs));
    const addresses = this.#addresses();
    const online = [...addresses.keys()];
    const landmarks = landmarksOf(online);
    const turn: PeerTurn = { matrix: state.rtts.matrix, online, landmarks, nowMs };
    let asked = 0;
    for (const crawlerId of (gateway.here ?? gateway.online)().filter((one) => this.#isDue(one, turn))) {
      const peers = peersFor(crawlerId, turn).map((peer) => ({
        crawlerId: peer,
        address: addresses.get(peer)!,
        port: peerPort,
      }));
      if (peers.length > 0) gateway.send(crawlerId, { type: "coordinator:peers", peers });
      asked += peers.length;
    }
    return asked;
  }

  #begin(minute: number): void {
    if (minute !== this.#minute) this.#served.clear();
    this.#minute = minute;
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

  #addresses(): ReadonlyMap<CrawlerId, string> {
    const { state, gateway } = this.#ports;
    const addresses = new Map<CrawlerId, string>();
    for (const crawlerId of gateway.online()) {
      const crawler = state.crawler(crawlerId);
      const address = crawler === null ? null : peerAddressOf(crawler);
      if (address !== null) addresses.set(crawlerId, address);
    }
    return addresses;
  }
}

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
  await ports.crawlers.saveRtts(known, now);
  ports.state.learnRtts(known, now);
}

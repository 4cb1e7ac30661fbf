/**
 * Tells crawlers whom to measure. Every minute a tenth of the fleet has its turn, so that each comes up once in
 * the refresh interval; a crawler that is new gets what it needs first (landmarks, then its neighbours; in a
 * small fleet everybody) at once, and again each minute until it has its answers.
 */

import type { CrawlerId } from "#core/ids";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import { isNewcomer, landmarksOf, type PeerTurn, peerRefreshMs, peersFor } from "./peer-plan.ts";
import type { CoordinatorState } from "./state.ts";

export const peerTurnMs = 60_000;
const turnsPerRefresh = peerRefreshMs / peerTurnMs;
/** Where a crawler's host answers, or refuses: either is an answer from it. */
const peerPort = 443;

export interface SendPeersPorts {
  readonly state: CoordinatorState;
  readonly gateway: {
    online(): readonly CrawlerId[];
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
    for (const crawlerId of gateway.online().filter((one) => this.#isDue(one, turn))) {
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
      const address = state.crawler(crawlerId)?.address;
      if (address) addresses.set(crawlerId, address);
    }
    return addresses;
  }
}

/**
 * Compares delegation policies on one world without running each: the world as a simulator instance, and download times by the
 * model of the emulated Internet's proxies.
 */
import type { SimulatedHost, SimulationInstance } from "#coordinator/place/delegation/simulation/simulation";
import { pathOf, type World } from "./model.ts";

export interface Download {
  readonly rttMs: number;
  /** Everything the server sends on the wire, headers included. */
  readonly bodyBytes: number;
  readonly bandwidthKbps: number;
  readonly serverDelayMs: number;
  /** The request uses an idle open connection, without a handshake. */
  readonly connectionReused?: boolean;
}

/**
 * From the start of the connection to the last byte, in ms: one RTT for the handshake, one for the request,
 * and the sending time under slow start (RFC 6928: ten segments first, doubling each round trip) at the
 * given bandwidth. A round takes an RTT, or as long as its bytes need where that is more.
 */
export function downloadTimeMs(download: Download): number {
  const { rttMs, bodyBytes, bandwidthKbps, serverDelayMs, connectionReused = false } = download;
  const rate = bytesPerMs(bandwidthKbps);
  let windowBytes = initialWindowBytes;
  let leftBytes = bodyBytes;
  let sendingMs = 0;
  while (leftBytes > windowBytes) {
    sendingMs += Math.max(rttMs, windowBytes / rate);
    leftBytes -= windowBytes;
    windowBytes *= 2;
  }
  return (connectionReused ? 1 : 2) * rttMs + serverDelayMs + sendingMs + leftBytes / rate;
}

/**
 * The form in which the delegation simulator takes a world: no addresses, only the names on the way down the registry, holder,
 * country and the round-trip times. Each target's are made when they are read: a hundred thousand sites and a thousand
 * crawlers need no more memory than the sites themselves.
 */
export function worldInstance(world: World): SimulationInstance {
  const indices = world.crawlers.map((_, index) => index);
  return {
    crawlers: world.crawlers.map((crawler) => hostOf(world, crawler)),
    crawlerRtt: indices.map((a) => indices.map((b) => world.crawlerRttMs(a, b))),
    targets: world.sites.map((site) => ({
      ...hostOf(world, site),
      get rtt() {
        return Float64Array.from(indices, (crawler) => world.rttMs(crawler, site.address) ?? Number.NaN);
      },
    })),
  };
}

function hostOf(
  world: World,
  host: { readonly subnet: number; readonly country: string | null },
): SimulatedHost {
  const holder = world.subnets[host.subnet]?.holder ?? null;
  return {
    path: pathOf(world, host.subnet),
    org: holder === null ? "" : (world.holders[holder]?.name ?? ""),
    cc: host.country ?? "",
  };
}

// When the bytes of a server's answer leave it: TCP slow start in rounds (RFC 5681, initial window of
// RFC 6928) over a link of limited bandwidth, without loss. In a round at most the window's bytes leave;
// when it is used up, the next round (twice the window) starts one RTT after this one's first byte, for
// that is when the first acknowledgement is back. After an idle time the window starts anew.

/** 10 segments of 1460 bytes. */
export const initialWindowBytes = 14_600;

/** Least retransmission timeout of common stacks: idle for longer, and the window is the initial one again. */
const idleResetMs = 200;

/** 1 kbit/s is 125 bytes per second. */
function bytesPerMs(bandwidthKbps: number): number {
  return bandwidthKbps / 8;
}

export class SlowStart {
  readonly #rate: number;
  #windowBytes = initialWindowBytes;
  #roundStartMs = Number.NEGATIVE_INFINITY;
  #roundBytes = 0;
  #linkFreeMs = Number.NEGATIVE_INFINITY;

  constructor(bandwidthKbps: number) {
    this.#rate = bytesPerMs(bandwidthKbps);
  }

  /**
   * The pieces in which so many bytes leave, if handed over now: sizes, and when each piece's last byte is
   * on its way.
   */
  send(bytes: number, nowMs: number, rttMs: number): { readonly bytes: number; readonly leftMs: number }[] {
    this.#startAnew(nowMs, rttMs);
    const pieces: { bytes: number; leftMs: number }[] = [];
    for (let left = bytes; left > 0; ) {
      if (this.#roundBytes >= this.#windowBytes) this.#nextRound(nowMs, rttMs);
      const piece = Math.min(left, this.#windowBytes - this.#roundBytes);
      const startMs = Math.max(nowMs, this.#roundStartMs, this.#linkFreeMs);
      this.#linkFreeMs = startMs + piece / this.#rate;
      this.#roundBytes += piece;
      left -= piece;
      pieces.push({ bytes: piece, leftMs: this.#linkFreeMs });
    }
    return pieces;
  }

  #startAnew(nowMs: number, rttMs: number): void {
    const quietMs = nowMs - Math.max(this.#linkFreeMs, this.#roundStartMs);
    if (quietMs > Math.max(idleResetMs, rttMs)) this.#windowBytes = initialWindowBytes;
    else if (nowMs < this.#roundStartMs + rttMs) return;
    else if (this.#roundBytes >= this.#windowBytes) this.#windowBytes *= 2;
    this.#roundStartMs = nowMs;
    this.#roundBytes = 0;
  }

  #nextRound(nowMs: number, rttMs: number): void {
    this.#roundStartMs = Math.max(nowMs, this.#roundStartMs + rttMs, this.#linkFreeMs);
    this.#roundBytes = 0;
    this.#windowBytes *= 2;
  }
}

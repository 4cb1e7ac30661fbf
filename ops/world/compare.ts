/**
 * Compares delegation policies on one world without running each of them: the world becomes an instance for the
 * simulator, and download times follow the model of the emulated Internet's proxies.
 */
import type { SimulatedHost, SimulationInstance } from "#coordinator/place/delegation/simulation/simulation";
import { pathOf, type World } from "./model.ts";

export interface Download {
  readonly rttMs: number;
  /** All bytes that the server sends on the wire, including headers. */
  readonly bodyBytes: number;
  readonly bandwidthKbps: number;
  readonly serverDelayMs: number;
  /** True when the request uses an idle open connection and needs no handshake. */
  readonly connectionReused?: boolean;
}

/**
 * The time in ms from the start of the connection to the last byte: one RTT for the handshake, one for the request, and
 * the sending time under slow start (RFC 6928: ten segments first, doubling each round trip) at the given bandwidth. A
 * round takes an RTT, or longer if its bytes need longer.
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
 * Returns the world in the delegation simulator's form: instead of addresses only the names on the path down the
 * registry, the holder, the country and the round-trip times. A target's times are computed when they are read, so a
 * hundred thousand sites and a thousand crawlers need no more memory than the sites themselves.
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

// Computes when the bytes of a server's answer leave it: TCP slow start in rounds (RFC 5681, with the initial window of
// RFC 6928) over a link of limited bandwidth, without loss. In each round at most a window of bytes leaves. When the
// window is used up, the next round (of twice the window) starts one RTT after this round's first byte, because the
// first acknowledgement is back then. After an idle period the window is the initial one again.

/** 10 segments of 1460 bytes. */
export const initialWindowBytes = 14_600;

/** Minimum retransmission timeout of common stacks. After a longer idle period, the window is the initial one again. */
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
   * Returns the pieces in which `bytes` leave if they are handed over now: each piece's size, and when its last byte
   * has left.
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

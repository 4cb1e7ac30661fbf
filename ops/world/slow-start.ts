/**
 * When the bytes of a server's answer leave it: TCP slow start in rounds (RFC 5681, initial window of
 * RFC 6928) over a link of limited bandwidth, without loss. In a round at most the window's bytes leave;
 * when it is used up, the next round (twice the window) starts one RTT after this one's first byte, for
 * that is when the first acknowledgement is back. After an idle time the window starts anew.
 */

/** 10 segments of 1460 bytes. */
export const initialWindowBytes = 14_600;

/** Least retransmission timeout of common stacks: idle for longer, and the window is the initial one again. */
const idleResetMs = 200;

/** 1 kbit/s is 125 bytes a second. */
export function bytesPerMs(bandwidthKbps: number): number {
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

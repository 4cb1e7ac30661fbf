/**
 * The limits of one request that count in time and in bytes: first byte, silence within the body, the whole,
 * a least rate, and how much may come that is no content (chunk sizes, informational answers, HTTP/2 frames).
 * One timer for all of them, looked at several times a second: most requests end before it first rings.
 */
import { timerMs } from "#core/timer-ms";
import { Failure } from "../core/failure.ts";

export interface Timeouts {
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
}

/** Rings so often, or as often as the shortest time-out needs to be kept. */
const longestTickMs = 250;
/** From so long after the header on, a body must have come at this rate; modems of 1990 were ten times faster. */
const rateGraceMs = 15_000;
const leastBytesPerSecond = 128;
/** Bytes that are no content: this much, and so many times the content (chunks of one byte take six). */
const freeOverheadBytes = 1024 * 1024;
const overheadPerByte = 16;

/**
 * Whether an answer is far more framing than content: header, chunk sizes with their extensions (which RFC 9112
 * section 7.1.1 wants bounded), trailers, frames. `bytes`: all of it, content too; `freeBytes` are free in any case.
 */
export function framingFailure(bytes: number, contentBytes: number, freeBytes: number): Failure | null {
  const excess = bytes - contentBytes * (overheadPerByte + 1) - freeBytes;
  return excess > 0 ? new Failure("bad-response", "far more framing than content") : null;
}

export class ExchangeWatch {
  readonly #timeouts: Timeouts;
  readonly #onFailure: (failure: Failure) => void;
  #timer: NodeJS.Timeout | null = null;
  #startedMs: number;
  #askedMs: number;
  /** When the header came; null before. */
  #answeredMs: number | null = null;
  #heardMs = 0;
  #heldSinceMs: number | null = null;
  #contentBytes = 0;
  #connectionBytes: () => number = () => 0;

  /** `startedMs`: since when the total counts. */
  constructor(timeouts: Timeouts, startedMs: number, onFailure: (failure: Failure) => void) {
    this.#timeouts = timeouts;
    this.#startedMs = startedMs;
    this.#askedMs = startedMs;
    this.#onFailure = onFailure;
  }

  /** The request goes out. `connectionBytes`: what has come over the connection so far. */
  start(connectionBytes: () => number): void {
    const { firstByteMs, idleMs, totalMs } = this.#timeouts;
    const before = connectionBytes();
    this.#connectionBytes = () => connectionBytes() - before;
    this.#askedMs = performance.now();
    this.#timer ??= setTimeout(
      () => this.#look(),
      timerMs(Math.min(longestTickMs, Math.min(firstByteMs, idleMs, totalMs) / 4)),
    );
  }

  answered(): void {
    this.#answeredMs = performance.now();
    this.#heardMs = this.#answeredMs;
  }

  heard(bytes: number): void {
    this.#contentBytes += bytes;
    this.#heardMs = performance.now();
  }

  /** We make the site wait: our time does not count. */
  hold(): void {
    this.#heldSinceMs ??= performance.now();
  }

  release(): void {
    if (this.#heldSinceMs === null) return;
    const heldMs = performance.now() - this.#heldSinceMs;
    this.#heldSinceMs = null;
    this.#startedMs += heldMs;
    this.#heardMs = performance.now();
    if (this.#answeredMs !== null) this.#answeredMs += heldMs;
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #look(): void {
    const failure = this.#heldSinceMs === null ? this.#verdict(performance.now()) : null;
    if (failure === null) {
      this.#timer?.refresh();
      return;
    }
    this.stop();
    this.#onFailure(failure);
  }

  #verdict(nowMs: number): Failure | null {
    const { firstByteMs, idleMs, totalMs } = this.#timeouts;
    if (nowMs - this.#startedMs >= totalMs) return ranOut("total-timeout", "complete body", totalMs);
    const framing = framingFailure(this.#connectionBytes(), this.#contentBytes, freeOverheadBytes);
    if (framing !== null) return framing;
    if (this.#answeredMs === null) {
      return nowMs - this.#askedMs >= firstByteMs
        ? ranOut("first-byte-timeout", "answer", firstByteMs)
        : null;
    }
    if (nowMs - this.#heardMs >= idleMs) return ranOut("idle-timeout", "more of the body", idleMs);
    return this.#isTooSlow(nowMs - this.#answeredMs)
      ? new Failure("too-slow", `less than ${leastBytesPerSecond} bytes per second`)
      : null;
  }

  #isTooSlow(sinceMs: number): boolean {
    return sinceMs >= rateGraceMs && this.#contentBytes < (sinceMs / 1000) * leastBytesPerSecond;
  }
}

function ranOut(code: "total-timeout" | "first-byte-timeout" | "idle-timeout", what: string, ms: number) {
  return new Failure(code, `no ${what} within ${ms} ms`);
}

/**
 * Enforces the limits of one request: time to the first byte, silence in the body, total time, minimum rate, and
 * overhead (chunk sizes, informational answers, HTTP/2 frames). One timer checks all of them several times a second;
 * most requests end before it first fires.
 */
import { timerMs } from "#core/timer-ms";
import { Failure } from "../core/failure.ts";

export interface Timeouts {
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
}

/** The timer's period, unless the shortest timeout needs a shorter one. */
const longestTickMs = 250;
/** After the grace period, a body must arrive at this rate; modems of 1990 were ten times faster. */
const rateGraceMs = 15_000;
const leastBytesPerSecond = 128;
/** The overhead allowed in any case, and per byte of content (chunks of one byte take six). */
const freeOverheadBytes = 1024 * 1024;
const overheadPerByte = 16;

/**
 * Checks for excessive framing: header, chunk sizes with their extensions (which RFC 9112 section 7.1.1 wants limited),
 * trailers, frames. `bytes` includes the content; `freeBytes` are always allowed.
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
  /** When the header arrived, or null. */
  #answeredMs: number | null = null;
  #heardMs = 0;
  #heldSinceMs: number | null = null;
  #contentBytes = 0;
  #connectionBytes: () => number = () => 0;

  /** The total timeout counts from `startedMs`. */
  constructor(timeouts: Timeouts, startedMs: number, onFailure: (failure: Failure) => void) {
    this.#timeouts = timeouts;
    this.#startedMs = startedMs;
    this.#askedMs = startedMs;
    this.#onFailure = onFailure;
  }

  /** `connectionBytes` returns the bytes received on the connection so far. */
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

  /** While we make the site wait, time does not count. */
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

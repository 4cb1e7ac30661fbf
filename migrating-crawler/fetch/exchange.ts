/**
 * One request and its answer in any HTTP version. A transport reports what arrives, and a reader takes it.
 *
 *   asked → answered (header here) → reading or dropping → ended
 *     └──────────┴─────────────────────┴→ failed (a limit, the site, the connection)
 *
 * Until the answer is read, only a limited amount is buffered. The transport is then paused.
 */
import { urlTextOf } from "#core/ip/url-host";
import { timerMs } from "#core/timer-ms";
import { Failure, failureOf } from "../core/failure.ts";

/** Names are in lower case, and repeated fields have all values. Text is ISO-8859-1, except that URLs are UTF-8 if valid. */
export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The head as received, with alternating names and values in ISO-8859-1. */
export interface AnswerHead {
  readonly reason: string;
  readonly rawHeaders: readonly (string | Buffer)[];
}

/** Asks the governor before bytes are read from the socket. Null means that reading continues at once. */
export type TakeBytes = (bytes: number) => Promise<void> | null;

interface Flow {
  /** Aborts the request. Closes the connection if the protocol has no other way. */
  abort(failure: Failure): void;
  resume(): void;
  connectionBytes(): number;
}

interface BodyReading {
  readonly limit: number;
  readonly take: TakeBytes;
  /** Is called once with the first bytes (at least `headBytes`, or the whole body). Returning false stops the reading. */
  readonly wants?: ((head: Buffer) => boolean) | undefined;
}

export interface WireBody {
  readonly bytes: Buffer;
  readonly truncated: boolean;
  readonly unwanted: boolean;
}

/** An answer whose body is unread. It must be ended with `read` or `drop`. */
export interface SiteAnswer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly head: AnswerHead;
  /** Time from sending the request to receiving the header. */
  readonly firstByteMs: number;
  /** Returns at most `limit` bytes of the body as sent. Throws a Failure. */
  read(reading: BodyReading): Promise<WireBody>;
  /**
   * Discards the body. Reads up to `mostBytes` to keep the connection, and closes it if more arrives. Returns false if a body
   * of unannounced length exceeds that. The governor counts the bytes, but the caller does not wait for it.
   */
  drop(take: TakeBytes, mostBytes?: number): Promise<boolean>;
}

/** Enough bytes to recognise a document (WHATWG MIME Sniffing section 5.2). */
export const headBytes = 1445;

/** Maximum number of bytes buffered before the body is read. */
const earlyBytes = 64 * 1024;

/** Maximum length of an unwanted body that is read to keep the connection. */
const droppedBytes = 64 * 1024;

/** The governor is asked for this many bytes at a time. */
const takenBytes = 8 * 1024;

/** Sites send one or two (103 Early Hints). More of them are an attack. */
const maxInformational = 20;

/** Fields with URLs. Sites send raw UTF-8 paths in them, which browsers read as UTF-8. */
const urlFields = ["location", "content-location", "link", "refresh", "tdm-policy"];

function withReadUrls(headers: AnswerHeaders): AnswerHeaders {
  const read: Record<string, string | string[]> = {};
  for (const name of urlFields) {
    const value = headers[name];
    if (value !== undefined) read[name] = Array.isArray(value) ? value.map(urlTextOf) : urlTextOf(value);
  }
  return { ...headers, ...read };
}

/**
 * Final statuses have three digits and do not start with 1 (RFC 9110 section 15). Sites also send 600 to 999 (999 against
 * robots), which count as server errors, as that section requires.
 */
const isFinalStatus = (status: number) => Number.isInteger(status) && status >= 200 && status <= 999;

interface Waiting<T> {
  resolve(value: T): void;
  reject(failure: Failure): void;
}

export class Exchange implements SiteAnswer {
  /** Resolves when the header arrives. Rejects with a Failure. */
  readonly answer: Promise<SiteAnswer>;
  status = 0;
  headers: AnswerHeaders = {};
  head: AnswerHead = { reason: "", rawHeaders: [] };
  firstByteMs = 0;
  readonly #watch: ExchangeWatch;
  readonly #collector = new PieceCollector();
  #state: "open" | "complete" | "over" = "open";
  #flow: Flow | null = null;
  #askedMs = 0;
  #informational = 0;
  #failure: Failure | null = null;
  #reading: BodyReading | null = null;
  #isWanted = false;
  #untaken = 0;
  #held = false;
  /** How much more of an unwanted body may arrive. Null if the body is wanted. */
  #droppable: number | null = null;
  #answerWaits!: Waiting<SiteAnswer>;
  #bodyWaits: Waiting<WireBody> | null = null;

  constructor(timeouts: Timeouts, startedMs: number) {
    this.#watch = new ExchangeWatch(timeouts, startedMs, (failure) => this.#giveUp(failure));
    this.answer = new Promise((resolve, reject) => {
      this.#answerWaits = { resolve, reject };
    });
  }

  // The transport calls this and the following methods.

  asked(flow: Flow): void {
    this.#flow = flow;
    this.#askedMs = performance.now();
    this.#watch.start(() => flow.connectionBytes());
  }

  informed(): void {
    if (++this.#informational > maxInformational) {
      this.#giveUp(new Failure("bad-response", `more than ${maxInformational} informational answers`));
    }
  }

  answered(status: number, headers: AnswerHeaders, head: AnswerHead): void {
    if (!isFinalStatus(status)) {
      this.#giveUp(new Failure("bad-response", `a status of ${status}, with which no answer ends`));
      return;
    }
    this.status = status;
    this.headers = withReadUrls(headers);
    this.head = head;
    this.firstByteMs = performance.now() - this.#askedMs;
    this.#watch.answered();
    this.#answerWaits.resolve(this);
  }

  /** Returns false if the transport must pause until `resume`. */
  came(piece: Buffer): boolean {
    if (this.#state !== "open") return true;
    this.#watch.heard(piece.length);
    if (this.#droppable !== null) {
      this.#droppable -= piece.length;
      if (this.#droppable < 0) this.#finish({ truncated: true });
      return true;
    }
    this.#collector.push(piece);
    this.#untaken += piece.length;
    return this.#goesOn();
  }

  completed(): void {
    if (this.#state !== "open") return;
    this.#state = "complete";
    this.#watch.stop();
    if (this.#reading !== null || this.#droppable !== null) this.#conclude();
  }

  failed(error: unknown): void {
    if (this.#state !== "open") return;
    const failure = failureOf(error);
    const isVague = failure.code === "internal" && this.status !== 0;
    const reason = `the body broke off: ${failure.message}`;
    this.#fail(isVague ? new Failure("connection-lost", reason, { cause: error }) : failure);
  }

  // The reader calls this and the following methods.

  read(reading: BodyReading): Promise<WireBody> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    this.#reading = reading;
    this.#isWanted = reading.wants === undefined;
    return new Promise((resolve, reject) => {
      this.#bodyWaits = { resolve, reject };
      if (this.#state === "complete") this.#conclude();
      else if (this.#goesOn()) this.#flow?.resume();
    });
  }

  async drop(take: TakeBytes, mostBytes = droppedBytes): Promise<boolean> {
    const isEnded = await this.#drop(mostBytes);
    void take(this.#droppable === null ? this.#collector.length : mostBytes - this.#droppable);
    return isEnded;
  }

  async #drop(mostBytes: number): Promise<boolean> {
    if (this.#state !== "open") return true;
    this.#droppable = mostBytes - this.#collector.length;
    const isLong = Number(this.headers["content-length"] ?? 0) > mostBytes;
    const dropped = new Promise<WireBody>((resolve, reject) => {
      this.#bodyWaits = { resolve, reject };
    });
    if (isLong) this.#finish({ truncated: true });
    else this.#flow?.resume();
    const { truncated } = await dropped.catch(() => ({ truncated: false }));
    return isLong || !truncated;
  }

  #goesOn(): boolean {
    const reading = this.#reading;
    if (reading === null) return this.#collector.length < earlyBytes;
    const { length } = this.#collector;
    if (length >= headBytes && !this.#wants(reading)) this.#finish({ unwanted: true });
    else if (length > reading.limit) this.#finish({ truncated: true });
    else if (this.#untaken >= takenBytes) this.#pay(reading, () => this.#goesOn() && this.#flow?.resume());
    return !this.#held;
  }

  #conclude(): void {
    const reading = this.#reading;
    if (reading === null) this.#finish({});
    else if (!this.#wants(reading)) this.#finish({ unwanted: true });
    else if (!this.#held) {
      this.#pay(reading, () => this.#conclude());
      if (!this.#held) this.#finish({ truncated: this.#collector.length > reading.limit });
    }
  }

  #wants(reading: BodyReading): boolean {
    this.#isWanted ||= reading.wants!(this.#collector.take(headBytes));
    return this.#isWanted;
  }

  /** Reports the bytes to the governor. If that requires a wait, calls `afterwards` when it ends. */
  #pay(reading: BodyReading, afterwards: () => void): void {
    const wait = this.#untaken === 0 ? null : reading.take(this.#untaken);
    this.#untaken = 0;
    if (wait === null) return;
    this.#held = true;
    this.#watch.hold();
    void wait.then(() => {
      this.#held = false;
      this.#watch.release();
      if (this.#state === "complete") this.#conclude();
      else if (this.#state === "open") afterwards();
    });
  }

  #finish(what: { readonly truncated?: boolean; readonly unwanted?: boolean }): void {
    const isCut = this.#state === "open";
    this.#state = "over";
    this.#watch.stop();
    if (this.#untaken > 0) void this.#reading?.take(this.#untaken);
    const bytes = this.#collector.take(this.#reading?.limit ?? 0);
    this.#bodyWaits?.resolve({ bytes, truncated: what.truncated ?? false, unwanted: what.unwanted ?? false });
    if (isCut) this.#flow?.abort(new Failure("stopped", "enough has been read"));
  }

  #giveUp(failure: Failure): void {
    this.#fail(failure);
    this.#flow?.abort(failure);
  }

  #fail(failure: Failure): void {
    this.#state = "over";
    this.#failure = failure;
    this.#watch.stop();
    this.#answerWaits.reject(failure);
    this.#bodyWaits?.reject(failure);
  }
}

// Collects a body from its pieces. Small pieces are copied into one block: as views they would take many times their size (in
// a body of one-byte chunks) and keep the socket's buffers in memory.

const smallBytes = 2048;

const blockBytes = 16 * 1024;

class PieceCollector {
  #length = 0;
  readonly #pieces: Buffer[] = [];
  /** The block that is being filled, and how much of it contains bytes that are not in `#pieces` yet. */
  #block: Buffer | null = null;
  #filled = 0;

  get length(): number {
    return this.#length;
  }

  push(piece: Buffer): void {
    this.#length += piece.length;
    if (piece.length >= smallBytes) {
      this.#closeBlock();
      this.#pieces.push(piece);
      return;
    }
    if (this.#block !== null && this.#filled + piece.length > blockBytes) this.#closeBlock();
    this.#block ??= Buffer.allocUnsafeSlow(blockBytes);
    piece.copy(this.#block, this.#filled);
    this.#filled += piece.length;
  }

  take(most: number): Buffer {
    this.#closeBlock();
    const [only] = this.#pieces;
    if (this.#pieces.length === 1) return only!.subarray(0, most);
    return Buffer.concat(this.#pieces, Math.min(this.#length, most));
  }

  #closeBlock(): void {
    if (this.#block === null) return;
    if (this.#filled > 0) this.#pieces.push(this.#block.subarray(0, this.#filled));
    this.#block = null;
    this.#filled = 0;
  }
}

// Enforces the limits of one request: time to the first byte, silence in the body, total time, minimum rate, and overhead
// (chunk sizes, informational answers, HTTP/2 frames). One timer checks all of them several times a second. Most requests end
// before it first fires.

export interface Timeouts {
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
}

/** The timer's period, unless the shortest timeout requires a shorter one. */
const longestTickMs = 250;
/** After the grace period, a body must arrive at this rate. Even modems of 1990 were ten times faster. */
const rateGraceMs = 15_000;
const leastBytesPerSecond = 128;
/** The overhead allowed in any case, and per byte of content (chunks of one byte take six). */
const freeOverheadBytes = 1024 * 1024;
const overheadPerByte = 16;

/**
 * Checks for excessive framing: header, chunk sizes with their extensions (which RFC 9112 section 7.1.1 wants limited),
 * trailers and frames. `bytes` includes the content. `freeBytes` are always allowed.
 */
export function framingFailure(bytes: number, contentBytes: number, freeBytes: number): Failure | null {
  const excess = bytes - contentBytes * (overheadPerByte + 1) - freeBytes;
  return excess > 0 ? new Failure("bad-response", "far more framing than content") : null;
}

class ExchangeWatch {
  readonly #timeouts: Timeouts;
  readonly #onFailure: (failure: Failure) => void;
  #timer: NodeJS.Timeout | null = null;
  #startedMs: number;
  #askedMs: number;
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

  /** Time does not count while the crawler makes the site wait. */
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

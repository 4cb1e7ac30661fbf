/**
 * One request and its answer, whatever HTTP carries it: a transport tells what comes, a reader takes it.
 *
 *   asked → answered (header here) → reading or dropping → ended
 *     └──────────┴─────────────────────┴→ failed (a limit, the site, the connection)
 *
 * What comes before anybody reads is kept, little of it; then the transport is paused.
 */
import { urlTextOf } from "#core/ip/url-host";
import { Failure, failureOf } from "../core/failure.ts";
import { ExchangeWatch, type Timeouts } from "./exchange-watch.ts";

/**
 * Names in lower case; a name that came several times has all its values. Text as ISO-8859-1 bytes, but for the URLs of an
 * answer: they are UTF-8 where the bytes are.
 */
export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The answer's head as it was received: names and values by turns, ISO-8859-1. */
export interface AnswerHead {
  readonly reason: string;
  readonly rawHeaders: readonly (string | Buffer)[];
}

/** Asked before pieces are taken from the socket: the governor's rate. Null: go on. */
export type TakeBytes = (bytes: number) => Promise<void> | null;

/** How a transport is steered while it carries an exchange. */
interface Flow {
  /** Gives the request up, and the connection where the protocol has no other way. */
  abort(failure: Failure): void;
  resume(): void;
  /** What has come over the connection so far, framing included. */
  connectionBytes(): number;
}

interface BodyReading {
  readonly limit: number;
  readonly take: TakeBytes;
  /** Asked once with the first bytes (at least `headBytes`, or the whole body): false stops the reading. */
  readonly wants?: ((head: Buffer) => boolean) | undefined;
}

export interface WireBody {
  readonly bytes: Buffer;
  /** There was more than the limit. */
  readonly truncated: boolean;
  /** Its first bytes were not wanted. */
  readonly unwanted: boolean;
}

/** An answer whose body has not been read. Ends with `read` or `drop`. */
export interface SiteAnswer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly head: AnswerHead;
  /** From when the request went out to the header. */
  readonly firstByteMs: number;
  /** The body as it came over the wire, at most `limit` bytes of it. Throws a Failure. */
  read(reading: BodyReading): Promise<WireBody>;
  /**
   * Wants nothing of the body: reads so much of it for the sake of the connection, and closes it when more comes.
   * False: more came, and it had not been announced. What comes counts with the governor; nobody waits for it.
   */
  drop(take: TakeBytes, mostBytes?: number): Promise<boolean>;
}

/** Enough to see what a document is (WHATWG MIME Sniffing section 5.2). */
export const headBytes = 1445;

/** Kept before anybody reads. */
const earlyBytes = 64 * 1024;

/** So much of a body that nobody wants is read for the sake of the connection. */
const droppedBytes = 64 * 1024;

/** The governor is asked for so many bytes at once. */
const takenBytes = 8 * 1024;

/** Sites send one or two (103 Early Hints); more is an attack. */
const maxInformational = 20;

/** Fields whose values hold URLs: sites send paths in them as they are in their files, and browsers take those for UTF-8. */
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
 * RFC 9110 section 15: a status has three digits, and those from 100 to 199 announce another answer. 600 to 999 are no
 * standard's, but sites send them (999 against robots): such an answer counts as a server's error, as that section wants it.
 */
const isFinalStatus = (status: number) => Number.isInteger(status) && status >= 200 && status <= 999;

interface Waiting<T> {
  resolve(value: T): void;
  reject(failure: Failure): void;
}

export class Exchange implements SiteAnswer {
  /** Settles when the header is here. Rejects with a Failure. */
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
  /** How much more may come of a body that nobody wants; null when it is wanted. */
  #droppable: number | null = null;
  #answerWaits!: Waiting<SiteAnswer>;
  #bodyWaits: Waiting<WireBody> | null = null;

  constructor(timeouts: Timeouts, startedMs: number) {
    this.#watch = new ExchangeWatch(timeouts, startedMs, (failure) => this.#giveUp(failure));
    this.answer = new Promise((resolve, reject) => {
      this.#answerWaits = { resolve, reject };
    });
  }

  /* ------------------------------------------------------------- the transport tells */

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

  /** False: no more, please, until `resume`. */
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

  /* ---------------------------------------------------------------- the reader takes */

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

  /** Judges what has come; whether more may come now. */
  #goesOn(): boolean {
    const reading = this.#reading;
    if (reading === null) return this.#collector.length < earlyBytes;
    const { length } = this.#collector;
    if (length >= headBytes && !this.#wants(reading)) this.#finish({ unwanted: true });
    else if (length > reading.limit) this.#finish({ truncated: true });
    else if (this.#untaken >= takenBytes) this.#pay(reading, () => this.#goesOn() && this.#flow?.resume());
    return !this.#held;
  }

  /** The site has sent everything. */
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

  /** Counts what has come with the governor; when he wants us to wait, goes on afterwards. */
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

// Gathers a body from the pieces in which it comes. Small pieces are copied together: as views of their own
// they would cost many times their size (a body in one-byte chunks), and keep the socket's buffers alive.

/** Smaller pieces are copied. */
const smallBytes = 2048;

const blockBytes = 16 * 1024;

class PieceCollector {
  #length = 0;
  readonly #pieces: Buffer[] = [];
  /** The block that is being filled, and how much of it holds bytes that are not in `#pieces` yet. */
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

  /** The first `most` bytes of what has come. */
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

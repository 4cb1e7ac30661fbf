/**
 * Speaks HTTP/1.1 over one open connection with undici's strict parser. Conflicting lengths, broken chunks and oversized
 * headers end the connection, while odd-framing.ts first repairs what browsers tolerate. The connection is already checked,
 * pinned and verified, and undici may not open another.
 */
import type net from "node:net";
import { type buildConnector, Client, type Dispatcher } from "undici";
import { Failure } from "../core/failure.ts";
import { type AnswerHeaders, type Exchange, framingFailure } from "./exchange.ts";
import { FramingMender } from "./odd-framing.ts";

/** Larger headers end the request. undici's default is 16 KiB, but some sites set long cookies. */
export const maxHeaderBytes = 32 * 1024;

/** Includes the first line, and the separators between names and values. */
const maxHeadBytes = 2 * maxHeaderBytes;

/** The bytes of head, trailers and chunk extensions that are allowed before any content (`framingFailure`). */
const freeFramingBytes = 2 * maxHeadBytes;

/** The reason phrase has no meaning (RFC 9112 section 4). */
const maxReasonBytes = 4096;

/** Far more than sites send. Each header costs more than its bytes. */
export const maxHeaders = 500;

/** Idle connections close after this time. Polite gaps between requests are usually shorter. */
export const keepAliveMs = 15_000;

/**
 * What a server has sent before it notices that nobody reads: the initial window of ten segments (RFC 6928), or, if the body
 * was held before, a receiving socket's default buffer (Linux: 64 KiB).
 */
const firstWindowBytes = 10 * 1460;

const heldWindowBytes = 64 * 1024;

export class Http1Transport implements Transport {
  readonly http = "1.1";
  readonly #socket: net.Socket;
  readonly #reading: SocketReading;
  readonly #client: Client;
  readonly #unread: (bytes: number) => void;
  #isHandedOver = false;
  #isOver = false;

  /** `unread` receives the approximate number of bytes of an aborted body that nobody reads. */
  constructor(origin: string, socket: net.Socket, unread: (bytes: number) => void = () => {}) {
    this.#socket = socket;
    this.#unread = unread;
    this.#reading = new SocketReading(socket, maxHeadBytes);
    this.#client = new Client(origin, {
      pipelining: 1,
      maxHeaderSize: maxHeaderBytes,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      headersTimeout: 0,
      bodyTimeout: 0,
      // Must be asynchronous, because undici ignores its queue while it connects.
      connect: (_options, callback) => queueMicrotask(() => this.#handOver(callback)),
    });
    this.#client.on("disconnect", () => {
      this.#isOver = true;
    });
  }

  get isOpen(): boolean {
    return !this.#isOver && !this.#socket.destroyed && !this.#reading.isOdd;
  }

  send(request: SiteRequest, exchange: Exchange): void {
    const { path, headers, method = "GET" } = request;
    try {
      const [socket, reading, unread] = [this.#socket, this.#reading, this.#unread];
      const handler = new Http1Exchange({ socket, reading, exchange, unread });
      this.#client.dispatch({ method, path, headers }, handler);
    } catch (error) {
      exchange.failed(error);
    }
  }

  close(): void {
    this.#isOver = true;
    void this.#client.destroy();
    this.#socket.destroy();
  }

  #handOver(callback: buildConnector.Callback): void {
    if (this.#isHandedOver || this.#socket.destroyed) {
      callback(new Failure("connection-lost", "the site closed the connection"), null);
      return;
    }
    this.#isHandedOver = true;
    callback(null, this.#socket);
  }
}

interface ExchangeParts {
  readonly socket: net.Socket;
  readonly reading: SocketReading;
  readonly exchange: Exchange;
  readonly unread: (bytes: number) => void;
}

/** Forwards what undici parses. The parser is never paused. */
class Http1Exchange implements Dispatcher.DispatchHandler {
  readonly #of: ExchangeParts;
  /** The part of the body that is still announced: infinity if its length is unannounced, 0 before and after the body. */
  #restBytes = 0;

  constructor(of: ExchangeParts) {
    this.#of = of;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const { socket, reading, exchange, unread } = this.#of;
    reading.awaitAnswer();
    exchange.asked({
      abort: (failure) => {
        const windowBytes = reading.isHeld ? heldWindowBytes : firstWindowBytes;
        unread(Math.max(0, Math.min(windowBytes, this.#restBytes)));
        controller.abort(failure);
      },
      resume: () => reading.goOn(),
      connectionBytes: () => socket.bytesRead,
    });
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: AnswerHeaders,
    reason = "",
  ): void {
    if (reason.length > maxReasonBytes) throw longReason;
    if (status < 200) {
      this.#of.reading.awaitHead();
      this.#of.exchange.informed();
      return;
    }
    this.#of.reading.headCame();
    const rawHeaders = controller.rawHeaders as Buffer[];
    if (rawHeaders.length > 2 * maxHeaders) throw tooMany;
    const announced = Number(headers["content-length"] ?? Number.POSITIVE_INFINITY);
    this.#restBytes = Number.isNaN(announced) ? 0 : announced;
    this.#of.exchange.answered(status, headers, { reason, rawHeaders });
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.#restBytes -= piece.length;
    this.#of.reading.contentCame(piece.length);
    if (!this.#of.exchange.came(piece)) this.#of.reading.hold();
  }

  /** undici wrongly treats a reset as the end of a body without a length. */
  onResponseEnd(): void {
    this.#restBytes = 0;
    this.#of.reading.release();
    if (this.#of.socket.errored) this.#of.exchange.failed(this.#of.socket.errored);
    else this.#of.exchange.completed();
  }

  /** The parser has assertions that a site can violate (such as by a status of 000). They are the site's fault. */
  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#of.reading.release();
    const isAssertion = (error as { code?: unknown }).code === "ERR_ASSERTION";
    this.#of.exchange.failed(
      isAssertion ? new Failure("bad-response", "not a valid HTTP response", { cause: error }) : error,
    );
  }
}

const longReason = new Failure(
  "headers-too-large",
  `the status has more than ${maxReasonBytes} bytes of words behind it`,
);

const tooMany = new Failure("headers-too-large", `the response has more than ${maxHeaders} headers`);

// Holds back the reading of a socket without pausing undici's parser. A paused parser asserts that the connection neither ends
// nor resets, and a site can do both at any time. While the reading is held, the socket emits nothing: its buffer fills, then
// the kernel's, then the site waits, and the end of the connection follows its last byte.
//
// This class also limits what undici does not count: before a complete head, the first line and empty lines, and afterwards,
// bytes between the content, such as an endless chunk extension.

class SocketReading {
  readonly #socket: net.Socket;
  #held = false;
  /** How many bytes of an incomplete head were passed on. Null if no head is expected. */
  #headBytes: number | null = null;
  /** How many bytes of the current answer were passed on, and how many of them are content. */
  #givenBytes = 0;
  #contentBytes = 0;
  readonly #mender = new FramingMender();

  constructor(socket: net.Socket, maxHeadBytes: number) {
    this.#socket = socket;
    const read = socket.read.bind(socket);
    socket.read = (size?: number) => {
      // Reading a size of 0 reads nothing. Node's streams use it to keep themselves going.
      while (!this.#held || size === 0) {
        const failure = this.#excess(maxHeadBytes);
        if (failure !== null) {
          this.headCame();
          this.#givenBytes = 0;
          socket.destroy(failure);
          return null;
        }
        const piece: Buffer | null = read(size);
        if (piece === null) return null;
        this.#givenBytes += piece.length;
        if (this.#headBytes !== null) this.#headBytes += piece.length;
        const mended = this.#mender.push(piece);
        if (mended.length > 0) return mended;
      }
      return null;
    };
  }

  /** True if the connection must not be used for another exchange. */
  get isOdd(): boolean {
    return this.#mender.isOdd;
  }

  #excess(maxHeadBytes: number): Failure | null {
    if (this.#headBytes !== null && this.#headBytes > maxHeadBytes) {
      return new Failure("headers-too-large", `no whole header within ${maxHeadBytes} bytes`);
    }
    return framingFailure(this.#givenBytes, this.#contentBytes, freeFramingBytes);
  }

  contentCame(bytes: number): void {
    this.#contentBytes += bytes;
  }

  awaitAnswer(): void {
    this.#mender.restart();
    this.awaitHead();
  }

  awaitHead(): void {
    this.#headBytes = 0;
    this.#givenBytes = 0;
    this.#contentBytes = 0;
  }

  headCame(): void {
    this.#headBytes = null;
  }

  get isHeld(): boolean {
    return this.#held;
  }

  hold(): void {
    this.#held = true;
  }

  /** Must be called from within the parser, which continues reading by itself. */
  release(): void {
    this.#held = false;
  }

  /** Must be called from outside the parser. It works asynchronously, because the parser may be running. */
  goOn(): void {
    if (!this.#held) return;
    this.#held = false;
    process.nextTick(() => this.#socket.emit("readable"));
  }
}

// A transport is one open connection to one origin, with its HTTP version.

export interface SiteRequest {
  /** Path and query, as in the URL. */
  readonly path: string;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly method?: "HEAD";
}

/** Carries one exchange at a time. */
export interface Transport {
  readonly http: "1.1" | "2";
  readonly isOpen: boolean;
  /** Reports all outcomes to the exchange. Never throws. */
  send(request: SiteRequest, exchange: Exchange): void;
  close(): void;
}

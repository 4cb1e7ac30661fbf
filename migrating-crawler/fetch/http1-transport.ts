/**
 * HTTP/1.1 over one open connection, parsed by undici (strict: conflicting lengths, broken chunks and
 * headers above the limit end the connection; what browsers read nevertheless is mended before, by odd-framing.ts). The connection is ours:
 * checked, pinned, verified; undici
 * may not open another.
 */
import type net from "node:net";
import { type buildConnector, Client, type Dispatcher } from "undici";
import { Failure } from "../core/failure.ts";
import type { AnswerHeaders, Exchange } from "./exchange.ts";
import { framingFailure } from "./exchange-watch.ts";
import { FramingMender } from "./odd-framing.ts";

/** Larger response headers end the request (undici's own default is 16 KiB; some sites set long cookies). */
export const maxHeaderBytes = 32 * 1024;

/** The same with the first line, and with what stands between names and values. */
const maxHeadBytes = 2 * maxHeaderBytes;

/** An answer's head, its trailers, and the extensions of its chunks, before its content counts (`framingFailure`). */
const freeFramingBytes = 2 * maxHeadBytes;

/** The words behind the status, which mean nothing (RFC 9112 section 4). */
const maxReasonBytes = 4096;

/** Far above what sites send; each costs more than its bytes. */
export const maxHeaders = 500;

/** An idle connection is closed after this; polite gaps between requests are usually shorter. */
export const keepAliveMs = 15_000;

/**
 * What a server has sent by the time it hears that nobody reads: ten segments before any answer to them (RFC 6928),
 * or, of a body that was held back, what a receiving socket takes by default (Linux: 64 KiB).
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

  /** `unread`: told of about how many bytes of a body that is broken off nobody reads. */
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
      // Never at once: undici does not look at its queue while it connects.
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
      const handler = new Http1Exchange(this.#socket, this.#reading, exchange, this.#unread);
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

  /** The connection, once. */
  #handOver(callback: buildConnector.Callback): void {
    if (this.#isHandedOver || this.#socket.destroyed) {
      callback(new Failure("connection-lost", "the site closed the connection"), null);
      return;
    }
    this.#isHandedOver = true;
    callback(null, this.#socket);
  }
}

/** Passes on what undici parses. The parser is never paused. */
class Http1Exchange implements Dispatcher.DispatchHandler {
  readonly #socket: net.Socket;
  readonly #reading: SocketReading;
  readonly #exchange: Exchange;
  readonly #unread: (bytes: number) => void;
  /** Of the body, as it was announced; infinite when it was not, 0 before and after it. */
  #restBytes = 0;

  constructor(
    socket: net.Socket,
    reading: SocketReading,
    exchange: Exchange,
    unread: (bytes: number) => void,
  ) {
    this.#unread = unread;
    this.#socket = socket;
    this.#reading = reading;
    this.#exchange = exchange;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const socket = this.#socket;
    this.#reading.awaitAnswer();
    this.#exchange.asked({
      abort: (failure) => {
        const windowBytes = this.#reading.isHeld ? heldWindowBytes : firstWindowBytes;
        this.#unread(Math.max(0, Math.min(windowBytes, this.#restBytes)));
        controller.abort(failure);
      },
      resume: () => this.#reading.goOn(),
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
      this.#reading.awaitHead();
      this.#exchange.informed();
      return;
    }
    this.#reading.headCame();
    const rawHeaders = controller.rawHeaders as Buffer[];
    if (rawHeaders.length > 2 * maxHeaders) throw tooMany;
    const announced = Number(headers["content-length"] ?? Number.POSITIVE_INFINITY);
    this.#restBytes = Number.isNaN(announced) ? 0 : announced;
    this.#exchange.answered(status, headers, { reason, rawHeaders });
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.#restBytes -= piece.length;
    this.#reading.contentCame(piece.length);
    if (!this.#exchange.came(piece)) this.#reading.hold();
  }

  /** undici takes a reset for the end of a body without a length; it is none. */
  onResponseEnd(): void {
    this.#restBytes = 0;
    this.#reading.release();
    if (this.#socket.errored) this.#exchange.failed(this.#socket.errored);
    else this.#exchange.completed();
  }

  /** What the parser asserts and a site breaks (a status of 000, say) is the site's fault. */
  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#reading.release();
    const isAssertion = (error as { code?: unknown }).code === "ERR_ASSERTION";
    this.#exchange.failed(
      isAssertion ? new Failure("bad-response", "not a valid HTTP response", { cause: error }) : error,
    );
  }
}

const longReason = new Failure(
  "headers-too-large",
  `the status has more than ${maxReasonBytes} bytes of words behind it`,
);

const tooMany = new Failure("headers-too-large", `the response has more than ${maxHeaders} headers`);

// Holds the reading of a socket whose bytes undici parses, without pausing undici's parser: a paused parser asserts
// that neither the end of the connection nor its reset reaches it, and a site can send either at any time. Held,
// the socket gives out nothing: its buffer fills, then the kernel's, then the site has to wait, and the end of the
// connection comes after the last of its bytes.
//
// It also bounds, piece by piece, what undici does not count. Before a head is whole: the first line, and empty lines
// before it. After that: what stands between the content's bytes, such as a chunk's extension without an end.

class SocketReading {
  readonly #socket: net.Socket;
  #held = false;
  /** Given out of a head that is not whole yet; null: none is awaited. */
  #headBytes: number | null = null;
  /** Of the answer at hand, given out, and the content in it. */
  #givenBytes = 0;
  #contentBytes = 0;
  readonly #mender = new FramingMender();

  constructor(socket: net.Socket, maxHeadBytes: number) {
    this.#socket = socket;
    const read = socket.read.bind(socket);
    socket.read = (size?: number) => {
      // A size of 0 takes nothing: it is how Node's streams keep themselves going.
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

  /** Not to be used for another exchange. */
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

  /** From now on what comes is a head, to its end: until `headCame`. */
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

  /** From within the parser, which reads on by itself. */
  release(): void {
    this.#held = false;
  }

  /** From outside. Never at once: the parser may be at work. */
  goOn(): void {
    if (!this.#held) return;
    this.#held = false;
    process.nextTick(() => this.#socket.emit("readable"));
  }
}

// One open connection to one origin, and the HTTP version that it speaks.

export interface SiteRequest {
  /** Path and query, as in the URL. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Left out: GET. */
  readonly method?: "HEAD";
}

/** Carries one exchange after the other. */
export interface Transport {
  readonly http: "1.1" | "2";
  /** It may carry another exchange. */
  readonly isOpen: boolean;
  /** Sends the request and tells the exchange what becomes of it; never throws. */
  send(request: SiteRequest, exchange: Exchange): void;
  close(): void;
}

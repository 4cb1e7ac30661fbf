/**
 * Wraps one WebSocket to the coordinator from handshake to end. It compresses, validates and times messages, while
 * coordinator-link.ts handles reconnects and credits. It ends exactly once, with a reason. The coordinator sends little, so
 * node:zlib inflates it and partners need no native code.
 */
import type { IncomingMessage } from "node:http";
import type net from "node:net";
import { WebSocket } from "ws";
import { ProtocolError } from "#core/errors";
import { retryAfterSeconds } from "#core/foreign-dates";
import { decodeCoordinatorMessage, encodeMessage, maxMessageBytes } from "#protocol/codec";
import type { CoordinatorMessage } from "#protocol/coordinator-messages";
import { MessageDeflater, NodeInflater } from "#protocol/deflate";
import { plainWords } from "#protocol/fields";
import {
  type ChallengedConnection,
  challengeHeader,
  challenge as challengeSchema,
  sealText,
  tlsBindingOf,
} from "#protocol/identity";
import type { CrawlerHello, CrawlerMessage, Goodbye } from "#protocol/messages";
import { FrameWriter, joinFrame } from "#protocol/packed/message-frames";
import type { PackedMessage } from "#protocol/packed/packed-message";
import { ResultDigest, sealAfter } from "#protocol/result";
import { type CoordinatorRoute, connectionTo } from "../net/coordinator-socket.ts";

export interface ConnectionSettings {
  readonly url: string;
  readonly hello: (connection: ChallengedConnection) => CrawlerHello;
  readonly route: CoordinatorRoute;
  /** Signs results if the hello has an identity. */
  readonly sign?: ((text: string) => string) | undefined;
  /** Maximum time from the start to the coordinator's first message. */
  readonly welcomeTimeoutMs: number;
  readonly onMessage: (message: CoordinatorMessage) => void;
  /**
   * Is called once, never from the constructor. `retryAfterMs`: the coordinator sent the crawler away for this long.
   * `fellSilent`: the coordinator stopped answering.
   */
  readonly onEnd: (reason: string, retryAfterMs: number | null, fellSilent: boolean) => void;
}

/** The content of one frame. A result's text is already UTF-8, because it is also signed. */
interface OutgoingParts {
  readonly numbers: Buffer;
  readonly text: string | Buffer;
}

/** If more is unsent, the coordinator has stopped reading. */
const maxQueuedBytes = 2 * maxMessageBytes;

/** Limits how much is read of an HTTP answer that came instead of a connection. */
const mostAnswerWords = 300;

const lastLookMs = 250;

const closeTimeoutMs = 5000;

export class LinkConnection {
  readonly #socket: WebSocket;
  readonly #settings: ConnectionSettings;
  readonly #deflater = new MessageDeflater();
  readonly #inflater = new NodeInflater();
  #silence: NodeJS.Timeout;
  #silenceMs: number;
  #stream: net.Socket | null = null;
  /** Bytes received so far, since part of a long message on a slow line is also a sign of life. */
  #bytesHeard = 0;
  #frames: FrameWriter | null = null;
  readonly #welcomed: Promise<void>;
  #onWelcomed: () => void = () => {};
  #deflatingBytes = 0;
  #sentBytes = 0;
  #ended = false;
  #challenged: ChallengedConnection | null = null;
  #hello: CrawlerHello | null = null;
  #sealer: ResultSealer | null = null;

  constructor(settings: ConnectionSettings) {
    this.#settings = settings;
    this.#welcomed = new Promise((resolve) => {
      this.#onWelcomed = resolve;
    });
    this.#silenceMs = Math.min(settings.welcomeTimeoutMs, settings.route.timeoutMs);
    this.#silence = setTimeout(() => this.#onSilence(), this.#silenceMs);
    this.#socket = new WebSocket(settings.url, {
      perMessageDeflate: false,
      maxPayload: maxMessageBytes,
      handshakeTimeout: settings.welcomeTimeoutMs,
      // ws passes this to http.request, which accepts an asynchronous socket, although its types only know net.connect.
      createConnection: connectionTo(new URL(settings.url), settings.route) as unknown as typeof net.connect,
    });
    this.#listen();
  }

  get queuedBytes(): number {
    return this.#deflatingBytes + this.#socket.bufferedAmount;
  }

  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** After the welcome, messages are packed and results sealed. */
  welcomed(): void {
    this.#frames = new FrameWriter();
    this.#sealer = this.#makeSealer();
    this.#onWelcomed();
  }

  /** Throws ProtocolError if the message exceeds the coordinator's limit. */
  send(message: CrawlerMessage): void {
    if (this.#ended) return;
    this.#queue(this.#partsOf(message));
  }

  sendResult(sequence: number, packed: PackedMessage): void {
    if (this.#ended || this.#frames === null) return;
    const { numbers, text } = this.#frames.result(sequence, packed);
    const parts = { numbers, text: Buffer.from(text) };
    this.#queue(parts);
    this.#sealer?.add(sequence, parts);
  }

  seal(): void {
    this.#sealer?.seal();
  }

  /** From now on the coordinator's messages or pings must arrive at least this often. */
  expectEvery(silenceMs: number): void {
    this.#silenceMs = silenceMs;
    this.#heard();
  }

  /**
   * Says goodbye if the welcome has come, because the coordinator reads only a hello before it. The coordinator processes what
   * was sent and closes, and its acknowledgements still arrive. Resolves when the socket is closed, within five seconds.
   */
  async close(goodbye: Goodbye): Promise<void> {
    const reason = goodbye.reason.slice(0, 500);
    if (this.#ended || this.#socket.readyState !== WebSocket.OPEN) {
      this.end(reason);
      return;
    }
    const closed = new Promise<void>((resolve) => this.#socket.once("close", () => resolve()));
    const deadline = setTimeout(() => this.end(reason), closeTimeoutMs);
    await Promise.race([this.#welcomed, closed]);
    this.seal();
    await this.#transmit(this.#partsOf({ type: "crawler:goodbye", ...goodbye, reason }));
    await closed;
    clearTimeout(deadline);
    this.end(reason);
  }

  /** Ends at once, without a goodbye. */
  end(reason: string, retryAfterMs: number | null = null, fellSilent = false): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#silence);
    this.#sealer?.stop();
    this.#socket.terminate();
    queueMicrotask(() => this.#settings.onEnd(reason, retryAfterMs, fellSilent));
  }

  #listen(): void {
    this.#socket.on("upgrade", ({ headers, socket }) => {
      this.#stream = socket;
      this.expectEvery(this.#settings.welcomeTimeoutMs);
      const { data: challenge } = challengeSchema.safeParse(headers[challengeHeader]);
      this.#challenged = challenge === undefined ? null : { challenge, binding: tlsBindingOf(socket) };
    });
    this.#socket.on("unexpected-response", (_request, answer) => this.#onTurnedAway(answer));
    this.#socket.on("open", () => this.#sayHello());
    this.#socket.on("ping", () => this.#heard());
    this.#socket.on("message", (data, isBinary) => this.#take(data as Buffer, isBinary));
    this.#socket.on("error", (error) => this.end(error.message || String(error)));
    this.#socket.on("close", (code, reason) => this.end(closeReason(code, reason)));
  }

  /** Handles an HTTP answer that came instead of an upgrade, from the coordinator or something in front of it. */
  #onTurnedAway(answer: IncomingMessage): void {
    const seconds = retryAfterSeconds(answer.headers["retry-after"], new Date());
    let words = "";
    const end = () => {
      const why = words === "" ? "" : `: ${words.slice(0, mostAnswerWords)}`;
      this.end(
        `the connection was refused (HTTP ${answer.statusCode})${why}`,
        seconds === null ? null : seconds * 1000,
      );
    };
    answer.setEncoding("utf8").on("data", (text: string) => {
      words += text;
      if (words.length > mostAnswerWords) end();
    });
    answer.once("end", end).once("error", end);
  }

  #sayHello(): void {
    try {
      if (this.#challenged === null)
        throw new ProtocolError("this coordinator is too old: it challenges nobody");
      this.#hello = this.#settings.hello(this.#challenged);
      this.send(this.#hello);
    } catch (error) {
      this.end(`the hello cannot be said: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  #take(data: Buffer, isBinary: boolean): void {
    if (this.#ended) return;
    this.#heard();
    try {
      if (!isBinary) throw new ProtocolError("it is a text frame");
      this.#settings.onMessage(decodeCoordinatorMessage(this.#inflater.inflate(data, maxMessageBytes)));
    } catch (error) {
      this.end(`on a message of the coordinator: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  #makeSealer(): ResultSealer | null {
    const { sign } = this.#settings;
    if (sign === undefined || this.#hello?.identity === undefined) return null;
    const { spoolId } = this.#hello;
    return new ResultSealer({ sign, spoolId, send: (seal) => this.send(seal) });
  }

  #partsOf(message: CrawlerMessage): OutgoingParts {
    return this.#frames?.message(message) ?? { numbers: Buffer.alloc(0), text: encodeMessage(message) };
  }

  #queue(parts: OutgoingParts): void {
    this.#deflatingBytes += parts.text.length;
    if (this.queuedBytes > maxQueuedBytes) this.end("the coordinator does not read any more");
    else void this.#transmit(parts);
  }

  async #transmit({ numbers, text }: OutgoingParts): Promise<void> {
    const isPacked = this.#frames !== null;
    try {
      const deflated = await this.#deflater.deflate(text);
      const frame = isPacked ? joinFrame(numbers, deflated) : deflated;
      this.#deflatingBytes -= text.length;
      if (this.#socket.readyState !== WebSocket.OPEN) return;
      this.#sentBytes += frame.length;
      this.#socket.send(frame, { binary: true });
    } catch {
      // The connection has ended. Whatever matters is in the spool.
    }
  }

  #heard(): void {
    if (this.#ended) return;
    clearTimeout(this.#silence);
    this.#bytesHeard = this.#stream?.bytesRead ?? 0;
    this.#silence = setTimeout(() => this.#onSilence(), this.#silenceMs);
  }

  /** If this process itself stalled, pending input is read first. */
  #onSilence(): void {
    this.#silence = setTimeout(() => this.#onLastSilence(), lastLookMs);
  }

  #onLastSilence(): void {
    const isHeard = this.#stream !== null && this.#stream.bytesRead !== this.#bytesHeard;
    if (isHeard) this.#heard();
    else this.end(`nothing heard from the coordinator for ${this.#silenceMs / 1000} s`, null, true);
  }
}

function closeReason(code: number, reason: Buffer): string {
  const words = plainWords(reason.toString("utf8"));
  return `the connection was closed (${code}${words ? `: ${words}` : ""})`;
}

// Signs the results that are sent, so that the coordinator can tell them from anything else sent with this crawler's key. One
// seal covers all results since the last one. Results come in bursts, so a seal waits briefly for more of them. The
// coordinator accepts nothing unsealed.

interface SealerSettings {
  readonly sign: (text: string) => string;
  readonly spoolId: string;
  readonly send: (seal: Extract<CrawlerMessage, { type: "crawler:seal" }>) => void;
}

interface SealedParts {
  readonly numbers: Buffer;
  readonly text: Buffer;
}

export class ResultSealer {
  readonly #settings: SealerSettings;
  readonly #digest = new ResultDigest();
  #first: number | null = null;
  #last = 0;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(settings: SealerSettings) {
    this.#settings = settings;
  }

  /** Must be called right after the result was handed to the connection. */
  add(sequence: number, parts: SealedParts): void {
    this.#digest.add(parts);
    this.#first ??= sequence;
    this.#last = sequence;
    this.#bytes += parts.numbers.length + parts.text.length;
    const isFull = sequence - this.#first + 1 >= sealAfter.results || this.#bytes >= sealAfter.bytes;
    if (isFull) this.seal();
    else this.#timer ??= setTimeout(() => this.seal(), sealAfter.ms).unref();
  }

  seal(): void {
    this.stop();
    if (this.#first === null) return;
    const [first, last] = [this.#first, this.#last];
    this.#first = null;
    this.#bytes = 0;
    const { spoolId, sign, send } = this.#settings;
    const signature = sign(sealText({ spoolId, first, last, digest: this.#digest.take() }));
    send({ type: "crawler:seal", first, last, signature });
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

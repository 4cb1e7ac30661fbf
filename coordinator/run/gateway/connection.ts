/**
 * One crawler's WebSocket as an ordered stream of inflated messages. It limits the size of a message, the bytes per
 * second (beyond which it pauses reading) and the bytes queued for sending. A fault ends only this connection. It
 * knows nothing about hellos, sequences or results.
 */

import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { WebSocket } from "ws";
import type { LoopTurns } from "#core/clock";
import { ProtocolError } from "#core/errors";
import { encodeMessage, maxHelloBytes, maxMessageBytes } from "#protocol/codec";
import type { CoordinatorMessage, Refusal } from "#protocol/coordinator-messages";
import { briefly, MessageDeflater, type MessageInflater, NodeInflater } from "#protocol/deflate";
import { type ReceivedParts, splitFrame } from "#protocol/packed/message-frames";
import type { InflaterPool } from "#protocol/zlib-sync-inflater";
import { timerMs } from "../../core/timer-ms.ts";
import { type SessionEnd, type SessionEndCode, sessionEnd } from "../../place/crawlers/sessions.ts";
import type { MessageSize } from "./inbox.ts";
import { ByteBudget } from "./liveness.ts";

interface ConnectionSettings {
  readonly socket: WebSocket;
  readonly stream: Duplex;
  /** Beyond this rate, reading from the crawler pauses. */
  readonly inflatedBytesPerSecond: number;
  /** Takes turns to read from peers that are not authenticated. */
  readonly strangers: LoopTurns;
  readonly handlers: ConnectionHandlers;
}

interface ConnectionHandlers {
  /** The message of an unauthenticated peer is complete and will be read in its turn. */
  onArrived(): void;
  /** May throw a ProtocolError, which refuses the crawler. `numbers` is empty before the welcome. */
  onMessage(message: ReceivedParts, size: MessageSize): void;
  /** The coordinator's own code failed on a message. The crawler is refused. */
  onFault(error: unknown): void;
  /** Called once. From now on nothing arrives and nothing can be sent. */
  onEnd(end: SessionEnd, refusal: Refusal | null): void;
}

/** If more bytes are queued, the crawler does not read. */
const maxQueuedBytes = 2 * maxMessageBytes;
/** Minimum size that a message counts as, which allows some 4,000 messages per second and crawler. */
const leastMessageBytes = 8192;
/** Maximum pings and pongs per second. Our ping makes each heartbeat a pong, and we must answer every ping. */
const controlFramesPerSecond = 50;
/** How long a crawler has to read a refusal. */
const closeTimeoutMs = 2000;
const none = Buffer.alloc(0);
/** RFC 6455 section 7.4.1: normal closure and policy violation. */
const normalCode = 1000;
const refusedCode = 1008;

export class CrawlerConnection {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  readonly #handlers: ConnectionHandlers;
  readonly #deflater = new MessageDeflater(briefly);
  readonly #strangers: LoopTurns;
  readonly #budget: ByteBudget;
  readonly #controlFrames = new ByteBudget(controlFramesPerSecond, () => performance.now());
  #inflater: MessageInflater = new NodeInflater();
  #frames: Buffer[] = [];
  #accepted = false;
  #held = false;
  #ended = false;
  #draining = false;
  #payDay: NodeJS.Timeout | undefined;
  #deflatingBytes = 0;
  #lastTransmission: Promise<void> = Promise.resolve();

  constructor({ socket, stream, inflatedBytesPerSecond, strangers, handlers }: ConnectionSettings) {
    this.#socket = socket;
    this.#stream = stream;
    this.#handlers = handlers;
    this.#strangers = strangers;
    this.#budget = new ByteBudget(inflatedBytesPerSecond, () => performance.now());
    socket.on("message", (data, isBinary) => this.#receive(data as Buffer, isBinary));
    socket.on("ping", () => this.#countControlFrame());
    socket.on("pong", () => this.#countControlFrame());
    socket.on("error", (error) => this.end("lost", error.message));
    socket.on("close", (code, words) => this.end("lost", closeReason(code, words)));
    this.#boundStranger(stream);
  }

  /** While true, nothing is read, so that TCP makes the crawler wait. */
  get isHeld(): boolean {
    return this.#held || this.#payDay !== undefined;
  }

  /** All bytes received, including pongs and incomplete messages. */
  get bytesRead(): number {
    return (this.#stream as Duplex & { readonly bytesRead?: number }).bytesRead ?? 0;
  }

  /** Called when the peer is authenticated. Limits of messages replace those of a hello, and its messages are compressed. */
  accept(pool: InflaterPool): void {
    this.#accepted = true;
    this.#inflater = pool.take(this.#inflater);
  }

  /** Pauses messages, but keeps watching the connection, so that its end is noticed while the hello is processed. */
  hold(): void {
    this.#held = true;
    if (this.#accepted) this.#socket.pause();
  }

  resume(): void {
    if (!this.#held) return;
    this.#held = false;
    this.#drain();
  }

  /** Throws a ProtocolError if the message is longer than crawlers accept. */
  send(message: CoordinatorMessage): void {
    const text = encodeMessage(message);
    if (this.#ended) return;
    if (this.#deflatingBytes + this.#socket.bufferedAmount > maxQueuedBytes) this.end("does-not-read");
    else this.#transmit(text);
  }

  /** Counts bytes that handling a message needed in addition to its inflated bytes. */
  charge(bytes: number): void {
    this.#budget.spend(bytes);
  }

  ping(): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
  }

  /**
   * Resolves to whether the peer answers a ping in time. Null if this is unknown, because earlier data was still
   * being processed and nothing was read.
   */
  async answersPing(withinMs: number): Promise<boolean | null> {
    if (this.#ended || this.#socket.readyState !== WebSocket.OPEN) return false;
    const wasHeld = this.isHeld;
    const asked = randomBytes(8);
    return await new Promise((resolve) => {
      const answer = (answers: boolean | null) => {
        clearTimeout(deadline);
        this.#socket.off("pong", onPong).off("close", onClose);
        resolve(answers);
      };
      const onPong = (data: Buffer) => data.equals(asked) && answer(true);
      const onClose = () => answer(false);
      const deadline = setTimeout(() => answer(wasHeld && this.isHeld ? null : false), withinMs);
      this.#socket.on("pong", onPong).once("close", onClose);
      this.#socket.ping(asked);
    });
  }

  refuse(refusal: Refusal): void {
    if (this.#ended) return;
    const reason = refusal.reason.slice(0, 500);
    this.#transmit(encodeMessage({ type: "coordinator:refuse", ...refusal, reason }));
    this.#finish(sessionEnd(refusal.code, `refused (${refusal.code}): ${reason}`), refusal);
    this.#closeWhenSent(refusedCode, refusal.code);
  }

  leave(end: SessionEnd): void {
    if (this.#ended) return;
    this.#finish(end, null);
    this.#closeWhenSent(normalCode, "");
  }

  end(code: SessionEndCode, said?: string): void {
    this.#socket.terminate();
    this.#finish(sessionEnd(code, said), null);
  }

  #finish(end: SessionEnd, refusal: Refusal | null): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#payDay);
    this.#frames = [];
    this.#inflater.release();
    this.#handlers.onEnd(end, refusal);
  }

  #closeWhenSent(code: number, words: string): void {
    const deadline = setTimeout(() => this.#socket.terminate(), closeTimeoutMs);
    this.#socket.once("close", () => clearTimeout(deadline));
    void this.#lastTransmission.then(() => {
      this.#socket.close(code, words);
      this.#socket.resume();
    });
  }

  #countControlFrame(): void {
    this.#controlFrames.spend(1);
    if (this.#ended || this.#controlFrames.waitMs() === 0) return;
    const reason = `more than ${controlFramesPerSecond} pings and pongs in a second`;
    this.refuse({ code: "too-much", reason, retry: true });
  }

  /** The ws library keeps an incomplete frame in memory, which unauthenticated peers must not exploit. */
  #boundStranger(stream: Duplex): void {
    let bytes = 0;
    const count = (chunk: Buffer) => {
      bytes += chunk.length;
      if (this.#accepted) stream.off("data", count);
      else if (bytes > 2 * maxHelloBytes) this.end("lost", `${bytes} bytes before a hello`);
    };
    stream.on("data", count);
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (this.#ended) return;
    if (isBinary) this.#frames.push(data);
    else this.#refuseMessage(new ProtocolError("a text frame; messages are binary"));
    if (this.#accepted) {
      this.#drain();
      return;
    }
    this.#handlers.onArrived();
    this.#strangers.take(() => this.#drain());
  }

  #drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    while (this.#frames.length > 0 && !this.#ended && this.#mayRead()) this.#take(this.#frames.shift());
    this.#draining = false;
    if (this.#ended) return;
    const isListening = !this.isHeld || (!this.#accepted && this.#frames.length === 0);
    if (isListening) this.#socket.resume();
    else this.#socket.pause();
  }

  #mayRead(): boolean {
    if (this.isHeld) return false;
    const waitMs = this.#budget.waitMs();
    if (waitMs === 0) return true;
    this.#payDay = setTimeout(() => {
      this.#payDay = undefined;
      this.#drain();
    }, timerMs(waitMs));
    return false;
  }

  #take(frame: Buffer | undefined): void {
    if (!frame) return;
    try {
      const { numbers, deflated } = this.#accepted ? splitFrame(frame) : { numbers: none, deflated: frame };
      const limit = this.#accepted ? maxMessageBytes : maxHelloBytes;
      const text = this.#inflater.inflate(deflated, limit);
      const inflatedBytes = text.length + numbers.length;
      this.#budget.spend(Math.max(inflatedBytes, leastMessageBytes));
      this.#handlers.onMessage({ numbers, text }, { wireBytes: frame.length, inflatedBytes });
    } catch (error) {
      this.#refuseMessage(error);
    }
  }

  #refuseMessage(error: unknown): void {
    if (error instanceof ProtocolError) {
      this.refuse({ code: "bad-message", reason: error.message, retry: true });
    } else {
      this.#handlers.onFault(error);
      this.refuse({ code: "internal-error", reason: "the coordinator failed on a message", retry: true });
    }
  }

  #transmit(text: string): void {
    this.#deflatingBytes += text.length;
    this.#lastTransmission = this.#deflateAndSend(text);
  }

  async #deflateAndSend(text: string): Promise<void> {
    try {
      const frame = await this.#deflater.deflate(text);
      if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(frame, { binary: true });
    } catch {}
    this.#deflatingBytes -= text.length;
  }
}

function closeReason(code: number, words: Buffer): string {
  const text = words.toString("utf8");
  return `the connection was closed (${code}${text ? `: ${text}` : ""})`;
}

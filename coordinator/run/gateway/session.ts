/**
 * One crawler's session:
 *
 * awaiting-hello → checking (version, key, arrival) → open → closed
 *
 * A refusal, a loss or a goodbye closes it from any state. While open, it enforces the crawler's credits and the
 * order of its results, acknowledges commits, and watches heartbeats.
 */
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { LoopTurns } from "#core/clock";
import { ProtocolError } from "#core/errors";
import { asCrawlerId, type CrawlerId } from "#core/ids";
import { decodeHello, decodePackedMessage } from "#protocol/codec";
import {
  type CoordinatorMessage,
  type CoordinatorWelcome,
  inVersion,
  isKnownTo,
  type Refusal,
} from "#protocol/coordinator-messages";
import type { CrawlerHello, CrawlerMessage, ProbeOutcome } from "#protocol/messages";
import { FrameReader, type ReceivedParts } from "#protocol/packed/message-frames";
import { badResultReason } from "#protocol/result";
import type { InflaterPool } from "#protocol/zlib-sync-inflater";
import { type SessionEnd, sessionEnd } from "../../place/crawlers/sessions.ts";
import { CrawlerConnection } from "./connection.ts";
import {
  type BatchedResult,
  type CrawlerReport,
  type MessageSize,
  type OtherMessage,
  referredBytes,
  SealCheck,
  type SealMessage,
  SessionInbox,
} from "./inbox.ts";
import { HeartbeatWatch, mostPingMs } from "./liveness.ts";

interface SessionSettings {
  readonly remoteAddress: string;
  /** 32 random bytes in base64url. They are sent with the upgrade, and the hello signs them. */
  readonly challenge: string;
  readonly tlsBinding: string | null;
  readonly helloTimeoutMs: number;
  readonly batchResults: number;
  readonly lingerMs: number;
  readonly inflatedBytesPerSecond: number;
  readonly pool: InflaterPool;
  /** Takes turns to handle strangers' hellos. */
  readonly strangers: LoopTurns;
}

export interface SessionHandlers {
  onHello(session: CrawlerSession, hello: CrawlerHello, version: number): void;
  /* Called in an open session, one at a time: */
  onResults(crawlerId: CrawlerId, spoolId: string, results: readonly BatchedResult[]): Promise<void>;
  onMessage(crawlerId: CrawlerId, message: CrawlerReport, size: MessageSize): Promise<void>;
  /* Called at any time: */
  onProbeReport(crawlerId: CrawlerId, requestId: number, outcome: ProbeOutcome): void;
  onFault(session: CrawlerSession, error: unknown): void;
  onEnd(session: CrawlerSession, end: SessionEnd, refusal: Refusal | null): void;
}

/** Maximum per crawler. A well-behaved one sends two. */
const requestsForWorkPerSecond = 50;

/** Maximum per crawler, because a few bytes can refer to much data, which no longer counts when a failure replaces the result. */
const badResultsPerSecond = 50;

export class CrawlerSession {
  readonly remoteAddress: string;
  readonly challenge: string;
  readonly tlsBinding: string | null;
  readonly connection: CrawlerConnection;
  readonly openedAt = new Date();
  readonly #settings: SessionSettings;
  readonly #handlers: SessionHandlers;
  readonly #inbox: SessionInbox;
  readonly #helloDeadline: NodeJS.Timeout;
  #waiting: NodeJS.Timeout | undefined;
  #state: "awaiting-hello" | "checking" | "open" | "closed" = "awaiting-hello";
  #hello: CrawlerHello | null = null;
  #crawlerId: CrawlerId | null = null;
  #version = 0;
  #watch: HeartbeatWatch | undefined;
  readonly #frames = new FrameReader();
  /** Null if this crawler has no key to sign with. */
  #sealCheck: SealCheck | null = null;
  #hasUnread = false;
  #leavesForGood = false;
  #mostCredits = 0;
  #lastSequence: number | null = null;
  #unacknowledged = 0;

  constructor(socket: WebSocket, stream: Duplex, settings: SessionSettings, handlers: SessionHandlers) {
    this.remoteAddress = settings.remoteAddress;
    this.challenge = settings.challenge;
    this.tlsBinding = settings.tlsBinding;
    this.#settings = settings;
    this.#handlers = handlers;
    this.#inbox = this.#makeInbox();
    this.#helloDeadline = setTimeout(() => this.#onNoHello(), settings.helloTimeoutMs);
    this.connection = new CrawlerConnection({
      socket,
      stream,
      inflatedBytesPerSecond: settings.inflatedBytesPerSecond,
      strangers: settings.strangers,
      handlers: {
        onArrived: () => this.#onArrived(),
        onMessage: (message, size) => this.#receive(message, size),
        onFault: (error) => handlers.onFault(this, error),
        onEnd: (end, refusal) => this.#onEnd(end, refusal),
      },
    });
  }

  get state(): "awaiting-hello" | "checking" | "open" | "closed" {
    return this.#state;
  }
  get crawlerId(): CrawlerId | null {
    return this.#crawlerId;
  }
  /** Whether input arrived that has yet to be read. */
  get hasUnread(): boolean {
    return this.#hasUnread;
  }
  get hello(): CrawlerHello | null {
    return this.#hello;
  }
  get leavesForGood(): boolean {
    return this.#leavesForGood;
  }
  get waitingMessages(): number {
    return this.#inbox.length;
  }

  /** From now on only results signed with this key count. Called before the welcome. */
  requireSeals(publicKey: string): void {
    if (this.#hello) this.#sealCheck = new SealCheck(publicKey, this.#hello.spoolId);
  }

  /** Sends the crawler its welcome, and starts its heartbeats and pings. */
  welcome(
    welcome: CoordinatorWelcome,
    times: { readonly heartbeatMs: number; readonly pingMs: number },
  ): void {
    if (this.#state !== "checking") return;
    this.#state = "open";
    clearInterval(this.#waiting);
    this.#crawlerId = asCrawlerId(welcome.crawlerId);
    this.#mostCredits = welcome.resultCredits;
    this.connection.accept(this.#settings.pool);
    this.connection.send(welcome);
    this.connection.resume();
    this.#watch = new HeartbeatWatch({
      ...times,
      bytesRead: () => this.connection.bytesRead,
      isHeld: () => this.connection.isHeld,
      onPing: () => this.connection.ping(),
      onVanished: () => this.connection.end("vanished"),
    });
  }

  /**
   * Returns false if the session is not open or its crawler is too old for this message. Throws a ProtocolError if
   * the message is too long.
   */
  send(message: CoordinatorMessage): boolean {
    if (this.#state !== "open" || !isKnownTo(this.#version, message)) return false;
    if (message.type === "coordinator:pace") {
      // A lower limit binds a crawler only from when it arrives there, so the highest limit so far counts.
      this.#mostCredits = Math.max(this.#mostCredits, message.resultCredits);
    }
    this.connection.send(message);
    return true;
  }

  refuse(refusal: Refusal): void {
    this.connection.refuse(inVersion(this.#version, refusal));
  }

  /** Resolves when no handler of this session runs any more. */
  settled(): Promise<void> {
    return this.#inbox.stop();
  }

  #makeInbox(): SessionInbox {
    return new SessionInbox({
      batchResults: this.#settings.batchResults,
      lingerMs: this.#settings.lingerMs,
      deliverResults: (results) => this.#deliverResults(results),
      deliver: (message, size) => this.#deliver(message, size),
      onRoom: () => this.connection.resume(),
      onFault: (error) => this.#onInboxFault(error),
    });
  }

  #receive(received: ReceivedParts, size: MessageSize): void {
    if (this.#state === "awaiting-hello") this.#takeHello(received.text);
    else if (this.#state !== "open") throw new ProtocolError("a message before the welcome");
    else this.#take(decodePackedMessage(received, this.#frames), size, received);
  }

  /** The hello has arrived, so its deadline no longer applies. Delays from here on are the coordinator's own. */
  #onArrived(): void {
    clearTimeout(this.#helloDeadline);
    this.#hasUnread = this.#state === "awaiting-hello";
  }

  #takeHello(bytes: Buffer): void {
    this.#hasUnread = false;
    const decoded = decodeHello(bytes);
    if (decoded.type === "wrong-version") {
      this.refuse({ code: "wrong-version", reason: decoded.reason, retry: false });
      return;
    }
    this.#state = "checking";
    this.#hello = decoded.hello;
    this.#version = decoded.version;
    this.connection.hold();
    // The check may take long, and a crawler that receives nothing moves to another coordinator, so it is sent pings.
    this.#waiting = setInterval(() => this.connection.ping(), mostPingMs);
    this.#handlers.onHello(this, decoded.hello, decoded.version);
  }

  #take(message: CrawlerMessage, arrived: MessageSize, received: ReceivedParts): void {
    // A few numbers can refer to much earlier data, which counts as if it were sent now.
    const referred = referredBytes(message);
    this.connection.charge(referred);
    const size = { ...arrived, inflatedBytes: arrived.inflatedBytes + referred };
    this.#watch?.heard();
    if (message.type === "crawler:hello") throw new ProtocolError("crawler:hello: a second one");
    if (message.type === "crawler:probe-report") {
      if (this.#crawlerId !== null) {
        this.#handlers.onProbeReport(this.#crawlerId, message.requestId, message.outcome);
      }
      return;
    }
    if (message.type === "crawler:seal") {
      this.#takeSeal(message);
      return;
    }
    // Each request queries the database, so if a crawler sends a thousand per second, reading from it pauses.
    if (message.type === "crawler:ready") {
      this.connection.charge(this.#settings.inflatedBytesPerSecond / requestsForWorkPerSecond);
    }
    if (message.type === "crawler:result" && badResultReason(message.result) !== null) {
      this.connection.charge(this.#settings.inflatedBytesPerSecond / badResultsPerSecond);
    }
    if (message.type === "crawler:result" && !this.#countResult(message.sequence)) return;
    if (message.type === "crawler:result" && this.#sealCheck)
      this.#sealCheck.add({ message, size }, received);
    else this.#inbox.add(message, size);
    if (this.#inbox.isFull) this.connection.hold();
  }

  #takeSeal(message: SealMessage): void {
    if (this.#sealCheck === null) return;
    const taken = this.#sealCheck.take(message);
    if (taken === null) {
      const reason = `the seal of results ${message.first} to ${message.last} is not of this crawler's key`;
      this.refuse({ code: "bad-signature", reason, retry: true });
      return;
    }
    for (const { message: result, size } of taken) this.#inbox.add(result, size);
    if (this.#inbox.isFull) this.connection.hold();
  }

  /** A session's first result may have any number, since a spool can lose its beginning. Then numbers rise by one. */
  #countResult(sequence: number): boolean {
    const expected = this.#lastSequence === null ? sequence : this.#lastSequence + 1;
    if (sequence !== expected) {
      throw new ProtocolError(`crawler:result: sequence ${sequence} came, ${expected} was due`);
    }
    this.#lastSequence = sequence;
    this.#unacknowledged += 1;
    if (this.#unacknowledged <= this.#mostCredits) return true;
    const reason = `${this.#unacknowledged} results without acknowledgement, ${this.#mostCredits} are allowed`;
    this.refuse({ code: "too-much", reason, retry: true });
    return false;
  }

  async #deliverResults(results: readonly BatchedResult[]): Promise<void> {
    if (this.#crawlerId === null || !this.#hello) return;
    const last = results.at(-1);
    await this.#handlers.onResults(this.#crawlerId, this.#hello.spoolId, results);
    this.#unacknowledged -= results.length;
    if (last) this.send({ type: "coordinator:acknowledge", sequence: last.sequence });
  }

  async #deliver(message: OtherMessage, size: MessageSize): Promise<void> {
    if (message.type === "crawler:goodbye") {
      this.#leavesForGood = message.forGood ?? false;
      this.connection.leave(sessionEnd(message.code ?? null, message.reason));
    } else if (this.#crawlerId !== null) {
      await this.#handlers.onMessage(this.#crawlerId, message, size);
    }
  }

  #onInboxFault(error: unknown): void {
    this.#handlers.onFault(this, error);
    const reason = "the coordinator could not take what was sent; nothing of it is acknowledged";
    this.refuse({ code: "internal-error", reason, retry: true });
  }

  #onNoHello(): void {
    const reason = `no hello within ${this.#settings.helloTimeoutMs} ms`;
    this.refuse({ code: "bad-message", reason, retry: true });
  }

  #onEnd(end: SessionEnd, refusal: Refusal | null): void {
    this.#state = "closed";
    clearInterval(this.#waiting);
    clearTimeout(this.#helloDeadline);
    this.#watch?.stop();
    this.#handlers.onEnd(this, end, refusal);
  }
}

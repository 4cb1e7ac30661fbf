/**
 * The unprocessed messages of one crawler. It delivers them in order, joining consecutive results into batches. While
 * one batch is committed the next one grows, so that batches grow with the load. Only the first batch waits for
 * `lingerMs`.
 */

import { ProtocolError } from "#core/errors";
import { asLeaseId, type LeaseId } from "#core/ids";
import { isSignedBy, sealText } from "#protocol/identity";
import type { CrawlerMessage } from "#protocol/messages";
import type { ReceivedParts } from "#protocol/packed/message-frames";
import { type FetchResult, maxUnsealedBytes, ResultDigest } from "#protocol/result";

type CrawlerResultMessage = Extract<CrawlerMessage, { type: "crawler:result" }>;

type OrderedMessage = Exclude<
  CrawlerMessage,
  { type: "crawler:hello" | "crawler:probe-report" | "crawler:seal" }
>;

export type OtherMessage = Exclude<OrderedMessage, CrawlerResultMessage>;

/** The messages that the gateway passes on one by one. */
export type CrawlerReport = Exclude<OtherMessage, { type: "crawler:goodbye" }>;

/** A result as it arrived. `wireBytes` is its compressed size. */
export interface BatchedResult {
  readonly sequence: number;
  readonly leaseId: LeaseId;
  readonly result: FetchResult;
  readonly wireBytes: number;
}

/** `inflatedBytes` is the size of the message's JSON. */
export interface MessageSize {
  readonly wireBytes: number;
  readonly inflatedBytes: number;
}

interface InboxSettings {
  readonly batchResults: number;
  readonly lingerMs: number;
  readonly deliverResults: (results: readonly BatchedResult[]) => Promise<void>;
  readonly deliver: (message: OtherMessage, size: MessageSize) => Promise<void>;
  readonly onRoom: () => void;
  readonly onFault: (error: unknown) => void;
}

/** While more than this is queued, reading from the crawler pauses. */
const fullBytes = 16 * 1024 * 1024;

const fullMessages = 2000;

/** A batch ends at this size. */
const batchBytes = 8 * 1024 * 1024;

interface Waiting {
  readonly message: OrderedMessage;
  readonly size: MessageSize;
}

export class SessionInbox {
  readonly #settings: InboxSettings;
  #queue: Waiting[] = [];
  #queuedBytes = 0;
  #working: Promise<void> | null = null;
  #stopped = false;
  #lingering: (() => void) | null = null;

  constructor(settings: InboxSettings) {
    this.#settings = settings;
  }

  get isFull(): boolean {
    return this.#queuedBytes > fullBytes || this.#queue.length > fullMessages;
  }

  get length(): number {
    return this.#queue.length;
  }

  add(message: OrderedMessage, size: MessageSize): void {
    if (this.#stopped) return;
    this.#queue.push({ message, size });
    this.#queuedBytes += size.inflatedBytes;
    if (this.#batchIsReady()) this.#lingering?.();
    this.#working ??= this.#work();
  }

  /** Stops delivering. Resolves when the delivery in progress has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#queue = [];
    this.#lingering?.();
    await this.#working;
  }

  async #work(): Promise<void> {
    try {
      while (this.#queue.length > 0) {
        if (!this.#batchIsReady()) await this.#linger();
        const taken = this.#take();
        if (taken.length > 0) await this.#deliver(taken);
        if (!this.isFull && !this.#stopped) this.#settings.onRoom();
      }
    } catch (error) {
      this.#stopped = true;
      this.#queue = [];
      this.#settings.onFault(error);
    } finally {
      this.#working = null;
    }
  }

  /** Whether there are enough results, or something other than a result follows. */
  #batchIsReady(): boolean {
    const last = this.#queue.at(-1)?.message.type;
    const first = this.#queue[0]?.message.type;
    if (first !== "crawler:result" || last !== "crawler:result") return true;
    return this.#queue.length >= this.#settings.batchResults || this.#queuedBytes > batchBytes;
  }

  #linger(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#lingering?.(), this.#settings.lingerMs);
      this.#lingering = () => {
        clearTimeout(timer);
        this.#lingering = null;
        resolve();
      };
    });
  }

  #take(): Waiting[] {
    let count = 0;
    let bytes = 0;
    for (const { message, size } of this.#queue) {
      if (count > 0 && (message.type !== "crawler:result" || bytes + size.inflatedBytes > batchBytes)) break;
      count += 1;
      bytes += size.inflatedBytes;
      if (message.type !== "crawler:result" || count === this.#settings.batchResults) break;
    }
    this.#queuedBytes -= bytes;
    return this.#queue.splice(0, count);
  }

  async #deliver(taken: readonly Waiting[]): Promise<void> {
    const results = taken.flatMap(toResult);
    if (results.length > 0) return this.#settings.deliverResults(results);
    for (const { message, size } of taken) {
      if (message.type !== "crawler:result") await this.#settings.deliver(message, size);
    }
  }
}

function toResult({ message, size }: Waiting): BatchedResult[] {
  if (message.type !== "crawler:result") return [];
  const { sequence, leaseId, result } = message;
  return [{ sequence, leaseId: asLeaseId(leaseId), result, wireBytes: size.wireBytes }];
}

/** Estimated memory of a link: an object and two strings. */
const linkBytes = 150;

export function referredBytes(message: CrawlerMessage): number {
  if (message.type !== "crawler:result" || message.result.page === null) return 0;
  const { links } = message.result.page;
  return links.reduce((sum, { url, anchor }) => sum + url.length + anchor.length + linkBytes, 0);
}

// Holds results of a crawler whose identity requires signatures, until their seal arrives. They then count all at
// once. When the session ends, results without a seal are dropped, and the crawler sends them again: result 7, result
// 8, result 9, seal 7–9 → all three. A seal of anything but the results held is refused.

export type SealMessage = Extract<CrawlerMessage, { type: "crawler:seal" }>;

interface WaitingResult {
  readonly message: CrawlerResultMessage;
  readonly size: MessageSize;
}

export class SealCheck {
  readonly #publicKey: string;
  readonly #spoolId: string;
  readonly #digest = new ResultDigest();
  #waiting: WaitingResult[] = [];
  #bytes = 0;

  /** `publicKey` is the key bound to the crawler's name, 32 bytes in base64url. */
  constructor(publicKey: string, spoolId: string) {
    this.#publicKey = publicKey;
    this.#spoolId = spoolId;
  }

  get waitingResults(): number {
    return this.#waiting.length;
  }

  /** Throws a ProtocolError if too many bytes wait. Credits limit the number of results. */
  add(result: WaitingResult, parts: ReceivedParts): void {
    this.#bytes += result.size.inflatedBytes;
    if (this.#bytes > maxUnsealedBytes) {
      throw new ProtocolError(`crawler:result: ${this.#bytes} bytes without a seal`);
    }
    this.#digest.add(parts);
    this.#waiting.push(result);
  }

  /**
   * Returns the sealed results, or null if the signature is wrong. Throws a ProtocolError if the seal does not cover
   * exactly the results that wait.
   */
  take({ first, last, signature }: SealMessage): readonly WaitingResult[] | null {
    const [from, to] = [this.#waiting[0]?.message.sequence, this.#waiting.at(-1)?.message.sequence];
    if (from === undefined || to === undefined) {
      throw new ProtocolError(`crawler:seal: ${first} to ${last} are sealed, and nothing waits for a seal`);
    }
    if (first !== from || last !== to) {
      throw new ProtocolError(`crawler:seal: ${first} to ${last} are sealed, ${from} to ${to} are due`);
    }
    const results = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    const digest = this.#digest.take();
    const text = sealText({ spoolId: this.#spoolId, first, last, digest });
    const isGenuine = isSignedBy(this.#publicKey, text, signature);
    return isGenuine ? results : null;
  }
}

/**
 * What one crawler sent and the coordinator has not worked off yet: delivered one after the other, in order,
 * with results that follow each other joined into batches. While a batch is being committed the next one
 * gathers, so batches grow with the load by themselves; the linger only helps the first.
 */
import { asLeaseId, type LeaseId } from "#core/ids";
import type { CrawlerMessage } from "#protocol/messages";
import type { FetchResult } from "#protocol/result";

export type CrawlerResultMessage = Extract<CrawlerMessage, { type: "crawler:result" }>;
export type OrderedMessage = Exclude<
  CrawlerMessage,
  { type: "crawler:hello" | "crawler:probe-report" | "crawler:seal" }
>;
export type OtherMessage = Exclude<OrderedMessage, CrawlerResultMessage>;
/** What the gateway passes on one by one. */
export type CrawlerReport = Exclude<OtherMessage, { type: "crawler:goodbye" }>;

/** A result as it arrived; `wireBytes` is what it took on the wire, compressed. */
export interface BatchedResult {
  readonly sequence: number;
  readonly leaseId: LeaseId;
  readonly result: FetchResult;
  readonly wireBytes: number;
}

/** `inflatedBytes`: the size of the message's JSON. */
export interface MessageSize {
  readonly wireBytes: number;
  readonly inflatedBytes: number;
}

export interface InboxSettings {
  readonly batchResults: number;
  readonly lingerMs: number;
  readonly deliverResults: (results: readonly BatchedResult[]) => Promise<void>;
  readonly deliver: (message: OtherMessage, size: MessageSize) => Promise<void>;
  /** There is room again after `isFull`. */
  readonly onRoom: () => void;
  /** A delivery failed; nothing more is delivered. */
  readonly onFault: (error: unknown) => void;
}

/** The crawler is not read while more than so much waits. */
const fullBytes = 16 * 1024 * 1024;
const fullMessages = 2000;
/** A batch ends when it is so large. */
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

  /** Delivers nothing more; resolves when the delivery under way has ended. */
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

  /** Something other than a result is in the queue, or enough results are. */
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

  /** One message, or the results at the head that make a batch. */
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

/**
 * What a crawler with an identity has sent and not signed yet. Results wait here until their seal comes: only then
 * do they count, in one piece; at the session's end, what has no seal is forgotten, and the crawler sends it again.
 *
 *   result 7, result 8, result 9, seal 7–9 → all three; a seal of anything but what waits is refused
 */
import { ProtocolError } from "#core/errors";
import { isSignedBy, sealText } from "#protocol/identity";
import type { CrawlerMessage } from "#protocol/messages";
import type { ReceivedParts } from "#protocol/packed/message-frames";
import { maxUnsealedBytes, ResultDigest, type Seal } from "#protocol/result";
import type { CrawlerResultMessage, MessageSize } from "./inbox.ts";

export type SealMessage = Extract<CrawlerMessage, { type: "crawler:seal" }>;

export interface WaitingResult {
  readonly message: CrawlerResultMessage;
  readonly size: MessageSize;
}

export class SealCheck {
  readonly #publicKey: string;
  readonly #spoolId: string;
  readonly #digest = new ResultDigest();
  #waiting: WaitingResult[] = [];
  #bytes = 0;

  /** `publicKey`: 32 bytes in base64url, as it was bound to the crawler's name. */
  constructor(publicKey: string, spoolId: string) {
    this.#publicKey = publicKey;
    this.#spoolId = spoolId;
  }

  get waitingResults(): number {
    return this.#waiting.length;
  }

  /** Throws ProtocolError when too much waits; their number is bounded by the credits. */
  add(result: WaitingResult, parts: ReceivedParts): void {
    this.#bytes += result.size.inflatedBytes;
    if (this.#bytes > maxUnsealedBytes) {
      throw new ProtocolError(`crawler:result: ${this.#bytes} bytes without a seal`);
    }
    this.#digest.add(parts);
    this.#waiting.push(result);
  }

  /**
   * The results that the seal stands for, or null when its signature is wrong. Throws ProtocolError when it is not
   * for exactly what waits.
   */
  take({ first, last, signature }: SealMessage): { results: readonly WaitingResult[]; seal: Seal } | null {
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
    return isGenuine ? { results, seal: { first, last, digest, signature } } : null;
  }
}

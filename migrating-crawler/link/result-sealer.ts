/**
 * Signs what is shipped, so that the coordinator can tell it from what anybody else sends with this crawler's
 * key: one seal for all results since the one before. Results go out in bursts, so a seal waits a moment for
 * more of them; the coordinator takes nothing that is not sealed.
 */
import { sealText } from "#protocol/identity";
import type { CrawlerMessage } from "#protocol/messages";
import { ResultDigest, sealAfter } from "#protocol/result";

export interface SealerSettings {
  readonly sign: (text: string) => string;
  readonly spoolId: string;
  readonly send: (seal: Extract<CrawlerMessage, { type: "crawler:seal" }>) => void;
}

/** The frame of a result, its text before deflate. */
export interface SealedParts {
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

  /** Right after the result was handed to the connection. */
  add(sequence: number, parts: SealedParts): void {
    this.#digest.add(parts);
    this.#first ??= sequence;
    this.#last = sequence;
    this.#bytes += parts.numbers.length + parts.text.length;
    const isFull = sequence - this.#first + 1 >= sealAfter.results || this.#bytes >= sealAfter.bytes;
    if (isFull) this.seal();
    else this.#timer ??= setTimeout(() => this.seal(), sealAfter.ms).unref();
  }

  /** Now, when there is anything to seal. */
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

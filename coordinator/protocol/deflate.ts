/**
 * The sending half of the wire's compression (design section 7): one raw deflate stream (RFC 1951) for the
 * whole life of a connection's direction, flushed at the end of every message, so that each message is
 * compressed with what went before it in mind. As in RFC 7692 section 7.2.1, the four bytes 00 00 ff ff
 * that every such flush ends with are left out; the receiver adds them.
 */
import { constants, createDeflateRaw, type DeflateRaw } from "node:zlib";

/** What a Z_SYNC_FLUSH ends with: an empty stored block. */
export const flushTail: Buffer = Buffer.from([0x00, 0x00, 0xff, 0xff]);

/** What there is to send of an empty message: the head of that block. */
const emptyMessage = Buffer.from([0x00]);

/** Memory of one stream, from zlib's formula 2^(windowBits+2) + 2^(memLevel+9) bytes. */
export const streamSizes = {
  /** 256 KiB: for results. Level 6 takes a tenth to a fifth more of the CPU and sends 2 % less. */
  large: { windowBits: 15, memLevel: 8, level: 4 },
  /** 48 KiB: for the coordinator, which holds one for every crawler and says little. */
  small: { windowBits: 13, memLevel: 5, level: 6 },
} as const;

/** Compresses messages in the order of the calls. Close it, or its memory stays until the collector comes. */
export class MessageDeflater {
  readonly #stream: DeflateRaw;
  readonly #waiting: Waiting[] = [];
  #chunks: Buffer[] = [];
  #closed: Error | null = null;

  constructor(size: keyof typeof streamSizes) {
    this.#stream = createDeflateRaw({ ...streamSizes[size], flush: constants.Z_SYNC_FLUSH });
    this.#stream.on("data", (chunk: Buffer) => this.#chunks.push(chunk));
    this.#stream.on("error", (error) => this.#fail(error));
  }

  /** One message's bytes on the wire. Rejects only when the deflater is or gets closed. */
  deflate(text: string | Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(this.#closed);
      this.#waiting.push({ text, resolve, reject });
      if (this.#waiting.length === 1) this.#next();
    });
  }

  close(): void {
    this.#fail(new Error("the deflate stream is closed"));
  }

  #next(): void {
    const first = this.#waiting[0];
    if (!first || this.#closed) return;
    // A write is flushed by itself, which is one job for the thread pool and not two.
    if (first.text.length === 0) this.#finish(first, emptyMessage);
    else this.#stream.write(first.text, () => this.#finish(first, this.#takeMessage()));
  }

  #finish(first: Waiting, message: Buffer): void {
    if (this.#closed) return;
    this.#waiting.shift();
    first.resolve(message);
    this.#next();
  }

  #takeMessage(): Buffer {
    const flushed = Buffer.concat(this.#chunks);
    this.#chunks = [];
    return flushed.subarray(0, flushed.length - flushTail.length);
  }

  #fail(error: Error): void {
    if (this.#closed) return;
    this.#closed = error;
    this.#stream.close();
    for (const waiting of this.#waiting.splice(0)) waiting.reject(error);
  }
}

interface Waiting {
  readonly text: string | Buffer;
  readonly resolve: (message: Buffer) => void;
  readonly reject: (error: Error) => void;
}

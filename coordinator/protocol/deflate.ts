/**
 * The sending half of the wire's compression (design section 7): one raw deflate stream (RFC 1951) for the
 * whole life of a connection's direction, flushed at the end of every message, so that each message is
 * compressed with what went before it in mind. As in RFC 7692 section 7.2.1, the four bytes 00 00 ff ff
 * that every such flush ends with are left out; the receiver adds them.
 */
import { promisify } from "node:util";
import {
  constants,
  createDeflateRaw,
  type DeflateRaw,
  deflateRaw,
  deflateRawSync,
  type Inflate,
  inflateRawSync,
  type ZlibOptions,
} from "node:zlib";
import { ProtocolError } from "#core/errors";

/** What a Z_SYNC_FLUSH ends with: an empty stored block. */
export const flushTail: Buffer = Buffer.from([0x00, 0x00, 0xff, 0xff]);

/** What there is to send of an empty message: the head of that block. */
const emptyMessage = Buffer.from([0x00]);

/** 256 KiB a stream, 2^(windowBits+2) + 2^(memLevel+9) bytes. Level 6 takes a tenth to a fifth more of the CPU and sends 2 % less. */
const streamOptions = { windowBits: 15, memLevel: 8, level: 4, flush: constants.Z_SYNC_FLUSH } as const;

/** Compresses messages in the order of the calls, for the crawler's results. Close it, or its memory stays until the collector comes. */
export class MessageDeflater {
  readonly #stream: DeflateRaw;
  readonly #waiting: Waiting[] = [];
  #chunks: Buffer[] = [];
  #closed: Error | null = null;

  constructor() {
    this.#stream = createDeflateRaw(streamOptions);
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

/** How far back the coordinator's messages refer. */
const smallWindowBytes = 8192;

const oneOptions = { windowBits: 13, memLevel: 5, level: 6, finishFlush: constants.Z_SYNC_FLUSH } as const;

/** A longer message is compressed beside the loop: it would hold up all other crawlers for milliseconds. */
const longBytes = 65_536;

/**
 * The same for the coordinator, which has one for each of thousands of crawlers and says little: no stream stays open (112
 * KB each, with its buffers), but every message is compressed by itself with what was last sent as its dictionary. What
 * comes out is one stream all the same. A short message takes a third of the CPU, since it goes through no thread.
 */
export class HistoryDeflater {
  #history: Buffer = Buffer.alloc(0);
  #last: Promise<unknown> | null = null;

  /** One message's bytes on the wire, in the order of the calls. */
  async deflate(text: string): Promise<Buffer> {
    if (this.#last === null && text.length <= longBytes) return this.#deflateNow(text);
    const turn = (this.#last ?? Promise.resolve()).then(async () => await this.#deflateBeside(text));
    const ended = turn.then(
      () => {},
      () => {},
    );
    this.#last = ended;
    try {
      return await turn;
    } finally {
      if (this.#last === ended) this.#last = null;
    }
  }

  #deflateNow(text: string): Buffer {
    const bytes = Buffer.from(text);
    return this.#sent(bytes, deflateRawSync(bytes, this.#options()));
  }

  async #deflateBeside(text: string): Promise<Buffer> {
    const bytes = Buffer.from(text);
    return this.#sent(bytes, await deflateBeside(bytes, this.#options()));
  }

  #options() {
    return this.#history.length === 0 ? oneOptions : { ...oneOptions, dictionary: this.#history };
  }

  #sent(bytes: Buffer, flushed: Buffer): Buffer {
    this.#history = lastWindow(this.#history, bytes, smallWindowBytes);
    return bytes.length === 0 ? emptyMessage : flushed.subarray(0, flushed.length - flushTail.length);
  }
}

const deflateBeside = promisify<Buffer, ZlibOptions, Buffer>(deflateRaw);

// The receiving half of the wire's compression: what MessageDeflater sends, bounded in size. This file
// has the implementation that works everywhere, on node:zlib; zlib-sync-inflater.ts has the faster one.
// Both accept and refuse the same honest streams; both are proof against bombs and corrupt bytes.

/** How far back deflate can refer (RFC 1951 section 2). */
export const windowBytes = 32_768;

/** One direction of one connection. After a throw it is of no more use. */
export interface MessageInflater {
  /** The message's bytes, at most `maxBytes`; throws ProtocolError when there are more or they make no sense. */
  inflate(message: Buffer, maxBytes: number): Buffer;
  /** The last 32 KiB of what came out, with which another inflater can go on. */
  history(): Buffer;
  /** Gives back what it holds. */
  release(): void;
}

/**
 * Every message is inflated on its own, with the last 32 KiB of output as the preset dictionary: a flush
 * ends at a block and byte boundary, so nothing else carries over.
 */
export class NodeInflater implements MessageInflater {
  readonly #keptBytes: number;
  #history: Buffer = Buffer.alloc(0);

  /** `keptBytes`: how far back the sender refers. */
  constructor(keptBytes: number = windowBytes) {
    this.#keptBytes = keptBytes;
  }

  inflate(message: Buffer, maxBytes: number): Buffer {
    const input = Buffer.concat([message, flushTail]);
    const { buffer, engine } = this.#inflateRaw(input, maxBytes);
    // The tail is left over exactly when the sender ended its stream, which none may do.
    if (engine.bytesWritten !== input.length) throw new ProtocolError("the deflate stream has ended");
    this.#history = lastWindow(this.#history, buffer, this.#keptBytes);
    return buffer;
  }

  history(): Buffer {
    return this.#history;
  }

  release(): void {
    this.#history = Buffer.alloc(0);
  }

  #inflateRaw(input: Buffer, maxBytes: number): InflatedWithEngine {
    const dictionary = this.#history.length > 0 ? { dictionary: this.#history } : {};
    const options = { ...dictionary, info: true, finishFlush: constants.Z_SYNC_FLUSH };
    try {
      const inflated: unknown = inflateRawSync(input, { ...options, maxOutputLength: Math.max(1, maxBytes) });
      return inflated as InflatedWithEngine;
    } catch (error) {
      throw tooLongOrCorrupt(error, maxBytes);
    }
  }
}

export function tooLong(maxBytes: number): ProtocolError {
  return new ProtocolError(`a message is longer than ${maxBytes} bytes when inflated`);
}

export function corrupt(detail: string): ProtocolError {
  return new ProtocolError(`the deflate stream is corrupt: ${detail.slice(0, 80)}`);
}

/** What inflateRawSync returns when asked for `info`; the type declarations know only the buffer. */
interface InflatedWithEngine {
  readonly buffer: Buffer;
  readonly engine: Inflate;
}

function tooLongOrCorrupt(error: unknown, maxBytes: number): ProtocolError {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "ERR_BUFFER_TOO_LARGE" ? tooLong(maxBytes) : corrupt(message);
}

function lastWindow(before: Buffer, output: Buffer, keptBytes: number): Buffer {
  if (output.length >= keptBytes) return Buffer.from(output.subarray(output.length - keptBytes));
  const kept = before.subarray(Math.max(0, before.length + output.length - keptBytes));
  return Buffer.concat([kept, output]);
}

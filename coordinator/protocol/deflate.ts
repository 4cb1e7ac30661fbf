/**
 * The sending half of the wire's compression (design section 7): one raw deflate stream (RFC 1951) for the
 * whole life of a connection's direction, flushed at the end of every message, so that each message is
 * compressed with what went before it in mind. As in RFC 7692 section 7.2.1, the four bytes 00 00 ff ff
 * that every such flush ends with are left out; the receiver adds them.
 */
import { promisify } from "node:util";
import {
  constants,
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

/** How far back deflate can refer (RFC 1951 section 2). */
export const windowBytes = 32_768;

interface Sending {
  /** How far back messages refer. */
  readonly windowBytes: number;
  readonly options: ZlibOptions;
  /** A longer message is compressed beside the loop, by one of libuv's threads. */
  readonly besideBytes: number;
}

/**
 * Of a crawler: its results refer as far back as deflate can, and nothing holds up its loop, which measures times. Level 6 takes
 * a tenth to a fifth more of the CPU and sends 2 % less.
 */
const results: Sending = {
  windowBytes,
  options: { windowBits: 15, memLevel: 8, level: 4, finishFlush: constants.Z_SYNC_FLUSH },
  besideBytes: 0,
};

/**
 * Of a coordinator, which has one for each of thousands of crawlers and says little. A short message takes a third of the CPU
 * where it goes through no thread; a long one would hold up all other crawlers for milliseconds.
 */
export const briefly: Sending = {
  windowBytes: 8192,
  options: { windowBits: 13, memLevel: 5, level: 6, finishFlush: constants.Z_SYNC_FLUSH },
  besideBytes: 65_536,
};

/**
 * Compresses messages in the order of the calls. No stream stays open (112 KB and more each, with its buffers): every message
 * is compressed by itself with what was last sent as its dictionary. What comes out is one stream all the same.
 */
export class MessageDeflater {
  readonly #sending: Sending;
  #history: Buffer = Buffer.alloc(0);
  #last: Promise<unknown> | null = null;

  constructor(sending = results) {
    this.#sending = sending;
  }

  /** One message's bytes on the wire. */
  async deflate(message: string | Buffer): Promise<Buffer> {
    const bytes = Buffer.from(message);
    if (this.#last === null && bytes.length <= this.#sending.besideBytes)
      return this.#sent(bytes, deflateRawSync(bytes, this.#options()));
    const turn = (this.#last ?? Promise.resolve()).then(async () =>
      this.#sent(bytes, await deflateBeside(bytes, this.#options())),
    );
    const ended = turn.catch(() => {});
    this.#last = ended;
    try {
      return await turn;
    } finally {
      if (this.#last === ended) this.#last = null;
    }
  }

  #options(): ZlibOptions {
    const { options } = this.#sending;
    return this.#history.length === 0 ? options : { ...options, dictionary: this.#history };
  }

  #sent(bytes: Buffer, flushed: Buffer): Buffer {
    this.#history = lastWindow(this.#history, bytes, this.#sending.windowBytes);
    return bytes.length === 0 ? emptyMessage : flushed.subarray(0, flushed.length - flushTail.length);
  }
}

const deflateBeside = promisify<Buffer, ZlibOptions, Buffer>(deflateRaw);

// The receiving half of the wire's compression: what MessageDeflater sends, bounded in size. This file
// has the implementation that works everywhere, on node:zlib; zlib-sync-inflater.ts has the faster one.
// Both accept and refuse the same honest streams; both are proof against bombs and corrupt bytes.

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
  #history: Buffer = Buffer.alloc(0);

  inflate(message: Buffer, maxBytes: number): Buffer {
    const input = Buffer.concat([message, flushTail]);
    const { buffer, engine } = this.#inflateRaw(input, maxBytes);
    // The tail is left over exactly when the sender ended its stream, which none may do.
    if (engine.bytesWritten !== input.length) throw new ProtocolError("the deflate stream has ended");
    this.#history = lastWindow(this.#history, buffer, windowBytes);
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

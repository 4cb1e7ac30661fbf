/**
 * The sending half of the wire compression (design section 7). Each direction of a connection is one raw deflate stream (RFC
 * 1951), flushed after every message, so that a message can refer to earlier ones. As in RFC 7692 section 7.2.1, the four
 * bytes 00 00 ff ff at the end of every flush are omitted, and the receiver adds them.
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

/** The end of a Z_SYNC_FLUSH: an empty stored block. */
export const flushTail: Buffer = Buffer.from([0x00, 0x00, 0xff, 0xff]);

const emptyMessage = Buffer.from([0x00]);

/** Maximum distance of a deflate reference (RFC 1951 section 2). */
export const windowBytes = 32_768;

interface Sending {
  /** Maximum distance of references to earlier messages. */
  readonly windowBytes: number;
  readonly options: ZlibOptions;
  /** A longer message is compressed in a libuv thread instead of the event loop. */
  readonly besideBytes: number;
}

/**
 * For crawlers. Results use the full window, and threads keep the event loop free, in which times are measured. Level 6 sends
 * 2 % less than level 4, and higher levels hardly less.
 */
const results: Sending = {
  windowBytes,
  options: { windowBits: 15, memLevel: 8, level: 6, finishFlush: constants.Z_SYNC_FLUSH },
  besideBytes: 0,
};

/**
 * For coordinators, which have thousands of connections and send little. Without a thread, a short message takes a third of
 * the CPU, but a long one would delay all other crawlers by milliseconds.
 */
export const briefly: Sending = {
  windowBytes: 8192,
  options: { windowBits: 13, memLevel: 5, level: 6, finishFlush: constants.Z_SYNC_FLUSH },
  besideBytes: 65_536,
};

/**
 * Compresses messages in the order of the calls. No stream stays open, since each would take at least 112 KB: every message
 * is compressed separately, with the previously sent bytes as its dictionary. The output is nevertheless one valid stream.
 */
export class MessageDeflater {
  readonly #sending: Sending;
  #history: Buffer = Buffer.alloc(0);
  #last: Promise<unknown> | null = null;

  constructor(sending = results) {
    this.#sending = sending;
  }

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

// The receiving half of the wire compression reads what MessageDeflater sends, with bounded output. This file has the
// portable implementation on node:zlib, and zlib-sync-inflater.ts the faster one. Both accept the same valid streams and
// resist bombs and corrupt bytes.

/** Inflates one direction of one connection. It is unusable after a throw. */
export interface MessageInflater {
  /** Returns at most `maxBytes` bytes. Throws ProtocolError if there are more or the stream is invalid. */
  inflate(message: Buffer, maxBytes: number): Buffer;
  /** The last 32 KiB of output, from which another inflater can continue. */
  history(): Buffer;
  release(): void;
}

/**
 * Inflates every message separately with the last 32 KiB of output as the preset dictionary. A flush ends at a block and byte
 * boundary, so no other state carries over.
 */
export class NodeInflater implements MessageInflater {
  #history: Buffer = Buffer.alloc(0);

  inflate(message: Buffer, maxBytes: number): Buffer {
    const input = Buffer.concat([message, flushTail]);
    const { buffer, engine } = this.#inflateRaw(input, maxBytes);
    // The tail remains unread if and only if the sender ended its stream, which is not allowed.
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

/** The result of inflateRawSync with `info`, for which the type declarations know only the buffer. */
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

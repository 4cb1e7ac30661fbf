/**
 * The receiving half of the wire's compression: what message-deflater.ts sends, bounded in size. This file
 * has the implementation that works everywhere, on node:zlib; zlib-sync-inflater.ts has the faster one.
 * Both accept and refuse the same honest streams; both are proof against bombs and corrupt bytes.
 */
import { constants, type Inflate, inflateRawSync } from "node:zlib";
import { ProtocolError } from "#core/errors";
import { flushTail } from "./deflate.ts";

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
  #history: Buffer = Buffer.alloc(0);

  inflate(message: Buffer, maxBytes: number): Buffer {
    const input = Buffer.concat([message, flushTail]);
    const { buffer, engine } = this.#inflateRaw(input, maxBytes);
    // The tail is left over exactly when the sender ended its stream, which none may do.
    if (engine.bytesWritten !== input.length) throw new ProtocolError("the deflate stream has ended");
    this.#history = lastWindow(this.#history, buffer);
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

function lastWindow(before: Buffer, output: Buffer): Buffer {
  if (output.length >= windowBytes) return Buffer.from(output.subarray(output.length - windowBytes));
  const kept = before.subarray(Math.max(0, before.length + output.length - windowBytes));
  return Buffer.concat([kept, output]);
}

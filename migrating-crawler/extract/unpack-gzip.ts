/**
 * gzip (RFC 1952), bounded in output: a content coding, and files that are gzip themselves, such as `sitemap.xml.gz`,
 * whatever their header says; also packed twice, as servers do that compress what is compressed. What stands behind the
 * last member and is no member (a line break, a comment of some cache) is passed over, as browsers and gzip itself do;
 * of a broken or cut file there is what could be read.
 */

import type { Transform } from "node:stream";
import { constants, createGunzip, createInflateRaw, inflateRawSync, type ZlibOptions } from "node:zlib";

/** Unpacked once more at most so often. */
const maxLayers = 3;

/** With more members than this, what stands behind them is not told from a broken member. */
const maxMembers = 1000;

/** The flags of a member's head that say which fields follow (section 2.3.1). */
const [hasHeadSum, hasExtra, hasName, hasComment] = [2, 4, 8, 16];

const fixedHeadBytes = 10;
const trailerBytes = 8;

export function isGzip(bytes: Buffer): boolean {
  return bytes.length > 3 && bytes[0] === 0x1f && bytes[1] === 0x8b && bytes[2] === 8;
}

export interface Unpacked {
  readonly bytes: Buffer;
  /** There was more than the limit, or the file is broken. */
  readonly truncated: boolean;
}

/** At most `limit` bytes of each layer. Bytes that are not gzip are returned as they are. */
export async function unpackGzip(bytes: Buffer, limit: number): Promise<Unpacked> {
  let unpacked: Unpacked = { bytes, truncated: false };
  for (let layer = 0; layer < maxLayers && isGzip(unpacked.bytes); layer++) {
    const inner = await gunzipBounded(unpacked.bytes, { limit });
    const truncated = inner.isCut || inner.error !== null || unpacked.truncated;
    unpacked = { bytes: inner.bytes, truncated };
  }
  return unpacked;
}

/** All members of a file, one after the other. Never throws. */
export async function gunzipBounded(
  bytes: Buffer,
  bounds: InflateBounds,
  options: ZlibOptions = {},
): Promise<Inflated> {
  const inflated = await inflateBounded(createGunzip(options), bytes, bounds);
  // Node takes for a broken member what is none.
  const isBroken = inflated.error !== null && "code" in inflated.error && "errno" in inflated.error;
  const end = isBroken ? await endOfMembers(bytes, bounds, isCutShort(inflated.error)) : null;
  if (end === null) return inflated;
  const members = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
  return await inflateBounded(members, bytes.subarray(0, end), bounds);
}

/** node:zlib met the end of the input before that of what is packed. */
export const isCutShort = (error: Error | null): boolean =>
  error !== null && "code" in error && error.code === "Z_BUF_ERROR";

/**
 * Where the last member ends and something else begins, or the file, before all of that member's trailer (some proxies lose
 * its eight bytes, and the data say themselves where they end). Null: neither, or a member is broken.
 */
async function endOfMembers(bytes: Buffer, bounds: InflateBounds, isCut: boolean): Promise<number | null> {
  let end = 0;
  for (let member = 0; member < maxMembers && end < bytes.length; member++) {
    const rest = bytes.subarray(end);
    if (!isGzip(rest)) return end === 0 ? null : end;
    const decoder = createInflateRaw();
    const headBytes = lengthOfHead(rest);
    const data = await inflateBounded(decoder, rest.subarray(headBytes), bounds);
    end += headBytes + decoder.bytesWritten + trailerBytes;
    if (data.error !== null || data.isCut) return null;
  }
  return isCut && end > bytes.length ? end : null;
}

/** Of a member (section 2.3); more than there is when it is cut. */
function lengthOfHead(member: Buffer): number {
  const flags = member[3] ?? 0;
  let length = fixedHeadBytes;
  if (flags & hasExtra) length += 2 + (member[length] ?? 0) + 256 * (member[length + 1] ?? 0);
  for (const field of [hasName, hasComment]) {
    if (!(flags & field)) continue;
    const zero = member.indexOf(0, length);
    length = zero < 0 ? member.length : zero + 1;
  }
  return flags & hasHeadSum ? length + 2 : length;
}

/** About the first `most` bytes that are packed in it, to see what it is; empty when it cannot be read. */
export function peekGzip(bytes: Buffer, most: number): Buffer {
  let peeked = bytes;
  for (let layer = 0; layer < maxLayers && isGzip(peeked); layer++) peeked = peekOnce(peeked, most);
  return isGzip(peeked) ? Buffer.alloc(0) : peeked;
}

/** Deflate packs 1,032 to 1 at most, so that this much input cannot give more than four megabytes. */
const peekedInputBytes = 4096;

function peekOnce(bytes: Buffer, most: number): Buffer {
  try {
    const input = bytes.subarray(lengthOfHead(bytes), peekedInputBytes);
    return inflateRawSync(input, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, most);
  } catch {
    return Buffer.alloc(0);
  }
}

// Bytes through a decoder of node:zlib, off the main thread, until there is enough of what comes out.

/** A decoder of node:zlib: counts the bytes that it has consumed. */
export type Decoder = Transform & { readonly bytesWritten: number };

export interface Inflated {
  /** At most as many as were wanted. */
  readonly bytes: Buffer;
  /** There was more. */
  readonly isCut: boolean;
  /** Why the decoder stopped before its end; null when it did not. */
  readonly error: Error | null;
}

export interface InflateBounds {
  readonly limit: number;
  /** Looked at with each piece; an error ends it. */
  readonly check?: (outputBytes: number, inputBytes: number) => Error | null;
}

/** Never throws: a broken or cut input gives what could be decoded of it, with the error. */
export function inflateBounded(
  decoder: Decoder,
  input: Buffer,
  { limit, check }: InflateBounds,
): Promise<Inflated> {
  return new Promise((resolve) => {
    const pieces: Buffer[] = [];
    let length = 0;
    const end = (isCut: boolean, error: Error | null) => {
      decoder.destroy();
      resolve({ bytes: Buffer.concat(pieces, Math.min(length, limit)), isCut, error });
    };
    decoder.on("data", (piece: Buffer) => {
      pieces.push(piece);
      length += piece.length;
      const error = check?.(length, decoder.bytesWritten) ?? null;
      if (error !== null || length > limit) end(length > limit, error);
    });
    decoder.once("end", () => end(false, null));
    decoder.once("error", (error) => end(false, error));
    decoder.end(input);
  });
}

/**
 * Unpacks gzip (RFC 1952) with limited output, both as a content coding and in files such as `sitemap.xml.gz` whatever their
 * header says, even when compressed twice. Like browsers and gzip, it ignores data after the last member (a line break, a
 * cache's comment). From a broken or truncated file, it returns what was readable.
 */

import type { Transform } from "node:stream";
import { constants, createGunzip, createInflateRaw, inflateRawSync, type ZlibOptions } from "node:zlib";

const maxLayers = 3;

/** With more members than this, trailing data cannot be distinguished from a broken member. */
const maxMembers = 1000;

/** Flags in a member's header for the fields that follow (section 2.3.1). */
const [hasHeadSum, hasExtra, hasName, hasComment] = [2, 4, 8, 16];

const fixedHeadBytes = 10;
const trailerBytes = 8;

export function isGzip(bytes: Buffer): boolean {
  return bytes.length > 3 && bytes[0] === 0x1f && bytes[1] === 0x8b && bytes[2] === 8;
}

export interface Unpacked {
  readonly bytes: Buffer;
  readonly truncated: boolean;
}

/** Returns at most `limit` bytes of each layer. Bytes that are not gzip are returned unchanged. */
export async function unpackGzip(bytes: Buffer, limit: number): Promise<Unpacked> {
  let unpacked: Unpacked = { bytes, truncated: false };
  for (let layer = 0; layer < maxLayers && isGzip(unpacked.bytes); layer++) {
    const inner = await gunzipBounded(unpacked.bytes, { limit });
    const truncated = inner.isCut || inner.error !== null || unpacked.truncated;
    unpacked = { bytes: inner.bytes, truncated };
  }
  return unpacked;
}

export async function gunzipBounded(
  bytes: Buffer,
  bounds: InflateBounds,
  options: ZlibOptions = {},
): Promise<Inflated> {
  const inflated = await inflateBounded(createGunzip(options), bytes, bounds);
  // Node reports trailing data as a broken member.
  const isBroken = inflated.error !== null && "code" in inflated.error && "errno" in inflated.error;
  const end = isBroken ? await endOfMembers(bytes, bounds, isCutShort(inflated.error)) : null;
  if (end === null) return inflated;
  const members = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
  return await inflateBounded(members, bytes.subarray(0, end), bounds);
}

/** True if node:zlib reached the end of the input before the end of the compressed data. */
export const isCutShort = (error: Error | null): boolean =>
  error !== null && "code" in error && error.code === "Z_BUF_ERROR";

/**
 * Returns the end of the last member if something else follows, or if its trailer is missing (some proxies lose those eight
 * bytes, but the data mark their own end). Returns null otherwise, or if a member is broken.
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

/** Returns about the first `most` unpacked bytes for inspection, or an empty buffer if they are unreadable. */
export function peekGzip(bytes: Buffer, most: number): Buffer {
  let peeked = bytes;
  for (let layer = 0; layer < maxLayers && isGzip(peeked); layer++) peeked = peekOnce(peeked, most);
  return isGzip(peeked) ? Buffer.alloc(0) : peeked;
}

/** Deflate compresses at most 1,032 to 1, so this input unpacks to at most four megabytes. */
const peekedInputBytes = 4096;

function peekOnce(bytes: Buffer, most: number): Buffer {
  try {
    const input = bytes.subarray(lengthOfHead(bytes), peekedInputBytes);
    return inflateRawSync(input, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, most);
  } catch {
    return Buffer.alloc(0);
  }
}

// Decodes bytes with node:zlib, off the main thread, until there is enough output.

/** Node's decoders count the bytes that they have consumed. */
export type Decoder = Transform & { readonly bytesWritten: number };

export interface Inflated {
  readonly bytes: Buffer;
  readonly isCut: boolean;
  readonly error: Error | null;
}

export interface InflateBounds {
  readonly limit: number;
  /** Is called for each piece. Returning an error ends the decoding. */
  readonly check?: (outputBytes: number, inputBytes: number) => Error | null;
}

/** Never throws. For broken or truncated input, returns what was decodable together with the error. */
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

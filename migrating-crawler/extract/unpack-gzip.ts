/**
 * Files that are gzip themselves (RFC 1952), such as `sitemap.xml.gz`, whatever their header says; also
 * packed twice, as servers do that compress what is compressed. Bounded in output; a broken or cut file
 * gives what could be read of it.
 */
import { constants, createGunzip, gunzipSync } from "node:zlib";
import { inflateBounded } from "./inflate-bounded.ts";

/** Unpacked once more at most so often. */
const maxLayers = 3;

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
    const inner = await inflateBounded(createGunzip(), unpacked.bytes, { limit });
    const truncated = inner.isCut || inner.error !== null || unpacked.truncated;
    unpacked = { bytes: inner.bytes, truncated };
  }
  return unpacked;
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
    const input = bytes.subarray(0, peekedInputBytes);
    return gunzipSync(input, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, most);
  } catch {
    return Buffer.alloc(0);
  }
}

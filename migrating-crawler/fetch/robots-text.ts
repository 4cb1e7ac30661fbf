/**
 * The bytes of a robots.txt as lines. RFC 9309 section 2.2 wants UTF-8; what is served is also UTF-16, has a byte
 * order mark or none, ends lines as it likes and may be endless. Lines come back with one character per byte
 * (Latin-1), because a rule is compared by the file's bytes, valid UTF-8 or not.
 */

/**
 * What lies beyond is ignored. RFC 9309 section 2.5 asks for at least 500 KiB; some large sites' files are
 * longer and other crawlers read them whole, so twice that.
 */
export const maxRobotsBytes = 1024 * 1024;

export interface RobotsText {
  readonly lines: readonly string[];
  /** The file is longer than `maxRobotsBytes`; the line that the bound cuts in two is left out. */
  readonly cut: boolean;
}

export function robotsText(body: Uint8Array | string): RobotsText {
  const bytes =
    typeof body === "string" ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const cut = bytes.length > maxRobotsBytes;
  const lines = asUtf8(bytes.subarray(0, maxRobotsBytes))
    .toString("latin1")
    .split(/\r\n|\r|\n/);
  return { lines: cut ? lines.slice(0, -1) : lines, cut };
}

function asUtf8(bytes: Buffer): Buffer {
  const order = utf16Order(bytes);
  if (order === null) return withoutMark(bytes);
  const even = Buffer.from(bytes.subarray(0, bytes.length - (bytes.length % 2)));
  const text = (order === "little" ? even : even.swap16()).toString("utf16le");
  return Buffer.from(text.replace(/^\ufeff/, ""));
}

/** By the byte order mark, or by the zero byte of each ASCII character that a file begins with. */
function utf16Order([first, second, third, fourth]: Buffer): "little" | "big" | null {
  if (first === 0xff && second === 0xfe) return "little";
  if (first === 0xfe && second === 0xff) return "big";
  if (first !== 0 && second === 0 && third !== 0 && fourth === 0) return "little";
  if (first === 0 && second !== 0 && third === 0 && fourth !== 0) return "big";
  return null;
}

/** Drops a UTF-8 byte order mark, and the beginning of one cut short. */
function withoutMark(bytes: Buffer): Buffer {
  const mark = [0xef, 0xbb, 0xbf];
  let length = 0;
  while (length < 3 && bytes[length] === mark[length]) length++;
  return bytes.subarray(length);
}

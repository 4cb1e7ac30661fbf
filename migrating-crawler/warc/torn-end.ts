/**
 * Cuts off what a kill or a power cut left of a record at the end of a WARC file. Each record is a gzip member
 * of its own, so only the last one can be torn. Its beginning is looked for from the end; gzip within a record
 * (a body as it was transferred) does not unpack to the beginning of one.
 */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync } from "node:fs";
import { constants, type Gunzip, gunzipSync } from "node:zlib";

/** The head of every member that node:zlib writes (RFC 1952: deflate, no flags, no time). */
const memberHead = Buffer.from([0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00]);
const recordHead = "WARC/1.1\r\n";
/** No record is longer: bodies are kept up to 5 MB. */
const tailBytes = 16 * 1024 * 1024;
const maxRecordBytes = 64 * 1024 * 1024;
/** Enough of a member to see how it begins. */
const lookedAtBytes = 4096;

export function cutTornEnd(path: string): void {
  const descriptor = openSync(path, "r+");
  try {
    const { size } = fstatSync(descriptor);
    const start = Math.max(0, size - tailBytes);
    const tail = Buffer.alloc(size - start);
    readSync(descriptor, tail, 0, tail.length, start);
    const whole = wholeLength(tail);
    if (whole < tail.length) ftruncateSync(descriptor, start + whole);
  } finally {
    closeSync(descriptor);
  }
}

/** How much of the file's end is whole records. */
function wholeLength(tail: Buffer): number {
  let unclear = tail.length;
  for (
    let at = tail.lastIndexOf(memberHead);
    at >= 0;
    at = at === 0 ? -1 : tail.lastIndexOf(memberHead, at - 1)
  ) {
    const beginning = beginningOf(tail.subarray(at));
    if (beginning === recordHead) {
      if (isWhole(tail.subarray(at))) return tail.length;
      return isWhole(tail.subarray(at, unclear)) ? unclear : at;
    }
    // Too little of it is there to see what it is.
    if (recordHead.startsWith(beginning)) unclear = at;
  }
  return tail.length < tailBytes ? 0 : tail.length;
}

/** The first characters that the member unpacks to, as far as there are any. */
function beginningOf(member: Buffer): string {
  try {
    const options = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: maxRecordBytes };
    const head = gunzipSync(member.subarray(0, lookedAtBytes), options);
    return head.toString("latin1", 0, recordHead.length);
  } catch {
    return "no gzip";
  }
}

/** From here to the end: one member or several, and nothing else. */
function isWhole(members: Buffer): boolean {
  try {
    const unpacked: unknown = gunzipSync(members, { maxOutputLength: maxRecordBytes, info: true });
    return (unpacked as { readonly engine: Gunzip }).engine.bytesWritten === members.length;
  } catch {
    return false;
  }
}

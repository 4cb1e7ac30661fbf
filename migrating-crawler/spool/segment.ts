/**
 * One file of the spool: records one after the other, each `length u32 | crc32 u32 | sequence u64 | JSON`,
 * little-endian, the checksum over sequence and JSON. Read up to the first record that is not whole: that
 * is where a kill or a power cut stopped the writing, and what follows was never reported as kept.
 */
import { readFileSync, truncateSync } from "node:fs";
import { crc32 } from "node:zlib";

export const headerBytes = 16;
/** A record is one result; the message allows about 3 MB with the largest page. */
export const maxRecordBytes = 8 * 1024 * 1024;

export interface RecordPlace {
  readonly sequence: number;
  readonly offset: number;
  readonly bytes: number;
}

export function frame(sequence: number, payload: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(headerBytes + payload.length);
  framed.writeUInt32LE(payload.length, 0);
  framed.writeBigUInt64LE(BigInt(sequence), 8);
  payload.copy(framed, headerBytes);
  framed.writeUInt32LE(crc32(framed.subarray(8)), 4);
  return framed;
}

/** The JSON text of a framed record, or null when it is damaged. */
export function unframe(framed: Buffer, sequence: number): string | null {
  if (framed.length < headerBytes) return null;
  const length = framed.readUInt32LE(0);
  if (length > maxRecordBytes || framed.length < headerBytes + length) return null;
  const record = framed.subarray(0, headerBytes + length);
  if (crc32(record.subarray(8)) !== record.readUInt32LE(4)) return null;
  if (Number(record.readBigUInt64LE(8)) !== sequence) return null;
  return record.toString("utf8", headerBytes);
}

/** The whole records of a file, and how many bytes of it they are; cuts off what follows them. */
export function recoverSegment(file: string): { readonly places: RecordPlace[]; readonly lostBytes: number } {
  const bytes = readFileSync(file);
  const places: RecordPlace[] = [];
  let offset = 0;
  while (offset + headerBytes <= bytes.length) {
    const sequence = Number(bytes.readBigUInt64LE(offset + 8));
    const length = headerBytes + bytes.readUInt32LE(offset);
    const follows = places.length === 0 || sequence === places.at(-1)!.sequence + 1;
    if (!follows || unframe(bytes.subarray(offset, offset + length), sequence) === null) break;
    places.push({ sequence, offset, bytes: length });
    offset += length;
  }
  if (offset < bytes.length) truncateSync(file, offset);
  return { places, lostBytes: bytes.length - offset };
}

/**
 * One file of the spool: records one after the other, each `length u32 | crc32 u32 | sequence u64 | payload`
 * (record.ts), little-endian, the checksum over sequence and payload. Read up to the first record that is not
 * whole: that is where a kill or a power cut stopped the writing, and what follows was never reported as kept.
 */
import { readFileSync, truncateSync } from "node:fs";
import { crc32 } from "node:zlib";
import { leaseIdOf } from "./record.ts";

export const headerBytes = 16;
/** A record is one result; the message allows about 3 MB with the largest page. */
export const maxRecordBytes = 8 * 1024 * 1024;

/** The whole records of a file: their sequences count up by one from `first`, the last ends where the file does. */
export interface RecoveredSegment {
  readonly first: number;
  readonly offsets: number[];
  readonly bytes: number;
  readonly lostBytes: number;
  /** The latest sequence of each lease. */
  readonly leases: ReadonlyMap<string, number>;
}

export function frame(sequence: number, payload: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(headerBytes + payload.length);
  framed.writeUInt32LE(payload.length, 0);
  framed.writeBigUInt64LE(BigInt(sequence), 8);
  payload.copy(framed, headerBytes);
  framed.writeUInt32LE(crc32(framed.subarray(8)), 4);
  return framed;
}

/** The payload of a framed record, or null when it is damaged. */
export function unframe(framed: Buffer, sequence: number): Buffer | null {
  if (framed.length < headerBytes) return null;
  const length = framed.readUInt32LE(0);
  if (length > maxRecordBytes || framed.length < headerBytes + length) return null;
  const record = framed.subarray(0, headerBytes + length);
  if (crc32(record.subarray(8)) !== record.readUInt32LE(4)) return null;
  if (Number(record.readBigUInt64LE(8)) !== sequence) return null;
  return record.subarray(headerBytes);
}

/** Reads a file, at most a segment and one record long, and cuts off what follows its whole records. */
export function recoverSegment(file: string): RecoveredSegment {
  const bytes = readFileSync(file);
  const offsets: number[] = [];
  const leases = new Map<string, number>();
  const first = bytes.length < headerBytes ? 0 : Number(bytes.readBigUInt64LE(8));
  let offset = 0;
  while (offset + headerBytes <= bytes.length) {
    const end = offset + headerBytes + bytes.readUInt32LE(offset);
    const sequence = first + offsets.length;
    const payload = unframe(bytes.subarray(offset, end), sequence);
    if (payload === null) break;
    leases.set(leaseIdOf(payload), sequence);
    offsets.push(offset);
    offset = end;
  }
  if (offset < bytes.length) truncateSync(file, offset);
  return { first, offsets, bytes: offset, lostBytes: bytes.length - offset, leases };
}

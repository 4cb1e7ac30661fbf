/**
 * Reads and writes one spool file: records of `length u32 | crc32 u32 | sequence u64 | payload`, little-endian, with
 * the checksum over sequence and payload. Reading ends at the first incomplete record, where a kill or power cut
 * interrupted writing; nothing after it was reported as kept.
 */
import { readFileSync, truncateSync } from "node:fs";
import { crc32 } from "node:zlib";
import type { PackedMessage } from "#protocol/packed/packed-message";

const headerBytes = 16;

/** A record is one result, and the largest page's message has about 3 MB. */
const maxRecordBytes = 8 * 1024 * 1024;

/** The complete records: sequences increase by one from `first`, and the last record ends with the file. */
interface RecoveredSegment {
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

/** Returns the payload, or null when it is damaged. */
export function unframe(framed: Buffer, sequence: number): Buffer | null {
  if (framed.length < headerBytes) return null;
  const length = framed.readUInt32LE(0);
  if (length > maxRecordBytes || framed.length < headerBytes + length) return null;
  const record = framed.subarray(0, headerBytes + length);
  if (crc32(record.subarray(8)) !== record.readUInt32LE(4)) return null;
  if (Number(record.readBigUInt64LE(8)) !== sequence || record[headerBytes] !== form) return null;
  return record.subarray(headerBytes);
}

/** Truncates the file after its complete records; it has at most a segment plus one record. */
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

// Encodes a result packed as it will be shipped, so that packing happens once.
//
// form u8 = 2 | lease u64 | length of the numbers u32 | links + 1, or 0 for none, u32 | numbers | lines, UTF-8

const form = 2;
const [leaseAt, numbersAt, linksAt, headBytes] = [1, 9, 13, 17] as const;

/** A result and its lease. */
export interface KeptResult {
  readonly leaseId: string;
  readonly packed: PackedMessage;
}

export function writeRecord({ leaseId, packed }: KeptResult): Buffer {
  const { numbers, links } = packed;
  const lines = links === null || links.length === 0 ? packed.text : `${packed.text}\n${links.join("\n")}`;
  const record = Buffer.allocUnsafe(headBytes + numbers.length + Buffer.byteLength(lines));
  record.writeUInt8(form, 0);
  record.writeBigUInt64LE(BigInt(leaseId), leaseAt);
  record.writeUInt32LE(numbers.length, numbersAt);
  record.writeUInt32LE(links === null ? 0 : links.length + 1, linksAt);
  numbers.copy(record, headBytes);
  record.write(lines, headBytes + numbers.length, "utf8");
  return record;
}

/** Trusts the content, because its checksum was verified. */
export function readRecord(record: Buffer): KeptResult {
  const numbersEnd = headBytes + record.readUInt32LE(numbersAt);
  const linkCount = record.readUInt32LE(linksAt) - 1;
  const numbers = Buffer.from(record.subarray(headBytes, numbersEnd));
  const lines = record.toString("utf8", numbersEnd).split("\n");
  const links = linkCount < 0 ? null : lines.splice(lines.length - linkCount);
  return { leaseId: leaseIdOf(record), packed: { text: lines.join("\n"), numbers, links } };
}

const leaseIdOf = (record: Buffer): string => String(record.readBigUInt64LE(leaseAt));

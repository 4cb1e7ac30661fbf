/**
 * Stores results on disk until the coordinator has committed them, in append-only segment files `results-<first
 * sequence>.log`. Sequences increase by one for the life of the spool, which its UUID names. Acknowledged files are removed
 * from the front.
 *
 * Durability: the kernel has a record before `append` returns, so the record survives a kill. `fdatasync` follows within a
 * second, so a power cut may lose the last second. Lost results are fetched again when their lease expires. Under Node's
 * permission model, which denies fdatasync, the supervisor flushes instead. A disk that refuses writes (full, read-only) makes
 * the spool appear full: it reports why and tries again later, and the rest of the crawler is unaffected.
 */

import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  openSync,
  readFileSync,
  readSync,
  truncateSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { PackedMessage } from "#protocol/packed/packed-message";
import { maySync } from "../core/private-file.ts";
import { firstSequenceOf, leaveSpoolFolder, openSpoolFolder, segmentFile } from "./spool-folder.ts";

export interface SpooledResult extends KeptResult {
  readonly sequence: number;
}

interface Segment {
  readonly file: string;
  readonly descriptor: number;
  /** The first sequence, and the offset of each record. The last record ends at `bytes`. */
  readonly first: number;
  readonly offsets: number[];
  bytes: number;
}

const segmentBytes = 8 * 1024 * 1024;
const syncEveryMs = 1000;
/** Recent records stay in memory, because they are usually sent at once. */
const recentRecords = 64;
/** After a disk refused a write, it is tried again after this time. */
const retryMs = 10_000;

export class Spool {
  readonly id: string;
  /** Bytes that were removed at opening, after a crash. */
  readonly lostBytes: number;
  readonly leases: Map<string, number> = new Map();
  readonly #folder: string;
  readonly #maxBytes: () => number;
  readonly #segments: Segment[] = [];
  readonly #recent = new Map<number, SpooledResult>();
  #nextSequence = 1;
  #acknowledged = 0;
  #dirty: NodeJS.Timeout | null = null;
  #closed = false;
  #fault: { readonly words: string; readonly atMs: number } | null = null;

  /** Creates the spool if necessary. Throws UsageError if another process owns it or it is not writable. */
  constructor(settings: { readonly home: string; readonly maxBytes: number | (() => number) }) {
    this.#folder = join(settings.home, "spool");
    const { maxBytes } = settings;
    this.#maxBytes = typeof maxBytes === "number" ? () => maxBytes : maxBytes;
    const { id, files } = openSpoolFolder(this.#folder);
    this.id = id;
    this.lostBytes = files.reduce((sum, file) => sum + this.#recover(file), 0);
  }

  get waiting(): number {
    return Math.max(0, this.#nextSequence - 1 - Math.max(this.#acknowledged, this.#firstKept() - 1));
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  get first(): number | null {
    const first = Math.max(this.#firstKept(), this.#acknowledged + 1);
    return first < this.#nextSequence ? first : null;
  }

  get last(): number | null {
    return this.first === null ? null : this.#nextSequence - 1;
  }

  get bytes(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.bytes, 0);
  }

  /** Returns false if nine tenths of the limit are used or the disk refuses writes, so that no more work should be accepted. */
  hasRoom(): boolean {
    return this.bytes < 0.9 * this.#maxBytes() && !this.#isResting();
  }

  get diskFault(): string | null {
    return this.#fault?.words ?? null;
  }

  holdingBack(): string {
    if (this.#isResting()) return `the spool cannot be written: ${this.#fault!.words}`;
    if (this.hasRoom()) return "";
    const mebibytes = Math.floor(this.#maxBytes() / 1024 / 1024);
    return `the spool is full: ${this.waiting} results wait for the coordinator (${mebibytes} MiB are allowed)`;
  }

  /** Returns the sequence number, or null if the spool is full or the disk refuses the write. */
  append(leaseId: string, packed: PackedMessage): number | null {
    // The folder may belong to another process by now.
    if (this.#closed) return null;
    const framed = frame(this.#nextSequence, writeRecord({ leaseId, packed }));
    if (this.bytes + framed.length > this.#maxBytes() || !this.#write(framed)) return null;
    const sequence = this.#nextSequence++;
    this.#remember({ sequence, leaseId, packed });
    this.#syncSoon();
    return sequence;
  }

  read(sequence: number): SpooledResult | null {
    const recent = this.#recent.get(sequence);
    if (recent) return recent;
    const segment = this.#segments.findLast(({ first, offsets }) => offsets.length > 0 && first <= sequence);
    const at = sequence - (segment?.first ?? 0);
    const offset = segment?.offsets[at];
    if (!segment || offset === undefined) return null;
    const framed = Buffer.allocUnsafe((segment.offsets[at + 1] ?? segment.bytes) - offset);
    const payload = isReadWhole(segment, framed, offset) ? unframe(framed, sequence) : null;
    return payload === null ? null : { sequence, ...readRecord(payload) };
  }

  /**
   * Everything up to this sequence is stored by the coordinator. If the coordinator knows more than this spool (a power cut
   * lost the tail), numbering continues after that, because new results would otherwise count as old ones.
   */
  acknowledge(sequence: number): void {
    if (sequence <= this.#acknowledged) return;
    this.#acknowledged = sequence;
    for (const known of this.#recent.keys()) {
      if (known > sequence) break;
      this.#recent.delete(known);
    }
    if (sequence >= this.#nextSequence) this.#nextSequence = sequence + 1;
    this.#try(() => this.#dropAcknowledged());
  }

  /** Removes acknowledged results from the disk at once, and waiting ones when they are acknowledged. */
  erase(): void {
    this.#try(() => {
      if (!this.#closed && (this.#segments.at(-1)?.offsets.length ?? 0) > 0) this.#addSegment();
      this.#dropAcknowledged();
    });
  }

  close(): void {
    this.#closed = true;
    if (this.#dirty !== null) clearTimeout(this.#dirty);
    for (const { descriptor } of this.#segments) {
      if (maySync) this.#try(() => fdatasyncSync(descriptor));
      closeSync(descriptor);
    }
    this.#segments.length = 0;
    leaveSpoolFolder(this.#folder);
  }

  #firstKept(): number {
    return this.#segments.find(({ offsets }) => offsets.length > 0)?.first ?? this.#nextSequence;
  }

  #recover(file: string): number {
    const { offsets, bytes, lostBytes, leases, ...found } = recoverSegment(file);
    const first = offsets.length > 0 ? found.first : firstSequenceOf(file);
    this.#segments.push({ file, descriptor: openSync(file, "r+"), first, offsets, bytes });
    for (const [leaseId, sequence] of leases) this.leases.set(leaseId, sequence);
    this.#nextSequence = Math.max(this.#nextSequence, first + offsets.length);
    return lostBytes;
  }

  /** The next record, or the next opening, overwrites or cuts off a partially written one. */
  #write(framed: Buffer): boolean {
    return this.#try(() => {
      const segment = this.#writable();
      for (let done = 0; done < framed.length; ) {
        done += writeSync(segment.descriptor, framed, done, framed.length - done, segment.bytes + done);
      }
      segment.offsets.push(segment.bytes);
      segment.bytes += framed.length;
      this.#fault = null;
    });
  }

  /** The segment for the next record. Its name preserves the numbering if all others are removed. */
  #writable(): Segment {
    const last = this.#segments.at(-1);
    const follows = last && last.first + last.offsets.length === this.#nextSequence;
    return follows && last.bytes < segmentBytes ? last : this.#addSegment();
  }

  #addSegment(): Segment {
    const file = segmentFile(this.#folder, this.#nextSequence);
    const last = this.#segments.at(-1);
    if (last?.file === file) return last;
    const descriptor = openSync(file, "w+");
    const segment: Segment = { file, descriptor, first: this.#nextSequence, offsets: [], bytes: 0 };
    this.#segments.push(segment);
    return segment;
  }

  #dropAcknowledged(): void {
    const isDone = ({ first, offsets }: Segment) => first + offsets.length - 1 <= this.#acknowledged;
    // A new, empty segment preserves the numbering, so that the full ones can be removed.
    if (this.#segments.every(isDone) && (this.#segments.at(-1)?.bytes ?? 0) >= segmentBytes / 8)
      this.#addSegment();
    while (this.#segments.length > 1 && isDone(this.#segments[0]!)) {
      const segment = this.#segments.shift()!;
      closeSync(segment.descriptor);
      unlinkSync(segment.file);
    }
  }

  #remember(record: SpooledResult): void {
    this.#recent.set(record.sequence, record);
    if (this.#recent.size > recentRecords) this.#recent.delete(this.#recent.keys().next().value!);
  }

  #syncSoon(): void {
    this.#dirty ??= setTimeout(() => {
      this.#dirty = null;
      const last = this.#segments.at(-1);
      // Uses the asynchronous call, because the disk may be slow and sockets are waiting.
      if (last && maySync) fdatasync(last.descriptor, (error) => this.#noteSync(error));
    }, syncEveryMs).unref();
  }

  /** A segment that was dropped in the meantime is closed, and its results are stored elsewhere. */
  #noteSync(error: NodeJS.ErrnoException | null): void {
    if (error !== null && error.code !== "EBADF") this.#note(error);
  }

  #isResting(): boolean {
    return this.#fault !== null && performance.now() - this.#fault.atMs < retryMs;
  }

  #try(work: () => void): boolean {
    try {
      work();
      return true;
    } catch (error) {
      this.#note(error as NodeJS.ErrnoException);
      return false;
    }
  }

  #note({ code = "failed", message }: NodeJS.ErrnoException): void {
    const words = `${meanings[code] ?? message} (${code})`.slice(0, 300);
    this.#fault = { words, atMs: performance.now() };
  }
}

const meanings: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the quota of this user is used up",
  EROFS: "the file system is read-only",
  EACCES: "the folder may not be written",
  EIO: "the disk reports an error",
};

function isReadWhole(segment: Segment, into: Buffer, offset: number): boolean {
  try {
    return readSync(segment.descriptor, into, 0, into.length, offset) === into.length;
  } catch {
    return false;
  }
}

// Reads and writes one spool file: records of `length u32 | crc32 u32 | sequence u64 | payload`, little-endian, with the
// checksum over sequence and payload. Reading ends at the first incomplete record, where a kill or power cut interrupted
// writing. Nothing after it was reported as stored.

const headerBytes = 16;

/** A record is one result, and the message of the largest page has about 3 MB. */
const maxRecordBytes = 8 * 1024 * 1024;

/** The complete records. Sequences increase by one from `first`, and the last record ends with the file. */
interface RecoveredSegment {
  readonly first: number;
  readonly offsets: number[];
  readonly bytes: number;
  readonly lostBytes: number;
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

function unframe(framed: Buffer, sequence: number): Buffer | null {
  if (framed.length < headerBytes) return null;
  const length = framed.readUInt32LE(0);
  if (length > maxRecordBytes || framed.length < headerBytes + length) return null;
  const record = framed.subarray(0, headerBytes + length);
  if (crc32(record.subarray(8)) !== record.readUInt32LE(4)) return null;
  if (Number(record.readBigUInt64LE(8)) !== sequence || record[headerBytes] !== form) return null;
  return record.subarray(headerBytes);
}

/** Truncates the file after its complete records. The file has at most a segment plus one record. */
function recoverSegment(file: string): RecoveredSegment {
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

// Encodes a result in the form in which it will be sent, so that it is packed only once.
//
// form u8 = 2 | lease u64 | length of the numbers u32 | links + 1, or 0 for none, u32 | numbers | lines, UTF-8

const form = 2;
const [leaseAt, numbersAt, linksAt, headBytes] = [1, 9, 13, 17] as const;

interface KeptResult {
  readonly leaseId: string;
  readonly packed: PackedMessage;
}

function writeRecord({ leaseId, packed }: KeptResult): Buffer {
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

/**
 * Results wait here, on disk, until the coordinator says that they are safe in its database. Append-only
 * segment files `results-<first sequence>.log`; sequence numbers count up by one for the life of the spool,
 * which its UUID names. The acknowledged beginning is removed file by file.
 *
 * Durability: a record is handed to the kernel before `append` returns, so it survives a kill of the
 * process; `fdatasync` runs at most a second later, so a power cut may lose the last second. Lost results
 * cost a second fetch: the lease of their URLs runs out. Under Node's permission model, which denies fdatasync, the
 * dock does that. A disk that takes nothing (full, read-only) is a
 * spool without room: it says why, is tried again after a while, and nothing else of the crawler is hurt.
 */
import { closeSync, fdatasync, fdatasyncSync, openSync, readSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { PackedMessage } from "#protocol/packed/packed-message";
import { maySync } from "../core/flushed-write.ts";
import { frame, type KeptResult, readRecord, recoverSegment, unframe, writeRecord } from "./segment.ts";
import { firstSequenceOf, leaveSpoolFolder, openSpoolFolder, segmentFile } from "./spool-folder.ts";

export interface SpooledResult extends KeptResult {
  readonly sequence: number;
}

interface Segment {
  readonly file: string;
  readonly descriptor: number;
  /** Sequence of its first record, and where each begins; the last ends at `bytes`. */
  readonly first: number;
  readonly offsets: number[];
  bytes: number;
}

const segmentBytes = 8 * 1024 * 1024;
const syncEveryMs = 1000;
/** Records written lately, kept in memory because they are shipped at once when the coordinator is there. */
const recentRecords = 64;
/** A disk that took nothing is tried again after this. */
const retryMs = 10_000;

export class Spool {
  readonly id: string;
  /** Bytes cut off at the opening, after a crash. */
  readonly lostBytes: number;
  /** What was found at the opening: the latest sequence of each lease. */
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

  /** Opens or makes the spool of a home folder. Throws UsageError when another process has it, or it cannot be written. */
  constructor(settings: { readonly home: string; readonly maxBytes: number | (() => number) }) {
    this.#folder = join(settings.home, "spool");
    const { maxBytes } = settings;
    this.#maxBytes = typeof maxBytes === "number" ? () => maxBytes : maxBytes;
    const { id, files } = openSpoolFolder(this.#folder);
    this.id = id;
    this.lostBytes = files.reduce((sum, file) => sum + this.#recover(file), 0);
  }

  /** Results not acknowledged yet. */
  get waiting(): number {
    return Math.max(0, this.#nextSequence - 1 - Math.max(this.#acknowledged, this.#firstKept() - 1));
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** The oldest sequence that is waiting, or null. */
  get first(): number | null {
    const first = Math.max(this.#firstKept(), this.#acknowledged + 1);
    return first < this.#nextSequence ? first : null;
  }

  /** The newest sequence that is waiting, or null. */
  get last(): number | null {
    return this.first === null ? null : this.#nextSequence - 1;
  }

  get bytes(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.bytes, 0);
  }

  /** False when no more work should be taken on: nine tenths of the bound are used, or the disk takes nothing. */
  hasRoom(): boolean {
    return this.bytes < 0.9 * this.#maxBytes() && !this.#isResting();
  }

  /** What the disk refused last, until it takes something again; null: nothing. */
  get diskFault(): string | null {
    return this.#fault?.words ?? null;
  }

  /** Why there is no room, in words; empty when there is. */
  holdingBack(): string {
    if (this.#isResting()) return `the spool cannot be written: ${this.#fault!.words}`;
    if (this.hasRoom()) return "";
    const mebibytes = Math.floor(this.#maxBytes() / 1024 / 1024);
    return `the spool is full: ${this.waiting} results wait for the coordinator (${mebibytes} MiB are allowed)`;
  }

  /** Keeps a result; returns its sequence number, or null when the spool is full or the disk takes nothing. */
  append(leaseId: string, packed: PackedMessage): number | null {
    // The folder may be another process's by now.
    if (this.#closed) return null;
    const framed = frame(this.#nextSequence, writeRecord({ leaseId, packed }));
    if (this.bytes + framed.length > this.#maxBytes() || !this.#write(framed)) return null;
    const sequence = this.#nextSequence++;
    this.#remember({ sequence, leaseId, packed });
    this.#syncSoon();
    return sequence;
  }

  /** A waiting result by its sequence; null when it is not there (any more) or damaged on disk. */
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
   * Everything up to this sequence is safe elsewhere. When the coordinator knows more than we do (the tail
   * was lost in a power cut), numbering goes on after what it knows, or new results would count as old ones.
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

  /** What is acknowledged goes from the disk now, not when a file is full; what waits, with its acknowledgement. */
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

  /** The bytes that had to be cut off. */
  #recover(file: string): number {
    const { offsets, bytes, lostBytes, leases, ...found } = recoverSegment(file);
    const first = offsets.length > 0 ? found.first : firstSequenceOf(file);
    this.#segments.push({ file, descriptor: openSync(file, "r+"), first, offsets, bytes });
    for (const [leaseId, sequence] of leases) this.leases.set(leaseId, sequence);
    this.#nextSequence = Math.max(this.#nextSequence, first + offsets.length);
    return lostBytes;
  }

  /** A record that is written in part only is written over by the next one, or cut off at the next opening. */
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

  /** The segment that the next record goes to; its name keeps the numbering when all else is removed. */
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
    // A new, empty segment carries the numbering on, so that the full ones can go.
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
      // Not the Sync one: the disk may take its time, and sockets are waiting.
      if (last && maySync) fdatasync(last.descriptor, (error) => this.#noteSync(error));
    }, syncEveryMs).unref();
  }

  /** A segment that was dropped meanwhile is closed, and its results are safe elsewhere. */
  #noteSync(error: NodeJS.ErrnoException | null): void {
    if (error !== null && error.code !== "EBADF") this.#note(error);
  }

  #isResting(): boolean {
    return this.#fault !== null && performance.now() - this.#fault.atMs < retryMs;
  }

  /** What the disk refuses is remembered in words. */
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

/**
 * Results wait here, on disk, until the coordinator says that they are safe in its database. Append-only
 * segment files `results-<first sequence>.log`; sequence numbers count up by one for the life of the spool,
 * which its UUID names. The acknowledged beginning is removed file by file.
 *
 * Durability: a record is handed to the kernel before `append` returns, so it survives a kill of the
 * process; `fdatasync` runs at most a second later, so a power cut may lose the last second. Lost results
 * cost a second fetch: the lease of their URLs runs out. One process at a time: a lock file names it.
 */

import { randomUUID } from "node:crypto";
import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { UsageError } from "#core/errors";
import type { FetchResult } from "#protocol/result";
import { frame, type RecordPlace, recoverSegment, unframe } from "./segment.ts";

export interface SpooledResult {
  readonly sequence: number;
  readonly leaseId: string;
  readonly result: FetchResult;
}

interface Segment {
  readonly file: string;
  readonly descriptor: number;
  readonly places: RecordPlace[];
  bytes: number;
}

const segmentBytes = 8 * 1024 * 1024;
const syncEveryMs = 1000;
/** Records written lately, kept in memory because they are shipped at once when the coordinator is there. */
const recentRecords = 64;

export class Spool {
  readonly id: string;
  /** Bytes cut off at the opening, after a crash. */
  readonly lostBytes: number;
  readonly #folder: string;
  readonly #maxBytes: number;
  readonly #segments: Segment[] = [];
  readonly #recent = new Map<number, SpooledResult>();
  #nextSequence = 1;
  #acknowledged = 0;
  #dirty: NodeJS.Timeout | null = null;

  /** Opens or makes the spool of a home folder. Throws UsageError when another process has it open. */
  constructor(settings: { readonly home: string; readonly maxBytes: number }) {
    this.#folder = join(settings.home, "spool");
    this.#maxBytes = settings.maxBytes;
    mkdirSync(this.#folder, { recursive: true });
    takeLock(join(this.#folder, "lock"));
    this.id = readOrMakeId(join(this.#folder, "id"));
    this.lostBytes = this.#recover();
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

  /** False when no more work should be taken on: nine tenths of the bound are used. */
  hasRoom(): boolean {
    return this.bytes < 0.9 * this.#maxBytes;
  }

  /** Keeps a result; returns its sequence number, or null when the spool is full. */
  append(leaseId: string, result: FetchResult): number | null {
    const payload = Buffer.from(JSON.stringify({ leaseId, result }));
    if (this.bytes + payload.length > this.#maxBytes) return null;
    const sequence = this.#nextSequence;
    const segment = this.#writable();
    const framed = frame(sequence, payload);
    writeSync(segment.descriptor, framed, 0, framed.length, segment.bytes);
    segment.places.push({ sequence, offset: segment.bytes, bytes: framed.length });
    segment.bytes += framed.length;
    this.#nextSequence++;
    this.#remember({ sequence, leaseId, result });
    this.#syncSoon();
    return sequence;
  }

  /** A waiting result by its sequence; null when it is not there (any more) or damaged on disk. */
  read(sequence: number): SpooledResult | null {
    const recent = this.#recent.get(sequence);
    if (recent) return recent;
    const segment = this.#segments.findLast(
      (candidate) => (candidate.places[0]?.sequence ?? Infinity) <= sequence,
    );
    const place = segment?.places[sequence - (segment.places[0]?.sequence ?? 0)];
    if (!segment || !place) return null;
    const framed = Buffer.allocUnsafe(place.bytes);
    readSync(segment.descriptor, framed, 0, place.bytes, place.offset);
    const text = unframe(framed, sequence);
    if (text === null) return null;
    const { leaseId, result } = JSON.parse(text) as Omit<SpooledResult, "sequence">;
    return { sequence, leaseId, result };
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
    this.#dropAcknowledged();
  }

  close(): void {
    if (this.#dirty !== null) clearTimeout(this.#dirty);
    for (const segment of this.#segments) {
      fdatasyncSync(segment.descriptor);
      closeSync(segment.descriptor);
    }
    this.#segments.length = 0;
    unlinkSync(join(this.#folder, "lock"));
  }

  #firstKept(): number {
    return (
      this.#segments.find((segment) => segment.places.length > 0)?.places[0]?.sequence ?? this.#nextSequence
    );
  }

  #recover(): number {
    let lost = 0;
    const files = readdirSync(this.#folder).filter((name) => /^results-\d{16}\.log$/.test(name));
    for (const name of files.sort()) {
      const file = join(this.#folder, name);
      const { places, lostBytes } = recoverSegment(file);
      lost += lostBytes;
      const descriptor = openSync(file, "r+");
      this.#segments.push({ file, descriptor, places, bytes: fstatSync(descriptor).size });
      const named = Number(/\d{16}/.exec(name)![0]);
      this.#nextSequence = Math.max(this.#nextSequence, named, (places.at(-1)?.sequence ?? 0) + 1);
    }
    return lost;
  }

  /** The segment that the next record goes to; its name keeps the numbering when all else is removed. */
  #writable(): Segment {
    const last = this.#segments.at(-1);
    const follows =
      last && (last.places.at(-1)?.sequence ?? numberOf(last.file) - 1) === this.#nextSequence - 1;
    if (last && follows && last.bytes < segmentBytes) return last;
    const name = `results-${String(this.#nextSequence).padStart(16, "0")}.log`;
    const file = join(this.#folder, name);
    const segment: Segment = { file, descriptor: openSync(file, "w+"), places: [], bytes: 0 };
    this.#segments.push(segment);
    return segment;
  }

  #dropAcknowledged(): void {
    const isDone = (segment: Segment) => (segment.places.at(-1)?.sequence ?? 0) <= this.#acknowledged;
    if (this.#segments.every(isDone) && this.bytes > 0) this.#writeEmpty();
    while (this.#segments.length > 1 && isDone(this.#segments[0]!)) {
      const segment = this.#segments.shift()!;
      closeSync(segment.descriptor);
      unlinkSync(segment.file);
    }
  }

  /** A new, empty segment carries the numbering on, so that the full ones can go. */
  #writeEmpty(): void {
    const last = this.#segments.at(-1)!;
    if (last.bytes < segmentBytes / 8) return;
    const name = `results-${String(this.#nextSequence).padStart(16, "0")}.log`;
    const file = join(this.#folder, name);
    this.#segments.push({ file, descriptor: openSync(file, "w+"), places: [], bytes: 0 });
  }

  #remember(record: SpooledResult): void {
    this.#recent.set(record.sequence, record);
    if (this.#recent.size > recentRecords) this.#recent.delete(this.#recent.keys().next().value!);
  }

  #syncSoon(): void {
    this.#dirty ??= setTimeout(() => {
      this.#dirty = null;
      const last = this.#segments.at(-1);
      if (last) fdatasyncSync(last.descriptor);
    }, syncEveryMs).unref();
  }
}

const numberOf = (file: string) => Number(/(\d{16})\.log$/.exec(file)![1]);

function readOrMakeId(file: string): string {
  try {
    const id = readFileSync(file, "utf8").trim();
    if (/^[0-9a-f-]{36}$/.test(id)) return id;
  } catch {
    // The spool is new.
  }
  const id = randomUUID();
  writeFileSync(`${file}.new`, `${id}\n`, { flush: true });
  renameSync(`${file}.new`, file);
  return id;
}

/** The lock holds a process id; one that is no longer running has lost it. */
function takeLock(file: string): void {
  try {
    writeFileSync(file, String(process.pid), { flag: "wx" });
    return;
  } catch (error) {
    if ((error as { code?: string }).code !== "EEXIST") throw error;
  }
  const holder = Number(readFileSync(file, "utf8"));
  if (holder !== process.pid && isRunning(holder)) {
    throw new UsageError(`${file}: the spool is in use by process ${holder}`);
  }
  writeFileSync(file, String(process.pid));
}

function isRunning(processId: number): boolean {
  if (!Number.isInteger(processId) || processId <= 0) return false;
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code === "EPERM";
  }
}

/**
 * Writes WARC files: each record is compressed separately (gzip) and appended to `<name>.warc.gz.open`, which becomes
 * `<name>.warc.gz` when full or at stop. At the limit for all files, the oldest are removed, or writing stops and that is
 * reported. A disk that refuses writes also stops the writing, while the crawl continues.
 */
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { constants, type Gunzip, gunzipSync, gzip } from "node:zlib";
import { ConfigError } from "#core/errors";

export interface WarcFilesSettings {
  readonly folder: string;
  /** Maximum size of all files together, and of one. */
  readonly maxBytes: number;
  readonly fileBytes: number;
  readonly whenFull: "stop" | "remove-oldest";
  readonly name: string;
  readonly firstRecord: (file: string) => Buffer;
  readonly now: () => Date;
}

interface OpenFile {
  readonly path: string;
  readonly descriptor: number;
  bytes: number;
}

const compress = promisify(gzip);
const ours = /\.warc\.gz(\.open)?$/;

export class WarcFiles {
  readonly #settings: WarcFilesSettings;
  readonly #prefix: string;
  #finished: { readonly path: string; readonly bytes: number }[] = [];
  #open: OpenFile | null = null;
  #serial = 0;
  #turn: Promise<void> = Promise.resolve();
  #stopped = "";

  /** Throws ConfigError if the folder is not writable. */
  constructor(settings: WarcFilesSettings) {
    this.#settings = settings;
    this.#prefix = `nearcrawl-${settings.name}-`;
    try {
      mkdirSync(settings.folder, { recursive: true });
      this.#takeOver();
    } catch (error) {
      throw new ConfigError([`warc.folder: ${error instanceof Error ? error.message : String(error)}`]);
    }
  }

  get stopped(): string {
    return this.#stopped;
  }

  get bytes(): number {
    return this.#finished.reduce((sum, { bytes }) => sum + bytes, 0) + (this.#open?.bytes ?? 0);
  }

  /** Appends related records to one file. Resolves when they have been written or abandoned. */
  append(records: readonly Buffer[]): Promise<void> {
    this.#turn = this.#turn.then(() => this.#append(records));
    return this.#turn;
  }

  async close(): Promise<void> {
    await this.#turn;
    this.#finish();
  }

  async #append(records: readonly Buffer[]): Promise<void> {
    if (this.#stopped !== "") return;
    try {
      const packed = await Promise.all(records.map((record) => compress(record)));
      const bytes = packed.reduce((sum, { length }) => sum + length, 0);
      if ((this.#open?.bytes ?? 0) >= this.#settings.fileBytes) this.#finish();
      if (!this.#makeRoom(bytes)) return;
      this.#open ??= await this.#begin();
      for (const piece of packed) write(this.#open, piece);
    } catch (error) {
      this.#stopped = `no more WARC is written: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  #makeRoom(bytes: number): boolean {
    const { maxBytes, whenFull } = this.#settings;
    while (this.bytes + bytes > maxBytes) {
      const oldest = whenFull === "remove-oldest" ? this.#finished.shift() : undefined;
      if (oldest === undefined) {
        this.#stopped = `no more WARC is written: the files would take more than the ${maxBytes} bytes allowed`;
        return false;
      }
      rmSync(oldest.path, { force: true });
    }
    return true;
  }

  async #begin(): Promise<OpenFile> {
    const stamp = this.#settings.now().toISOString().replace(/\D/g, "");
    const file = `${this.#prefix}${stamp}-${String(this.#serial++).padStart(5, "0")}.warc.gz`;
    const path = join(this.#settings.folder, `${file}.open`);
    const open: OpenFile = { path, descriptor: openSync(path, "wx"), bytes: 0 };
    write(open, await compress(this.#settings.firstRecord(file)));
    return open;
  }

  #finish(): void {
    if (this.#open === null) return;
    const { path, descriptor, bytes } = this.#open;
    this.#open = null;
    closeSync(descriptor);
    this.#finished.push({ path: finishedName(path), bytes });
  }

  /** Counts the files of earlier processes and truncates incomplete records. */
  #takeOver(): void {
    const { folder } = this.#settings;
    const names = readdirSync(folder).filter((name) => name.startsWith(this.#prefix) && ours.test(name));
    for (const name of names.sort()) {
      const path = join(folder, name);
      if (name.endsWith(".open")) cutTornEnd(path);
      const { size } = statSync(path);
      this.#finished.push({ path: name.endsWith(".open") ? finishedName(path) : path, bytes: size });
    }
  }
}

/** Retries from the same position until everything is written, so that a full disk leaves no partial record. */
function write(file: OpenFile, piece: Buffer): void {
  for (let done = 0; done < piece.length; ) {
    done += writeSync(file.descriptor, piece, done, piece.length - done, file.bytes + done);
  }
  file.bytes += piece.length;
}

function finishedName(path: string): string {
  const finished = path.replace(/\.open$/, "");
  renameSync(path, finished);
  return finished;
}

// Truncates an incomplete record that a kill or power cut left at the end of a WARC file. Each record is a separate gzip
// member, so only the last one can be incomplete. Its start is searched for from the end. gzip inside a record (a body as
// transferred) does not unpack to the start of a record.

/** The header of every member that node:zlib writes (RFC 1952: deflate, no flags, no time). */
const memberHead = Buffer.from([0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00]);

const recordHead = "WARC/1.1\r\n";

/** No record is longer, because at most 5 MB are kept of a body. */
const tailBytes = 16 * 1024 * 1024;

const maxRecordBytes = 64 * 1024 * 1024;

/** Enough of a member to recognise its start. */
const lookedAtBytes = 4096;

function cutTornEnd(path: string): void {
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

/** Returns how much of the tail consists of complete records. */
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
    // Too little is left to recognise the start of a record.
    if (recordHead.startsWith(beginning)) unclear = at;
  }
  return tail.length < tailBytes ? 0 : tail.length;
}

function beginningOf(member: Buffer): string {
  try {
    const options = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: maxRecordBytes };
    const head = gunzipSync(member.subarray(0, lookedAtBytes), options);
    return head.toString("latin1", 0, recordHead.length);
  } catch {
    return "no gzip";
  }
}

/** Checks that the rest consists of one or more complete members. */
function isWhole(members: Buffer): boolean {
  try {
    const unpacked: unknown = gunzipSync(members, { maxOutputLength: maxRecordBytes, info: true });
    return (unpacked as { readonly engine: Gunzip }).engine.bytesWritten === members.length;
  } catch {
    return false;
  }
}

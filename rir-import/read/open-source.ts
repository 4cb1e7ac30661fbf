/**
 * Opens a registry file, however it is packed, as one or more named streams of unpacked bytes. Of a ZIP it reads the
 * registry data and skips empty entries and documents. Memory stays constant. The digest covers the file on disk.
 */
import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readdir, realpath, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { Readable } from "node:stream";
import { crc32, createGunzip, createInflateRaw } from "node:zlib";
import { type Entry, openPromise, type ZipFile } from "yauzl";
import { SourceFileError } from "#core/errors";
import type { PublishedFormat } from "../formats/published.ts";
import { type RegistryFormat, sniffBytes, sniffFormat, sniffPacking } from "./sniff.ts";

/** A gzip or ZIP that unpacks to more is refused. This is thirty times the largest registry dump. */
const maxUnpackedBytes = 2 ** 38;

/** Dumps unpack to 5 to 15 times their size. Past `unpackedBytesToJudge`, a larger ratio means a decompression bomb. */
const maxUnpackedShare = 200;

const unpackedBytesToJudge = 2 ** 26;

/** Chunks are large because each has a fixed cost. */
const chunkBytes = 2 ** 20;

export interface SourcePart {
  /** The file, or `archive.zip!entry`. */
  readonly file: string;
  readonly format: RegistryFormat | PublishedFormat;
  readonly chunks: AsyncIterable<Buffer>;
  readonly remark?: string;
}

interface OpenedSource {
  readonly file: string;
  readonly bytes: number;
  readonly modifiedAt: Date;
  readonly parts: AsyncIterable<SourcePart>;
  /** The SHA-256 of the file on disk in hex. Call it after reading every part to its end. */
  sha256(): Promise<string>;
}

type OnBytes = (bytes: number) => void;

/** A list of places in a known format. */
export interface NamedList {
  readonly file: string;
  readonly format: PublishedFormat;
}

export type SourcePath = string | NamedList;

export const fileOf = (path: SourcePath): string => (typeof path === "string" ? path : path.file);

/** If no format is given, the first bytes determine it. */
export async function openSource(
  file: string,
  onBytes: OnBytes,
  format: PublishedFormat | null = null,
): Promise<OpenedSource> {
  const facts = await stat(file).catch((error: unknown) => Promise.reject(readError(file, error)));
  if (!facts.isFile()) throw new SourceFileError(file, null, "not a file");
  const start = await firstBytes(file).catch((error: unknown) => Promise.reject(readError(file, error)));
  const packing = sniffPacking(start);
  const hash = createHash("sha256");
  const disk = { file, bytes: facts.size, modifiedAt: facts.mtime };
  if (packing === "zip") {
    return { ...disk, parts: zipParts(file, onBytes), sha256: () => digestOfFile(file) };
  }
  const raw = diskChunks(file, hash, onBytes);
  const chunks = packing === "gzip" ? gunzip(file, raw, facts.size) : raw;
  return { ...disk, parts: singlePart(file, chunks, format), sha256: async () => hash.digest("hex") };
}

async function* singlePart(
  file: string,
  chunks: AsyncGenerator<Buffer>,
  told: PublishedFormat | null,
): AsyncGenerator<SourcePart> {
  const { start, all } = await peek(chunks);
  const format = told ?? formatOrError(file, start);
  if (format instanceof Error) {
    await chunks.return(undefined);
    throw format;
  }
  yield { file, format, chunks: all };
}

/** At least one entry must be registry data. Otherwise throws the error of the last entry, which says what was found. */
async function* zipParts(file: string, onBytes: OnBytes): AsyncGenerator<SourcePart> {
  const archive = await ZipArchive.open(file);
  try {
    yield* dataOf(archive, file, onBytes);
  } finally {
    archive.close();
  }
}

async function* dataOf(archive: ZipArchive, file: string, onBytes: OnBytes): AsyncGenerator<SourcePart> {
  let found = 0;
  let lastError: unknown = new SourceFileError(file, null, "the ZIP archive has no entry with data");
  const left = xmlFirst(await archive.entries());
  for (let entry = left.shift(); entry !== undefined; entry = left.shift()) {
    if (entry.unpackedBytes === 0) continue;
    const name = `${file}!${entry.name}`;
    if (entry.unpackedBytes > maxUnpackedBytes)
      throw new SourceFileError(name, null, "too large when unpacked");
    if (isBomb(entry.unpackedBytes, entry.packedBytes)) throw bombError(name);
    const chunks = archive.read(entry);
    const { start, all } = await peek(chunks);
    const format = formatOrError(name, start);
    if (format instanceof Error) {
      lastError = format;
      await chunks.return(undefined);
      continue;
    }
    found++;
    onBytes(entry.packedBytes);
    const remark = format === "arin-xml" ? passOverText(entry, left) : null;
    yield { file: name, format, chunks: all, ...(remark && { remark }) };
  }
  if (found === 0) throw lastError;
}

const stemOf = ({ name }: ZipEntry) => name.replace(/\.[^./]*$/, "");

function xmlFirst(entries: readonly ZipEntry[]): ZipEntry[] {
  const isXml = ({ name }: ZipEntry) => /\.xml$/i.test(name);
  return [...entries.filter(isXml), ...entries.filter((entry) => !isXml(entry))];
}

/** ARIN's archive has everything twice, as XML and as text (`arin_db.xml`, `arin_db.txt`). The XML contains more. */
function passOverText(xml: ZipEntry, left: ZipEntry[]): string | null {
  const at = left.findIndex((entry) => /\.txt$/i.test(entry.name) && stemOf(entry) === stemOf(xml));
  const [text] = at < 0 ? [] : left.splice(at, 1);
  return text === undefined ? null : `${text.name} holds the same as text and is passed over`;
}

function formatOrError(name: string, start: Buffer): SourcePart["format"] | SourceFileError {
  try {
    return sniffFormat(name, start);
  } catch (error) {
    if (error instanceof SourceFileError) return error;
    throw error;
  }
}

/** The UTF-8 byte order mark that editors add. */
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/** DOS and some old programs end text files with one or more of these bytes. */
const dosEnd = 0x1a;

/** Maximum number of such bytes. */
const mostDosEnds = 65_536;

async function* withoutDosEnd(chunks: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  let held: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of chunks) {
      const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      let end = bytes.length;
      while (end > 0 && bytes.length - end < mostDosEnds && [dosEnd, 0x0a, 0x0d].includes(bytes[end - 1]!))
        end--;
      const at = bytes.indexOf(dosEnd, end);
      const kept = at < 0 || bytes.length - at > mostDosEnds ? bytes.length : at;
      held = Buffer.from(bytes.subarray(kept));
      if (kept > 0) yield bytes.subarray(0, kept);
    }
  } finally {
    await chunks.return(undefined);
  }
}

async function peek(packed: AsyncGenerator<Buffer>): Promise<{ start: Buffer; all: AsyncIterable<Buffer> }> {
  const chunks = withoutDosEnd(packed);
  const head: Buffer[] = [];
  for (let bytes = 0; bytes < sniffBytes; ) {
    const next = await chunks.next();
    if (next.done) break;
    head.push(next.value);
    bytes += next.value.length;
  }
  if (head[0]?.subarray(0, 3).equals(byteOrderMark)) head[0] = head[0].subarray(3);
  async function* all(): AsyncGenerator<Buffer> {
    try {
      yield* head;
      yield* chunks;
    } finally {
      await chunks.return(undefined);
    }
  }
  return { start: Buffer.concat(head).subarray(0, sniffBytes), all: all() };
}

async function* diskChunks(file: string, hash: Hash, onBytes: OnBytes): AsyncGenerator<Buffer> {
  const stream = createReadStream(file, { highWaterMark: chunkBytes });
  let failure: unknown = null;
  stream.on("error", (error) => {
    failure = error;
  });
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      hash.update(chunk);
      onBytes(chunk.length);
      yield chunk;
    }
  } catch (error) {
    throw error === failure ? readError(file, error) : error;
  }
}

async function* gunzip(
  file: string,
  packed: AsyncGenerator<Buffer>,
  packedBytes: number,
): AsyncGenerator<Buffer> {
  const stream = createGunzip({ chunkSize: chunkBytes });
  const source = Readable.from(packed, { objectMode: false }).on("error", (error) => stream.destroy(error));
  let bytes = 0;
  try {
    for await (const chunk of source.pipe(stream) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxUnpackedBytes) throw new SourceFileError(file, null, "too large when unpacked");
      if (isBomb(bytes, packedBytes)) throw bombError(file);
      yield chunk;
    }
  } catch (error) {
    throw error instanceof SourceFileError ? error : gzipError(file, error as NodeJS.ErrnoException);
  } finally {
    source.destroy();
    stream.destroy();
  }
}

function isBomb(unpackedBytes: number, packedBytes: number): boolean {
  return unpackedBytes > unpackedBytesToJudge && unpackedBytes > packedBytes * maxUnpackedShare;
}

const bombError = (file: string) =>
  new SourceFileError(
    file,
    null,
    `unpacks to more than ${maxUnpackedShare} times its size: not a registry file`,
  );

function gzipError(file: string, error: NodeJS.ErrnoException): SourceFileError {
  const reason =
    error.code === "Z_BUF_ERROR"
      ? "the gzip data end early: the download is incomplete"
      : `damaged gzip data: ${error.message}`;
  return new SourceFileError(file, null, reason, { cause: error });
}

async function firstBytes(file: string): Promise<Buffer> {
  const handle = await open(file, "r");
  try {
    const buffer = Buffer.alloc(4);
    const { bytesRead } = await handle.read(buffer, 0, 4, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

async function digestOfFile(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) hash.update(chunk);
  return hash.digest("hex");
}

// Converts a disk error into one that names the file and the reason.

function readError(path: string, error: unknown): SourceFileError {
  const { code, message } = error as NodeJS.ErrnoException;
  const reason = code === "ENOENT" ? "no such file or folder" : `cannot be read: ${message}`;
  return new SourceFileError(path, null, reason, { cause: error });
}

// Expands files and folders into a fixed list without duplicates. In a folder, documents beside dumps (checksums,
// signatures, read-mes, hidden files) are skipped. Every other file must be readable, or the import stops.

const besideData = /^\.|\.(md5|sha\d*|asc|sig|gpg|readme|md|html?)$|^(readme|license|copying)\b|\.part$/i;
const maxDepth = 8;

/** Keeps the given order, and sorts each folder by name. Throws SourceFileError for a missing path or an empty folder. */
export async function listSourceFiles<Path extends SourcePath>(
  paths: readonly Path[],
): Promise<readonly (Path | string)[]> {
  const files = new Map<string, Path | string>();
  for (const path of paths) {
    const found = typeof path === "string" ? await filesAt(path, 0) : [path];
    if (found.length === 0)
      throw new SourceFileError(fileOf(path), null, "the folder holds no registry files");
    for (const file of found) {
      const real = await realpath(fileOf(file));
      if (!files.has(real)) files.set(real, file);
    }
  }
  return [...files.values()];
}

async function filesAt(path: string, depth: number): Promise<readonly string[]> {
  const facts = await stat(path).catch((error: unknown) => Promise.reject(readError(path, error)));
  if (!facts.isDirectory()) return [path];
  if (depth > maxDepth) throw new SourceFileError(path, null, `folders nested deeper than ${maxDepth}`);
  const entries = await readdir(path).catch((error: unknown) => Promise.reject(readError(path, error)));
  const names = entries.filter((name) => !besideData.test(basename(name))).sort();
  const lists = await Promise.all(names.map((name) => filesAt(join(path, name), depth + 1)));
  return lists.flat();
}

// Reads ZIP archives with `yauzl`, one entry at a time as a stream, checked against the directory's size and checksum.

interface ZipEntry {
  readonly name: string;
  readonly packedBytes: number;
  readonly unpackedBytes: number;
  readonly entry: Entry;
}

const maxEntries = 10_000;
const maxNameCharacters = 300;
const stored = 0;

class ZipArchive {
  readonly #file: string;
  readonly #archive: ZipFile;

  private constructor(file: string, archive: ZipFile) {
    this.#file = file;
    this.#archive = archive;
  }

  static async open(file: string): Promise<ZipArchive> {
    // Entry names are only shown, so one that points outside the archive is harmless.
    const options = { lazyEntries: true, autoClose: false, decodeStrings: false };
    try {
      return new ZipArchive(file, await openPromise(file, options));
    } catch (error) {
      throw unreadable(file, error);
    }
  }

  close(): void {
    this.#archive.close();
  }

  /** Returns the entries in the order of the directory, without folders. Call once. */
  async entries(): Promise<ZipEntry[]> {
    const { entryCount } = this.#archive;
    if (entryCount > maxEntries) {
      throw new SourceFileError(this.#file, null, `the ZIP directory is too large (${entryCount} entries)`);
    }
    const entries: ZipEntry[] = [];
    try {
      for await (const entry of this.#archive.eachEntry()) {
        const name = entry.fileNameRaw.toString("utf8").slice(0, maxNameCharacters);
        if (name.endsWith("/")) continue;
        const { compressedSize: packedBytes, uncompressedSize: unpackedBytes } = entry;
        entries.push({ name: name.replace(/\p{Cc}/gu, "?"), packedBytes, unpackedBytes, entry });
      }
    } catch (error) {
      throw unreadable(this.#file, error);
    }
    return entries;
  }

  /** Yields the unpacked bytes. Throws SourceFileError at the end when they differ from the directory. */
  async *read({ name, entry }: ZipEntry): AsyncGenerator<Buffer> {
    const file = `${this.#file}!${name}`;
    if (entry.isEncrypted()) throw new SourceFileError(file, null, "the ZIP entry is encrypted");
    if (!entry.canDecodeFileData()) {
      const method = `method ${entry.compressionMethod}, not stored or deflated`;
      throw new SourceFileError(file, null, `the ZIP entry is packed by ${method}`);
    }
    let crc = 0;
    let bytes = 0;
    try {
      for await (const chunk of this.#unpacked(entry)) {
        crc = crc32(chunk, crc);
        bytes += chunk.length;
        if (bytes > entry.uncompressedSize) throw new Error("more bytes than the ZIP directory states");
        yield chunk;
      }
    } catch (error) {
      const reason = `the ZIP entry is damaged: ${(error as Error).message}`;
      throw new SourceFileError(file, null, reason, { cause: error });
    }
    if (bytes !== entry.uncompressedSize || crc !== entry.crc32) {
      const reason = "the ZIP entry is damaged: size or checksum differ from its directory";
      throw new SourceFileError(file, null, reason);
    }
  }

  /** Uses large chunks. yauzl's own, of 16 KB, take three times as long. */
  async *#unpacked(entry: Entry): AsyncGenerator<Buffer> {
    const packed = await this.#archive.openReadStreamPromise(entry, { decodeFileData: false });
    if (entry.compressionMethod === stored) return yield* packed;
    const inflate = createInflateRaw({ chunkSize: chunkBytes });
    packed.on("error", (error) => inflate.destroy(error));
    try {
      yield* packed.pipe(inflate);
    } finally {
      packed.unpipe(inflate).destroy();
      inflate.destroy();
    }
  }
}

function unreadable(file: string, error: unknown): SourceFileError {
  if (error instanceof SourceFileError) return error;
  const reason = `the ZIP archive is damaged or ends early: ${(error as Error).message}`;
  return new SourceFileError(file, null, reason, { cause: error });
}

/**
 * Reads ZIP archives with `yauzl`: one entry at a time as a stream, checked against the size and checksum in the
 * directory. The number of entries is limited, and so is the unpacked size (open-source.ts).
 */
import { crc32, createInflateRaw } from "node:zlib";
import { type Entry, openPromise, type ZipFile } from "yauzl";
import { SourceFileError } from "#core/errors";

export interface ZipEntry {
  readonly name: string;
  readonly packedBytes: number;
  readonly unpackedBytes: number;
  readonly entry: Entry;
}

const maxEntries = 10_000;
const maxNameCharacters = 300;
const chunkBytes = 2 ** 20;
const stored = 0;

export class ZipArchive {
  readonly #file: string;
  readonly #archive: ZipFile;

  private constructor(file: string, archive: ZipFile) {
    this.#file = file;
    this.#archive = archive;
  }

  static async open(file: string): Promise<ZipArchive> {
    // Names are only shown, so one that leads out of the archive is harmless.
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

  /** In the order of the directory, without folders. Call once. */
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

  /** Yields the unpacked bytes; ends with SourceFileError when they differ from the directory. */
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

  /** Uses large pieces: yauzl's own, of 16 KB, take three times as long. */
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

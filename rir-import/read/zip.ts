/**
 * Reads ZIP archives (PKWARE APPNOTE 6.3.9) over node:zlib: stored and deflated entries, ZIP64 sizes, one
 * entry at a time as a stream. The central directory rules, as the specification wants. Bounded: number of
 * entries, size of the directory, and the unpacked size that the directory states.
 */
import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { crc32, createInflateRaw } from "node:zlib";
import { SourceFileError } from "#core/errors";

export interface ZipEntry {
  readonly name: string;
  readonly packedBytes: number;
  readonly unpackedBytes: number;
  readonly method: number;
  readonly crc32: number;
  readonly headerOffset: number;
  readonly isEncrypted: boolean;
}

const maxEntries = 10_000;
const maxDirectoryBytes = 16 * 1024 * 1024;
/** Longer names are cut: they are only shown. */
const maxNameBytes = 300;
const chunkBytes = 2 ** 20;
const stored = 0;
const deflated = 8;

/** The entries of an archive in the order of its directory, folders left out. */
export async function readZipDirectory(file: string): Promise<readonly ZipEntry[]> {
  const handle = await open(file, "r");
  try {
    const { offset, bytes, count } = await findDirectory(handle, file);
    if (count > maxEntries || bytes > maxDirectoryBytes) {
      throw new SourceFileError(file, null, `the ZIP directory is too large (${count} entries)`);
    }
    return parseDirectory(await readAt(handle, { file, offset, bytes }), file);
  } finally {
    await handle.close();
  }
}

/** The unpacked bytes of one entry; ends with SourceFileError when they are not what the directory says. */
export async function* readZipEntry(file: string, entry: ZipEntry): AsyncGenerator<Buffer> {
  const name = `${file}!${entry.name}`;
  if (entry.isEncrypted) throw new SourceFileError(name, null, "the ZIP entry is encrypted");
  if (entry.method !== stored && entry.method !== deflated) {
    throw new SourceFileError(
      name,
      null,
      `the ZIP entry is packed by method ${entry.method}, not stored or deflated`,
    );
  }
  const start = await dataOffset(file, entry);
  let crc = 0;
  let bytes = 0;
  try {
    for await (const chunk of unpackedChunks(file, entry, start)) {
      crc = crc32(chunk, crc);
      bytes += chunk.length;
      if (bytes > entry.unpackedBytes) throw new Error("more bytes than the ZIP directory states");
      yield chunk;
    }
  } catch (error) {
    if (error instanceof SourceFileError) throw error;
    const reason = `the ZIP entry is damaged: ${(error as Error).message}`;
    throw new SourceFileError(name, null, reason, { cause: error });
  }
  if (bytes !== entry.unpackedBytes || crc !== entry.crc32) {
    throw new SourceFileError(
      name,
      null,
      "the ZIP entry is damaged: size or checksum differ from its directory",
    );
  }
}

async function* unpackedChunks(file: string, entry: ZipEntry, start: number): AsyncGenerator<Buffer> {
  if (entry.packedBytes === 0) return;
  const packed = createReadStream(file, {
    start,
    end: start + entry.packedBytes - 1,
    highWaterMark: chunkBytes,
  });
  if (entry.method === stored) {
    yield* packed as AsyncIterable<Buffer>;
    return;
  }
  const inflate = createInflateRaw({ chunkSize: chunkBytes });
  packed.on("error", (error) => inflate.destroy(error));
  try {
    yield* packed.pipe(inflate) as AsyncIterable<Buffer>;
  } finally {
    packed.destroy();
    inflate.destroy();
  }
}

/** The local header repeats the name and has its own extra field: only it tells where the data start. */
async function dataOffset(file: string, entry: ZipEntry): Promise<number> {
  const handle = await open(file, "r");
  try {
    const header = await readAt(handle, { file, offset: entry.headerOffset, bytes: 30 });
    if (header.readUInt32LE(0) !== 0x04034b50) {
      throw new SourceFileError(file, null, `the ZIP entry ${entry.name} has no local header`);
    }
    return entry.headerOffset + 30 + header.readUInt16LE(26) + header.readUInt16LE(28);
  } finally {
    await handle.close();
  }
}

interface Directory {
  readonly offset: number;
  readonly bytes: number;
  readonly count: number;
}

async function findDirectory(handle: FileHandle, file: string): Promise<Directory> {
  const { size } = await handle.stat();
  const bytes = Math.min(size, 22 + 65_535);
  const tail = await readAt(handle, { file, offset: size - bytes, bytes });
  const at = tail.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (at < 0 || at + 22 > tail.length) {
    throw new SourceFileError(file, null, "the ZIP archive ends early: it has no directory");
  }
  const directory = {
    count: tail.readUInt16LE(at + 10),
    bytes: tail.readUInt32LE(at + 12),
    offset: tail.readUInt32LE(at + 16),
  };
  const isZip64 =
    directory.count === 0xffff || directory.bytes === 0xffffffff || directory.offset === 0xffffffff;
  if (!isZip64 || at < 20 || tail.readUInt32LE(at - 20) !== 0x07064b50) return directory;
  const offset = Number(tail.readBigUInt64LE(at - 20 + 8));
  const record = await readAt(handle, { file, offset, bytes: 56 });
  return {
    count: Number(record.readBigUInt64LE(32)),
    bytes: Number(record.readBigUInt64LE(40)),
    offset: Number(record.readBigUInt64LE(48)),
  };
}

function parseDirectory(directory: Buffer, file: string): readonly ZipEntry[] {
  const entries: ZipEntry[] = [];
  for (let at = 0; at + 46 <= directory.length; ) {
    if (directory.readUInt32LE(at) !== 0x02014b50) {
      throw new SourceFileError(file, null, "the ZIP directory is damaged");
    }
    const nameEnd = at + 46 + directory.readUInt16LE(at + 28);
    const extraEnd = nameEnd + directory.readUInt16LE(at + 30);
    const name = directory.toString("utf8", at + 46, Math.min(nameEnd, at + 46 + maxNameBytes));
    const sizes = zip64Sizes(directory.subarray(nameEnd, extraEnd), {
      unpacked: directory.readUInt32LE(at + 24),
      packed: directory.readUInt32LE(at + 20),
      offset: directory.readUInt32LE(at + 42),
    });
    if (!name.endsWith("/")) {
      entries.push({
        name: name.replace(/\p{Cc}/gu, "?"),
        packedBytes: sizes.packed,
        unpackedBytes: sizes.unpacked,
        method: directory.readUInt16LE(at + 10),
        crc32: directory.readUInt32LE(at + 16),
        headerOffset: sizes.offset,
        isEncrypted: (directory.readUInt16LE(at + 8) & 1) === 1,
      });
    }
    at = extraEnd + directory.readUInt16LE(at + 32);
  }
  return entries;
}

interface Sizes {
  readonly unpacked: number;
  readonly packed: number;
  readonly offset: number;
}

/** Sizes of 0xffffffff stand in the ZIP64 extra field (id 1), in this order. */
function zip64Sizes(extra: Buffer, sizes: Sizes): Sizes {
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) !== 1) continue;
    let next = at + 4;
    const read = (value: number) => {
      if (value !== 0xffffffff || next + 8 > extra.length) return value;
      next += 8;
      return Number(extra.readBigUInt64LE(next - 8));
    };
    return { unpacked: read(sizes.unpacked), packed: read(sizes.packed), offset: read(sizes.offset) };
  }
  return sizes;
}

async function readAt(
  handle: FileHandle,
  part: { readonly file: string; readonly offset: number; readonly bytes: number },
): Promise<Buffer> {
  const isInside = Number.isSafeInteger(part.offset + part.bytes) && part.offset >= 0;
  const buffer = Buffer.alloc(isInside ? part.bytes : 0);
  const { bytesRead } = isInside ? await handle.read(buffer, 0, part.bytes, part.offset) : { bytesRead: -1 };
  if (bytesRead !== part.bytes) throw new SourceFileError(part.file, null, "the ZIP archive ends early");
  return buffer;
}

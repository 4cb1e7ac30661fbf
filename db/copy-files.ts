/** Copies files, computes their digests and flushes them to disk, so that a finished copy is known to be complete. */
import { createHash } from "node:crypto";
import { constants, statfsSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseError } from "#core/errors";

const pieceBytes = 1 << 20;

interface CopiedFile {
  readonly bytes: number;
  readonly sha256: string;
}

interface CopyWatch {
  readonly signal?: AbortSignal | undefined;
  readonly onBytes?: ((bytes: number) => void) | undefined;
  /**
   * The required owner of the file unless everybody may read it. Root can read any file, so in a folder that others can
   * change, a link could make root copy a protected file to a readable place.
   */
  readonly owner?: number | undefined;
}

/** The folder contains something that must not be copied: a link, a device, or another user's file. */
export class NotCopied extends DatabaseError {}

/**
 * Copies as many bytes as the file had when it was opened. `to` must not exist; if it is null, only the digest is
 * computed. Resolves with null when the file is gone.
 */
export async function copyFile(
  from: string,
  to: string | null,
  { signal, onBytes, owner }: CopyWatch = {},
): Promise<CopiedFile | null> {
  const source = await openIfThere(from);
  if (source === null) return null;
  let target: FileHandle | null = null;
  try {
    const found = await source.stat();
    const { size } = found;
    if (!found.isFile()) throw new NotCopied(`${from} is no plain file, and is not copied`);
    if (owner !== undefined && found.uid !== owner && (found.mode & 0o004) === 0)
      throw new NotCopied(`${from} belongs to uid ${found.uid} and not to ${owner}, and is not copied`);
    target = to === null ? null : await open(to, "wx", 0o600);
    const digest = createHash("sha256");
    const piece = Buffer.allocUnsafe(Math.min(pieceBytes, Math.max(1, size)));
    let bytes = 0;
    while (bytes < size) {
      signal?.throwIfAborted();
      const wanted = Math.min(piece.length, size - bytes);
      const { bytesRead } = await source.read(piece, 0, wanted, bytes);
      if (bytesRead === 0) break;
      const read = piece.subarray(0, bytesRead);
      digest.update(read);
      await target?.writeFile(read);
      bytes += bytesRead;
      onBytes?.(bytesRead);
    }
    return { bytes, sha256: digest.digest("hex") };
  } finally {
    await target?.close();
    await source.close();
  }
}

async function openIfThere(file: string): Promise<FileHandle | null> {
  try {
    // Does not follow links, and does not block on a pipe without a writer.
    return await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === "ENOENT") return null;
    if (code === "ELOOP") throw new NotCopied(`${file} is a link, and is not copied`, { cause: error });
    throw error;
  }
}

/**
 * Copies and flushes a folder's content except the names that `isLeftOut` selects. Throws NotCopied for links, devices
 * and anything not owned by `owner`.
 */
export async function copyTree(
  from: string,
  to: string,
  owner: number,
  isLeftOut: (name: string) => boolean = () => false,
): Promise<void> {
  const entries = (await readdir(from, { withFileTypes: true })).filter(({ name }) => !isLeftOut(name));
  for (const { name } of entries.filter((entry) => entry.isDirectory())) {
    await mkdir(join(to, name), { mode: 0o700 });
    await copyTree(join(from, name), join(to, name), owner);
  }
  const files = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name);
  await forEach(files, async (name) => void (await copyFile(join(from, name), join(to, name), { owner })));
  await syncAll([...files.map((name) => join(to, name)), to]);
}

const atOnce = 4;

/** Runs `work` on a few items at a time. After a failure, no more items are started, and those under way complete. */
export async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const failures: unknown[] = [];
  const worker = async () => {
    for (const item of left) {
      if (failures.length > 0) return;
      await work(item).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  if (failures.length > 0) throw failures[0];
}

export async function syncAll(paths: readonly string[], signal?: AbortSignal): Promise<void> {
  await forEach(paths, async (path) => {
    signal?.throwIfAborted();
    await syncPath(path);
  });
}

export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export function freeBytesAt(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

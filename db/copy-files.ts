/** Files copied one by one, with their digests, so that what arrived is known, and brought to the disk before it counts. */
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
   * Whose the file has to be, unless everybody may read it. Root reads everything: in a folder that somebody else can change,
   * a link could make it copy a file that they may not read to where they may.
   */
  readonly owner?: number | undefined;
}

/** What the folder holds is nothing that is copied: a link, a device, another user's. */
export class NotCopied extends DatabaseError {}

/**
 * As many bytes as the file had when it was opened: what grows meanwhile is not chased. `to` must not be there; null:
 * digests only. The answer is null where the file is gone.
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
    // Neither a link nor a pipe that nobody writes to leads or holds it up.
    return await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === "ENOENT") return null;
    if (code === "ELOOP") throw new NotCopied(`${file} is a link, and is not copied`, { cause: error });
    throw error;
  }
}

/**
 * Copies what is in one folder into another, but for names that `isLeftOut` says, and brings it to the disk. Throws
 * NotCopied for a link, a device and whatever is not `owner`'s.
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

/** As many as libuv has threads. */
const atOnce = 4;

/** `work` on each, a few at a time; the first that fails ends it, when those under way have ended. */
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

/** Files and folders are on the disk afterwards. */
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

/** What this user may still write there. */
export function freeBytesAt(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

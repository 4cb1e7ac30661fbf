/**
 * Reads the tree from its file. Nothing is taken on trust but what the checksum covers: the size of the header
 * is bounded by a constant, that of the arrays by the size of the file.
 */
import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import type { RegistryInForce } from "./registry-ports.ts";
import type { SubnetTree } from "./subnet-tree.ts";
import { type PartArray, type PartName, partKinds, type TreeParts, treeFromParts } from "./tree-parts.ts";
import {
  chunkBytes,
  decodeHeader,
  digestBytes,
  headerTextBytes,
  paddingOf,
  prefixBytes,
  SnapshotFault,
  type SnapshotHeader,
} from "./tree-snapshot-store.ts";

/** The tree of that registry. Throws SnapshotFault for a file of no use; null where there is none. */
export async function readTreeSnapshot(file: string, registry: RegistryInForce): Promise<SubnetTree | null> {
  const handle = await openIfThere(file);
  if (handle === null) return null;
  try {
    return treeFromParts(await readParts(handle, registry));
  } catch (error) {
    // The arrays or the texts do not fit together.
    if (error instanceof RangeError) throw new SnapshotFault(error.message, { cause: error });
    throw error;
  } finally {
    await handle.close();
  }
}

async function openIfThere(file: string): Promise<FileHandle | null> {
  try {
    return await open(file, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

async function readParts(handle: FileHandle, registry: RegistryInForce): Promise<TreeParts> {
  const digest = createHash("sha256");
  const prefix = await readBytes(handle, prefixBytes, digest);
  const textBytes = headerTextBytes(prefix);
  const padded = textBytes + paddingOf(prefixBytes + textBytes);
  const text = (await readBytes(handle, padded, digest)).toString("utf8", 0, textBytes);
  const header = decodeHeader(text, registry);
  const total = header.parts.reduce((sum, { bytes }) => sum + bytes + paddingOf(bytes), 0);
  const left = (await handle.stat()).size - prefixBytes - padded - digestBytes;
  if (left !== total) throw new SnapshotFault(`its arrays take ${left} bytes, its header says ${total}`);
  const body = await readBytes(handle, total, digest);
  const stored = await readBytes(handle, digestBytes, null);
  if (!stored.equals(digest.digest())) throw new SnapshotFault("its checksum is wrong");
  return viewsOf(body.buffer as ArrayBuffer, header);
}

/** Exactly so many bytes, in a buffer of their own. */
async function readBytes(handle: FileHandle, bytes: number, digest: Hash | null): Promise<Buffer> {
  const into = Buffer.from(new ArrayBuffer(bytes));
  for (let at = 0; at < bytes; ) {
    const { bytesRead } = await handle.read(into, at, Math.min(chunkBytes, bytes - at));
    if (bytesRead === 0) throw new SnapshotFault("it ends early");
    digest?.update(into.subarray(at, at + bytesRead));
    at += bytesRead;
  }
  return into;
}

/** Each part as an array over the one buffer. */
function viewsOf(body: ArrayBuffer, { parts }: SnapshotHeader): TreeParts {
  const views: Partial<Record<PartName, PartArray>> = {};
  let at = 0;
  for (const { name, bytes } of parts) {
    const Kind = partKinds[name as PartName];
    views[name as PartName] = new Kind(body, at, bytes / Kind.BYTES_PER_ELEMENT);
    at += bytes + paddingOf(bytes);
  }
  return views as unknown as TreeParts;
}

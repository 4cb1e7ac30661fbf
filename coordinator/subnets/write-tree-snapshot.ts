/**
 * Writes the tree to a file, beside its final name, synced and then renamed: whatever happens there is the old
 * file or the new one, whole. What writers that were killed have left is cleared away.
 */
import { createHash, type Hash } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { RegistryInForce } from "./registry-ports.ts";
import type { SubnetTree } from "./subnet-tree.ts";
import { partsOf, type TreeParts } from "./tree-parts.ts";
import { chunkBytes, encodeHeader, headerOf, paddingOf, partNames } from "./tree-snapshot-store.ts";

export async function writeTreeSnapshot(
  file: string,
  tree: SubnetTree,
  registry: RegistryInForce,
): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await clearLeftovers(file);
  const partial = `${file}.${process.pid}.partial`;
  try {
    await writeSynced(partial, partsOf(tree), registry);
    await rename(partial, file);
    await syncFolder(dirname(file));
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

async function writeSynced(partial: string, parts: TreeParts, registry: RegistryInForce): Promise<void> {
  const handle = await open(partial, "w", 0o600);
  try {
    const digest = createHash("sha256");
    await put(handle, digest, encodeHeader(headerOf(parts, registry)));
    for (const name of partNames) {
      const { buffer, byteOffset, byteLength } = parts[name];
      await put(handle, digest, Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength));
      await put(handle, digest, Buffer.alloc(paddingOf(byteLength)));
    }
    await handle.writeFile(digest.digest());
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function put(handle: FileHandle, digest: Hash, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    const chunk = bytes.subarray(at, at + chunkBytes);
    digest.update(chunk);
    await handle.writeFile(chunk);
  }
}

/** Of this file's partial ones those whose writer is gone. */
async function clearLeftovers(file: string): Promise<void> {
  const name = basename(file);
  for (const entry of await readdir(dirname(file))) {
    const pid = entry.startsWith(`${name}.`)
      ? /^\.(\d+)\.partial$/.exec(entry.slice(name.length))?.[1]
      : undefined;
    if (pid !== undefined && !isRunning(Number(pid))) await rm(join(dirname(file), entry), { force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

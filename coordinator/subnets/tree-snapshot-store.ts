/**
 * What a snapshot of the tree looks like: the arrays as they lie in memory, each from a multiple of eight bytes on.
 *
 *   8 bytes   "NCTREE" CR LF
 *   4         the number 0x01020304 in the byte order of the machine that wrote it
 *   4         length of the header in that byte order
 *   …         header, JSON: version, which registry, the parts with their lengths in bytes
 *   …         the parts
 *   32        SHA-256 of everything before
 */

import { createHash, type Hash } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Log } from "#core/log";
import { isRunning } from "#core/running-process";
import type { RegistryInForce, TreeSnapshots } from "./subnet-store.ts";
import type { SubnetTree } from "./subnet-tree.ts";
import {
  type PartArray,
  type PartName,
  partKinds,
  partsOf,
  type TreeParts,
  treeFromParts,
  treePartsVersion,
} from "./tree-arrays.ts";

/** The file is of no use; the tree is built from the database. */
class SnapshotFault extends Error {}

/** The same, and nothing is wrong with it: the registry has changed since. */
class OutdatedSnapshot extends SnapshotFault {}

const prefixBytes = 16;
const digestBytes = 32;

/** How much is read, written and hashed at a time. */
const chunkBytes = 2 ** 24;

const magic = Buffer.from("NCTREE\r\n", "latin1");
const byteOrderMark = 0x01020304;
const maxHeaderBytes = 65_536;
const alignment = 8;

const partNames = Object.keys(partKinds) as PartName[];

interface SnapshotHeader {
  readonly version: number;
  readonly registry: RegistryInForce;
  /** In the order of `partNames`. */
  readonly parts: readonly { readonly name: string; readonly bytes: number }[];
}

function headerOf(parts: TreeParts, registry: RegistryInForce): SnapshotHeader {
  const sizes = partNames.map((name) => ({ name, bytes: parts[name].byteLength }));
  return { version: treePartsVersion, registry, parts: sizes };
}

/** The prefix and the header, up to where the first part starts. */
function encodeHeader(header: SnapshotHeader): Buffer {
  const text = Buffer.from(JSON.stringify(header), "utf8");
  const bytes = Buffer.alloc(prefixBytes + text.length + paddingOf(prefixBytes + text.length));
  magic.copy(bytes);
  bytes.set(new Uint8Array(Uint32Array.of(byteOrderMark, text.length).buffer), magic.length);
  text.copy(bytes, prefixBytes);
  return bytes;
}

/** The length of the header's text, from the prefix. */
function headerTextBytes(prefix: Buffer): number {
  if (!prefix.subarray(0, magic.length).equals(magic)) throw new SnapshotFault("it is no snapshot of a tree");
  const numbers = new Uint32Array(Uint8Array.from(prefix.subarray(magic.length)).buffer);
  if (numbers[0] !== byteOrderMark) throw new SnapshotFault("it is from a machine of another byte order");
  const length = numbers[1] as number;
  if (length > maxHeaderBytes) throw new SnapshotFault(`its header has ${length} bytes`);
  return length;
}

/** The header, if it is that of a tree of this version and of the registry. */
function decodeHeader(text: string, wanted: RegistryInForce): SnapshotHeader {
  const { version, registry, parts } = parsed(text);
  if (version !== treePartsVersion)
    throw new SnapshotFault(`it has version ${version}, not ${treePartsVersion}`);
  if (registry?.generation !== wanted.generation || registry.appliedAt !== wanted.appliedAt)
    throw new OutdatedSnapshot(
      `it is of generation ${registry?.generation} (${registry?.appliedAt}), not ${wanted.generation} (${wanted.appliedAt})`,
    );
  const isWhole =
    Array.isArray(parts) &&
    parts.length === partNames.length &&
    partNames.every((name, at) => parts[at]?.name === name && isSizeOf(name, parts[at]?.bytes));
  if (!isWhole) throw new SnapshotFault("its header does not list the parts of a tree");
  return { version, registry, parts };
}

function parsed(text: string): Partial<SnapshotHeader> {
  try {
    return { ...(JSON.parse(text) as Partial<SnapshotHeader> | null) };
  } catch (error) {
    throw new SnapshotFault("its header is damaged", { cause: error });
  }
}

function isSizeOf(name: PartName, bytes: unknown): boolean {
  return (
    Number.isSafeInteger(bytes) &&
    Number(bytes) >= 0 &&
    Number(bytes) % partKinds[name].BYTES_PER_ELEMENT === 0
  );
}

/** Bytes up to the next multiple of eight. */
const paddingOf = (bytes: number): number => (alignment - (bytes % alignment)) % alignment;

// Reads the tree from its file. Nothing is taken on trust but what the checksum covers: the size of the header
// is bounded by a constant, that of the arrays by the size of the file.

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

// The coordinator's snapshot of its tree: looked at when it starts, written in the background after it built a
// tree from the database. It only saves time: whatever is wrong with it costs one line in the log and the
// reading of the rows.

interface SnapshotSettings {
  /** Where the files are, one per schema. */
  readonly folder: string;
  readonly schema: string;
  readonly log: Log;
  /** A smaller tree is not worth a file: it is read from the database in less than a second. */
  readonly fewestSubnets?: number;
}

const defaultFewestSubnets = 100_000;
const outdated = "the registry changed since the snapshot of the tree; the tree is built from the database";
const useless = "snapshot of the tree is of no use; the tree is built from the database";
const unwritten = "snapshot of the tree could not be written; the next start takes longer";

interface RunningSnapshots extends TreeSnapshots {
  /** Resolves when nothing is being written any more. */
  idle(): Promise<void>;
}

export function createTreeSnapshots({
  folder,
  schema,
  log,
  fewestSubnets = defaultFewestSubnets,
}: SnapshotSettings): RunningSnapshots {
  const file = join(folder, `${schema}.tree`);
  let writing = Promise.resolve();
  return {
    read: async (registry) =>
      await readTreeSnapshot(file, registry).catch((error: unknown) => {
        if (error instanceof OutdatedSnapshot) log.info({ file, reason: error.message }, outdated);
        else log.warn({ file, error }, useless);
        return null;
      }),
    keep: (tree, registry) => {
      if (tree.size < fewestSubnets) return;
      writing = writing.then(async () => {
        await writeTreeSnapshot(file, tree, registry).catch((error: unknown) => {
          log.warn({ file, error }, unwritten);
        });
      });
    },
    idle: async () => await writing,
  };
}

/** For where nothing is kept. */
export const noSnapshots: RunningSnapshots = {
  read: async () => null,
  keep: () => {},
  idle: async () => {},
};

// Writes the tree to a file, beside its final name, synced and then renamed: whatever happens there is the old
// file or the new one, whole. What writers that were killed have left is cleared away.

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

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

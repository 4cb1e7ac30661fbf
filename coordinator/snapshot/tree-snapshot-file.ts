/**
 * The tree in a file, so that a coordinator that starts need not read millions of rows. The arrays stand in it
 * as they lie in memory, each from a multiple of eight bytes on:
 *
 *   8 bytes   "NCTREE" CR LF
 *   4         the number 0x01020304 in the byte order of the machine that wrote it
 *   4         length of the header in that byte order
 *   …         header, JSON: version, which registry, the parts with their lengths in bytes
 *   …         the parts
 *   32        SHA-256 of everything before
 *
 * A file is written beside its final name, synced, then renamed: there is the old one or the new one, whole.
 * What is read is bounded by what the header says, and the header by a constant.
 */
import { createHash, type Hash } from "node:crypto";
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { SubnetTree } from "#core/subnet/subnet-tree";
import {
  type PartArray,
  type PartName,
  partKinds,
  partsOf,
  type TreeParts,
  treeFromParts,
  treePartsVersion,
} from "#core/subnet/tree-parts";
import type { RegistryInForce } from "../flows/ports.ts";

const magic = Buffer.from("NCTREE\r\n", "latin1");
const byteOrderMark = 0x01020304;
const prefixBytes = 16;
const maxHeaderBytes = 65_536;
const digestBytes = 32;
const chunkBytes = 2 ** 24;
const alignment = 8;

/** Why a file is of no use; the tree is then built from the database. */
export class SnapshotFault extends Error {}

interface Header {
  readonly version: number;
  readonly registry: RegistryInForce;
  readonly parts: readonly { readonly name: string; readonly bytes: number }[];
}

export async function writeTreeSnapshot(
  file: string,
  tree: SubnetTree,
  registry: RegistryInForce,
): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const partial = `${file}.${process.pid}.partial`;
  try {
    const handle = await open(partial, "w", 0o600);
    try {
      await writeAll(handle, partsOf(tree), registry);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(partial, file);
    await syncFolder(dirname(file));
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

/** The tree of that registry. Throws SnapshotFault for a file of no use; null where there is none. */
export async function readTreeSnapshot(file: string, registry: RegistryInForce): Promise<SubnetTree | null> {
  const handle = await open(file, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (handle === null) return null;
  try {
    return treeFromParts(await readParts(handle, registry));
  } catch (error) {
    // The arrays do not fit together, or the texts do not.
    if (error instanceof RangeError) throw new SnapshotFault(error.message, { cause: error });
    throw error;
  } finally {
    await handle.close();
  }
}

async function writeAll(handle: FileHandle, parts: TreeParts, registry: RegistryInForce): Promise<void> {
  const names = Object.keys(partKinds) as PartName[];
  const header: Header = {
    version: treePartsVersion,
    registry,
    parts: names.map((name) => ({ name, bytes: parts[name].byteLength })),
  };
  const digest = createHash("sha256");
  await put(handle, digest, headerBytesOf(header));
  for (const name of names) {
    const { buffer, byteOffset, byteLength } = parts[name];
    await put(handle, digest, Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength));
    await put(handle, digest, Buffer.alloc(paddingOf(byteLength)));
  }
  await handle.writeFile(digest.digest());
}

/** The prefix and the header, up to where the first part starts. */
function headerBytesOf(header: Header): Buffer {
  const text = Buffer.from(JSON.stringify(header), "utf8");
  const bytes = Buffer.alloc(prefixBytes + text.length + paddingOf(prefixBytes + text.length));
  magic.copy(bytes);
  bytes.set(new Uint8Array(new Uint32Array([byteOrderMark, text.length]).buffer), magic.length);
  text.copy(bytes, prefixBytes);
  return bytes;
}

async function put(handle: FileHandle, digest: Hash, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    const chunk = bytes.subarray(at, at + chunkBytes);
    digest.update(chunk);
    await handle.writeFile(chunk);
  }
}

async function readParts(handle: FileHandle, registry: RegistryInForce): Promise<TreeParts> {
  const digest = createHash("sha256");
  const header = await readHeader(handle, digest);
  checkHeader(header, registry);
  const sizes = header.parts.map(({ bytes }) => bytes + paddingOf(bytes));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const left = (await handle.stat()).size - headerBytesOf(header).length - digestBytes;
  if (left !== total) throw new SnapshotFault(`its arrays take ${left} bytes, its header says ${total}`);
  const body = Buffer.from(new ArrayBuffer(total));
  await fill(handle, body, digest);
  const stored = Buffer.alloc(digestBytes);
  await fill(handle, stored, null);
  if (!stored.equals(digest.digest())) throw new SnapshotFault("its checksum is wrong");
  return viewsOf(body.buffer as ArrayBuffer, header);
}

async function readHeader(handle: FileHandle, digest: Hash): Promise<Header> {
  const prefix = Buffer.alloc(prefixBytes);
  await fill(handle, prefix, digest);
  if (!prefix.subarray(0, magic.length).equals(magic))
    throw new SnapshotFault("it is not a snapshot of a tree");
  const [mark, length] = new Uint32Array(new Uint8Array(prefix.subarray(magic.length)).buffer) as unknown as [
    number,
    number,
  ];
  if (mark !== byteOrderMark) throw new SnapshotFault("it is from a machine of another byte order");
  if (length > maxHeaderBytes) throw new SnapshotFault(`its header has ${length} bytes`);
  const text = Buffer.alloc(length + paddingOf(prefixBytes + length));
  await fill(handle, text, digest);
  return parseHeader(text.toString("utf8", 0, length));
}

function parseHeader(text: string): Header {
  try {
    return JSON.parse(text) as Header;
  } catch (error) {
    throw new SnapshotFault("its header is damaged", { cause: error });
  }
}

function checkHeader({ version, registry, parts }: Header, wanted: RegistryInForce): void {
  if (version !== treePartsVersion)
    throw new SnapshotFault(`it has version ${version}, not ${treePartsVersion}`);
  if (registry?.generation !== wanted.generation || registry.appliedAt !== wanted.appliedAt)
    throw new SnapshotFault(
      `it is of generation ${registry?.generation} (${registry?.appliedAt}), not ${wanted.generation} (${wanted.appliedAt})`,
    );
  const names = Object.keys(partKinds) as PartName[];
  const isWhole =
    Array.isArray(parts) &&
    parts.length === names.length &&
    names.every((name, at) => parts[at]?.name === name && isSizeOf(name, parts[at]?.bytes));
  if (!isWhole) throw new SnapshotFault("its header does not list the parts of a tree");
}

function isSizeOf(name: PartName, bytes: unknown): boolean {
  return (
    Number.isSafeInteger(bytes) &&
    (bytes as number) >= 0 &&
    (bytes as number) % partKinds[name].BYTES_PER_ELEMENT === 0
  );
}

/** Reads exactly as much as there is room. */
async function fill(handle: FileHandle, into: Buffer, digest: Hash | null): Promise<void> {
  for (let at = 0; at < into.length; ) {
    const { bytesRead } = await handle.read(into, at, Math.min(chunkBytes, into.length - at));
    if (bytesRead === 0) throw new SnapshotFault("it ends early");
    digest?.update(into.subarray(at, at + bytesRead));
    at += bytesRead;
  }
}

/** Each part as an array over the one buffer. */
function viewsOf(body: ArrayBuffer, { parts }: Header): TreeParts {
  const views: Partial<Record<PartName, PartArray>> = {};
  let at = 0;
  for (const { name, bytes } of parts) {
    const Kind = partKinds[name as PartName];
    views[name as PartName] = new Kind(body, at, bytes / Kind.BYTES_PER_ELEMENT);
    at += bytes + paddingOf(bytes);
  }
  return views as unknown as TreeParts;
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const paddingOf = (bytes: number): number => (alignment - (bytes % alignment)) % alignment;

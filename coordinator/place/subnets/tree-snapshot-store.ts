/**
 * The coordinator's snapshot of its tree, read at start and written in the background after a tree was built from the
 * database. It only saves time. Any fault in it costs one log line and reading the rows.
 *
 *     a line of JSON   version, byte order, which registry, the arrays with their lengths
 *     …                the arrays, one after another, in the byte order of the machine that wrote them
 *     32 bytes         SHA-256 of everything before
 */
import { createHash, type Hash } from "node:crypto";
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { endianness } from "node:os";
import { dirname, join } from "node:path";
import type { Log } from "#core/log";
import { TextPool } from "#core/text-pool";
import { indexed, type RangeTable } from "./range-table.ts";
import type { RegistryInForce } from "./subnet-store.ts";
import { SubnetTree } from "./subnet-tree.ts";
import { indexIds } from "./tree-columns.ts";

/** Must be raised whenever the meaning of the arrays changes. */
const version = 2;

/** Every array with its type. The indexes by address and id are left out, because they are quickly rebuilt. */
const kinds = {
  "ipv4.firsts": Int32Array,
  "ipv4.lasts": Int32Array,
  "ipv4.parents": Int32Array,
  "ipv4.tangledStarts": Int32Array,
  "ipv4.tangledOwners": Int32Array,
  "ipv6.firsts": Int32Array,
  "ipv6.lasts": Int32Array,
  "ipv6.parents": Int32Array,
  "ipv6.tangledStarts": Int32Array,
  "ipv6.tangledOwners": Int32Array,
  ids: Int32Array,
  holderIds: Int32Array,
  labels: Uint16Array,
  nameIds: Int32Array,
  nameText: Uint8Array,
  nameEnds: Uint32Array,
} as const;

type PartName = keyof typeof kinds;
type Parts = { readonly [Name in PartName]: InstanceType<(typeof kinds)[Name]> };
const partNames = Object.keys(kinds) as PartName[];

function partsOf({ columns }: SubnetTree): Parts {
  const { ipv4, ipv6, ids, holderIds, labels, nameIds, names } = columns;
  const { text, ends } = names.parts();
  const parts = { ids, holderIds, labels, nameIds, nameText: text, nameEnds: ends };
  return { ...partsOfTable("ipv4", ipv4), ...partsOfTable("ipv6", ipv6), ...parts } as Parts;
}

function partsOfTable(family: "ipv4" | "ipv6", table: RangeTable): Partial<Parts> {
  const { firsts, lasts, parents, tangledStarts, tangledOwners } = table;
  const parts = Object.entries({ firsts, lasts, parents, tangledStarts, tangledOwners });
  return Object.fromEntries(parts.map(([name, array]) => [`${family}.${name}`, array]));
}

/** Throws a SnapshotFault if the lengths are inconsistent. */
function treeOf(parts: Parts): SubnetTree {
  const { ids, holderIds, labels, nameIds } = parts;
  const ipv6Base = parts["ipv4.parents"].length;
  const columns = {
    ipv4: tableOf("ipv4", parts),
    ipv6: tableOf("ipv6", parts),
    ipv6Base,
    ids,
    byId: indexIds(ids),
    holderIds,
    labels,
    nameIds,
    names: TextPool.from({ text: parts.nameText, ends: parts.nameEnds }),
  };
  const count = ipv6Base + columns.ipv6.parents.length;
  if ([ids, holderIds, labels, nameIds].some(({ length }) => length !== count))
    throw new SnapshotFault("its arrays do not fit together");
  return new SubnetTree(columns);
}

function tableOf(family: "ipv4" | "ipv6", parts: Parts): RangeTable {
  const words = family === "ipv4" ? 1 : 4;
  const table = {
    firsts: parts[`${family}.firsts`],
    lasts: parts[`${family}.lasts`],
    parents: parts[`${family}.parents`],
    tangledStarts: parts[`${family}.tangledStarts`],
    tangledOwners: parts[`${family}.tangledOwners`],
  };
  const { firsts, lasts, parents, tangledStarts, tangledOwners } = table;
  const fits =
    firsts.length === words * parents.length &&
    lasts.length === firsts.length &&
    tangledStarts.length === words * tangledOwners.length;
  if (!fits) throw new SnapshotFault("its arrays do not fit together");
  return indexed(words, table);
}

/** Thrown if the file is unusable. The tree is then built from the database. */
class SnapshotFault extends Error {}

/** Thrown if the file is intact but the registry has changed since it was written. */
class OutdatedSnapshot extends SnapshotFault {}

const digestBytes = 32;
const mostHeaderBytes = 4096;

/** Bytes read, written and hashed at a time. */
const chunkBytes = 2 ** 24;

interface Header {
  readonly version: number;
  readonly endianness: string;
  readonly registry: RegistryInForce;
  /** Lengths in the order of `partNames`. */
  readonly lengths: readonly number[];
}

/** Throws SnapshotFault if the file is unusable. Returns null if there is none. */
export async function readTreeSnapshot(file: string, registry: RegistryInForce): Promise<SubnetTree | null> {
  const handle = await openIfThere(file);
  if (handle === null) return null;
  try {
    return treeOf(await readParts(handle, registry));
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

/** No content is trusted before the checksum matches. Until then the file's size bounds the arrays. */
async function readParts(handle: FileHandle, registry: RegistryInForce): Promise<Parts> {
  const digest = createHash("sha256");
  const start = Buffer.alloc(mostHeaderBytes);
  const { bytesRead } = await handle.read(start, 0, mostHeaderBytes, 0);
  const headerBytes = start.subarray(0, bytesRead).indexOf("\n") + 1;
  const { lengths } = decodeHeader(start.toString("utf8", 0, headerBytes), registry);
  digest.update(start.subarray(0, headerBytes));
  const sizes = partNames.map((name, index) => kinds[name].BYTES_PER_ELEMENT * (lengths[index] as number));
  const total = sizes.reduce((sum, bytes) => sum + bytes, headerBytes + digestBytes);
  const { size } = await handle.stat();
  if (size !== total) throw new SnapshotFault(`it has ${size} bytes, its header says ${total}`);
  const parts = Object.fromEntries(
    partNames.map((name, index) => [name, new kinds[name](lengths[index] as number)]),
  );
  let at = headerBytes;
  for (const array of Object.values(parts)) at = await readInto(handle, bytesOf(array), at, digest);
  const stored = Buffer.alloc(digestBytes);
  await readInto(handle, stored, at, null);
  if (!stored.equals(digest.digest())) throw new SnapshotFault("its checksum is wrong");
  return parts as unknown as Parts;
}

/** Fills the buffer from the position. Returns the end position. */
async function readInto(
  handle: FileHandle,
  into: Buffer,
  position: number,
  digest: Hash | null,
): Promise<number> {
  for (let at = 0; at < into.length; ) {
    const { bytesRead } = await handle.read(into, at, Math.min(chunkBytes, into.length - at), position + at);
    if (bytesRead === 0) throw new SnapshotFault("it ends early");
    digest?.update(into.subarray(at, at + bytesRead));
    at += bytesRead;
  }
  return position + into.length;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Parts[PartName]): Buffer =>
  Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);

/** Returns the header if it matches this version and the registry. */
function decodeHeader(text: string, wanted: RegistryInForce): Header {
  const header = parsed(text);
  const { registry, lengths } = header;
  if (header.version !== version || header.endianness !== endianness())
    throw new SnapshotFault(
      `it has version ${header.version}${header.endianness}, not ${version}${endianness()}`,
    );
  if (registry?.generation !== wanted.generation || registry.appliedAt !== wanted.appliedAt)
    throw new OutdatedSnapshot(
      `it is of generation ${registry?.generation} (${registry?.appliedAt}), not ${wanted.generation} (${wanted.appliedAt})`,
    );
  const isWhole =
    lengths?.length === partNames.length &&
    lengths.every((length) => Number.isSafeInteger(length) && length >= 0);
  if (!isWhole) throw new SnapshotFault("its header does not list the arrays of a tree");
  return header as Header;
}

function parsed(text: string): Partial<Header> {
  try {
    return { ...(JSON.parse(text) as Partial<Header> | null) };
  } catch (error) {
    throw new SnapshotFault("it is no snapshot of a tree", { cause: error });
  }
}

/** Writes to a temporary file, syncs and renames it, so that a crash leaves either the old or the new file intact. */
export async function writeTreeSnapshot(
  file: string,
  tree: SubnetTree,
  registry: RegistryInForce,
): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const partial = `${file}.partial`;
  try {
    const handle = await open(partial, "w", 0o600);
    try {
      await writeAll(handle, partsOf(tree), registry);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(partial, file);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
}

async function writeAll(handle: FileHandle, parts: Parts, registry: RegistryInForce): Promise<void> {
  const lengths = partNames.map((name) => parts[name].length);
  const header: Header = { version, endianness: endianness(), registry, lengths };
  const digest = createHash("sha256");
  const arrays = partNames.map((name) => bytesOf(parts[name]));
  for (const bytes of [Buffer.from(`${JSON.stringify(header)}\n`), ...arrays]) {
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      const chunk = bytes.subarray(at, at + chunkBytes);
      digest.update(chunk);
      await handle.writeFile(chunk);
    }
  }
  await handle.writeFile(digest.digest());
}

interface SnapshotSettings {
  /** Folder of the files. There is one per schema. */
  readonly folder: string;
  readonly schema: string;
  readonly log: Log;
  /** Minimum number of subnets. A smaller tree is read from the database in less than a second, and needs no file. */
  readonly fewestSubnets?: number;
}

const outdated = "the registry changed since the snapshot of the tree; the tree is built from the database";
const useless = "snapshot of the tree is of no use; the tree is built from the database";
const unwritten = "snapshot of the tree could not be written; the next start takes longer";

export type TreeSnapshots = ReturnType<typeof createTreeSnapshots>;

export function createTreeSnapshots({ folder, schema, log, fewestSubnets = 100_000 }: SnapshotSettings) {
  const file = join(folder, `${schema}.tree`);
  let writing = Promise.resolve();
  return {
    /** Returns null if no usable snapshot exists. Never rejects. */
    read: async (registry: RegistryInForce): Promise<SubnetTree | null> =>
      await readTreeSnapshot(file, registry).catch((error: unknown) => {
        if (error instanceof OutdatedSnapshot) log.info({ file, reason: error.message }, outdated);
        else log.warn({ file, error }, useless);
        return null;
      }),
    /** Replaces any other snapshot. Returns before the new one is written. */
    keep: (tree: SubnetTree, registry: RegistryInForce): void => {
      if (tree.size < fewestSubnets) return;
      writing = writing.then(async () => {
        await writeTreeSnapshot(file, tree, registry).catch((error: unknown) => {
          log.warn({ file, error }, unwritten);
        });
      });
    },
    /** Resolves when no write is in progress. */
    idle: async () => await writing,
  };
}

export const noSnapshots: TreeSnapshots = {
  read: async () => null,
  keep: () => {},
  idle: async () => {},
};

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

import type { RegistryInForce } from "./registry-ports.ts";
import { type PartName, partKinds, type TreeParts, treePartsVersion } from "./tree-parts.ts";

/** The file is of no use; the tree is built from the database. */
export class SnapshotFault extends Error {}

/** The same, and nothing is wrong with it: the registry has changed since. */
export class OutdatedSnapshot extends SnapshotFault {}

export const prefixBytes = 16;
export const digestBytes = 32;
/** How much is read, written and hashed at a time. */
export const chunkBytes = 2 ** 24;
const magic = Buffer.from("NCTREE\r\n", "latin1");
const byteOrderMark = 0x01020304;
const maxHeaderBytes = 65_536;
const alignment = 8;

export const partNames = Object.keys(partKinds) as PartName[];

export interface SnapshotHeader {
  readonly version: number;
  readonly registry: RegistryInForce;
  /** In the order of `partNames`. */
  readonly parts: readonly { readonly name: string; readonly bytes: number }[];
}

export function headerOf(parts: TreeParts, registry: RegistryInForce): SnapshotHeader {
  const sizes = partNames.map((name) => ({ name, bytes: parts[name].byteLength }));
  return { version: treePartsVersion, registry, parts: sizes };
}

/** The prefix and the header, up to where the first part starts. */
export function encodeHeader(header: SnapshotHeader): Buffer {
  const text = Buffer.from(JSON.stringify(header), "utf8");
  const bytes = Buffer.alloc(prefixBytes + text.length + paddingOf(prefixBytes + text.length));
  magic.copy(bytes);
  bytes.set(new Uint8Array(Uint32Array.of(byteOrderMark, text.length).buffer), magic.length);
  text.copy(bytes, prefixBytes);
  return bytes;
}

/** The length of the header's text, from the prefix. */
export function headerTextBytes(prefix: Buffer): number {
  if (!prefix.subarray(0, magic.length).equals(magic)) throw new SnapshotFault("it is no snapshot of a tree");
  const numbers = new Uint32Array(Uint8Array.from(prefix.subarray(magic.length)).buffer);
  if (numbers[0] !== byteOrderMark) throw new SnapshotFault("it is from a machine of another byte order");
  const length = numbers[1] as number;
  if (length > maxHeaderBytes) throw new SnapshotFault(`its header has ${length} bytes`);
  return length;
}

/** The header, if it is that of a tree of this version and of the registry. */
export function decodeHeader(text: string, wanted: RegistryInForce): SnapshotHeader {
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
export const paddingOf = (bytes: number): number => (alignment - (bytes % alignment)) % alignment;

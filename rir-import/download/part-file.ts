/**
 * The unfinished file of a download, `<file>.part`, and beside it `<file>.part.json`: of which URL and version of
 * the data it is the beginning, so that a later try goes on where this one ended (RFC 9110 sections 13.1.5, 14).
 */

import { type FileHandle, open, readFile, rename, rm, stat, truncate, writeFile } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";

const originSchema = z.strictObject({
  url: z.string(),
  /** A strong validator for If-Range. */
  validator: z.string().min(1).max(1000),
});
export type PartOrigin = z.infer<typeof originSchema>;

export interface PartBeginning {
  readonly bytes: number;
  readonly validator: string;
}

/** What there is of this URL already; null where nothing is, or nothing that can be gone on with. */
export async function partBeginning(partFile: string, url: string): Promise<PartBeginning | null> {
  try {
    const origin = originSchema.parse(JSON.parse(await readFile(`${partFile}.json`, "utf8")));
    const { size } = await stat(partFile);
    return origin.url === url && size > 0 ? { bytes: size, validator: origin.validator } : null;
  } catch {
    return null;
  }
}

/** Starts the part anew, for data of this origin (null: of a version that could not be asked for again). */
export async function beginPart(partFile: string, origin: PartOrigin | null): Promise<void> {
  await removePart(partFile);
  await writeFile(partFile, "");
  if (origin === null) return;
  await writeFile(`${partFile}.json.new`, JSON.stringify(origin));
  await rename(`${partFile}.json.new`, `${partFile}.json`);
}

export async function removePart(partFile: string): Promise<void> {
  await rm(`${partFile}.json`, { force: true });
  await rm(partFile, { force: true });
}

/** Appends at `start` and leaves the bytes on disk (fsync), also when the source of the pieces fails. */
export async function appendToPart(
  partFile: string,
  start: number,
  pieces: AsyncIterable<Buffer>,
): Promise<void> {
  await truncate(partFile, start);
  const handle = await open(partFile, "r+");
  try {
    let position = start;
    for await (const piece of pieces) {
      await writeWhole(handle, piece, position);
      position += piece.length;
    }
  } finally {
    await handle.sync();
    await handle.close();
  }
}

async function writeWhole(handle: FileHandle, piece: Buffer, position: number): Promise<void> {
  for (let written = 0; written < piece.length; ) {
    const { bytesWritten } = await handle.write(piece, written, piece.length - written, position + written);
    written += bytesWritten;
  }
}

/**
 * A validator that If-Range may carry: a strong entity tag, or a date of last change at least a minute before
 * the answer was made (RFC 9110 section 8.8.2.2 asks for a second at least).
 */
export function strongValidator(headers: IncomingHttpHeaders): string | null {
  const etag = headers.etag ?? "";
  if (/^"[\x21\x23-\x7e]*"$/.test(etag)) return etag;
  const modified = Date.parse(headers["last-modified"] ?? "");
  const answered = Date.parse(headers.date ?? "");
  return answered - modified >= 60_000 ? (headers["last-modified"] ?? null) : null;
}

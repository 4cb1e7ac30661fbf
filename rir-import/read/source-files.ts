/**
 * From what the operator names (files, folders) to the list of files to read, in a fixed order, each once.
 * In a folder, papers that lie beside dumps (checksums, signatures, read-mes, hidden files) are passed
 * over; everything else there has to be readable, or the import stops.
 */
import { readdir, realpath, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { SourceFileError } from "#core/errors";
import { readError } from "./read-error.ts";

const besideData = /^\.|\.(md5|sha\d*|asc|sig|gpg|readme|md|html?)$|^(readme|license|copying)\b|\.part$/i;
const maxDepth = 8;

/** Files in the order given, folders by name. Throws SourceFileError for what is not there or holds nothing. */
export async function listSourceFiles(paths: readonly string[]): Promise<readonly string[]> {
  const files = new Map<string, string>();
  for (const path of paths) {
    const found = await filesAt(path, 0);
    if (found.length === 0) throw new SourceFileError(path, null, "the folder holds no registry files");
    for (const file of found) {
      const real = await realpath(file);
      if (!files.has(real)) files.set(real, file);
    }
  }
  return [...files.values()];
}

async function filesAt(path: string, depth: number): Promise<readonly string[]> {
  const facts = await stat(path).catch((error: unknown) => Promise.reject(readError(path, error)));
  if (!facts.isDirectory()) return [path];
  if (depth > maxDepth) throw new SourceFileError(path, null, `folders nested deeper than ${maxDepth}`);
  const entries = await readdir(path).catch((error: unknown) => Promise.reject(readError(path, error)));
  const names = entries.filter((name) => !besideData.test(basename(name))).sort();
  const lists = await Promise.all(names.map((name) => filesAt(join(path, name), depth + 1)));
  return lists.flat();
}

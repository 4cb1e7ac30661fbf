/**
 * The folder that a generated registry is written to. It has to be empty or not there: an import reads every
 * file of a folder, and real downloads bear the same names. A hidden file, which imports pass over, says that
 * the folder was generated and what is in it; with its word, and only then, an earlier set is replaced.
 */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UsageError } from "#core/errors";
import { isRegistryFileName } from "./registry-files.ts";

export const accountFileName = ".generated-registry.json";

/** Makes the folder ready. Throws UsageError when something is in it that this may not remove. */
export async function prepareFolder(folder: string, mayReplace: boolean): Promise<void> {
  await mkdir(folder, { recursive: true });
  const names = await readdir(folder);
  if (names.length > 0) {
    if (!mayReplace) {
      throw new UsageError(
        `${folder} is not empty: name another folder, or replace an earlier set with --force`,
      );
    }
    await removeGenerated(folder, names);
  }
  await writeFile(join(folder, accountFileName), `${JSON.stringify({ complete: false })}\n`);
}

export async function writeAccount(folder: string, account: unknown): Promise<void> {
  await writeFile(join(folder, accountFileName), `${JSON.stringify({ complete: true, account }, null, 2)}\n`);
}

async function removeGenerated(folder: string, names: readonly string[]): Promise<void> {
  const marker = await readFile(join(folder, accountFileName), "utf8").catch(() => "");
  if (!marker.startsWith('{"complete":') && !marker.startsWith('{\n  "complete":')) {
    throw new UsageError(`${folder} was not made by this command: --force replaces generated files only`);
  }
  const others = names.filter(
    (name) => name !== accountFileName && !isRegistryFileName(name.replace(/\.part$/, "")),
  );
  if (others.length > 0) {
    const shown = others.slice(0, 3).join(", ");
    throw new UsageError(`${folder} holds more than a generated registry (${shown}): nothing is removed`);
  }
  for (const name of names) await rm(join(folder, name));
}

/**
 * The one file that partners start with, dist/nearcrawl-crawler.mjs, as the build made it. Read again when it
 * changed on disk.
 */
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";

export interface ServedFile {
  readonly bytes: Buffer;
  /** SHA-256, hex. */
  readonly digest: string;
}

/** From dist/coordinator/net, and from the source folder. */
const builtPlaces = ["../../nearcrawl-crawler.mjs", "../../dist/nearcrawl-crawler.mjs"].map((place) =>
  fileURLToPath(new URL(place, import.meta.url)),
);

/** Gives the file, or null where it was never built. */
export function dockFile(places: readonly string[] = builtPlaces): () => Promise<ServedFile | null> {
  let kept: { readonly stamp: string; readonly file: ServedFile } | null = null;
  return async () => {
    for (const place of places) {
      const found = await stat(place).catch(() => null);
      if (!found?.isFile()) continue;
      const stamp = `${place} ${found.mtimeMs} ${found.size}`;
      if (kept?.stamp !== stamp) kept = { stamp, file: served(await readFile(place)) };
      return kept.file;
    }
    return null;
  };
}

export function served(bytes: Buffer): ServedFile {
  return { bytes, digest: createHash("sha256").update(bytes).digest("hex") };
}

/** From a cache folder to the files that an import reads. */
import { join } from "node:path";
import { CacheError } from "#core/errors";
import { isInPlace, readManifest } from "./cache-manifest.ts";
import { importOrder } from "./download-source.ts";

/**
 * The paths of the cached registry files: IANA's, then statistics, then WHOIS data (split files, whole databases,
 * ARIN's); by source name within each. Throws a CacheError when there are none, or one is not what was fetched.
 */
export async function cachedSourceFiles(cacheFolder: string): Promise<readonly string[]> {
  const manifest = await readManifest(cacheFolder);
  const wanted = importOrder.flatMap((kind) =>
    Object.entries(manifest)
      .filter(([, entry]) => entry.kind === kind)
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  );
  if (wanted.length === 0) {
    throw new CacheError(`${cacheFolder} holds no registry files: nearcrawl rir fetch`);
  }
  for (const [name, entry] of wanted) {
    if (await isInPlace(cacheFolder, entry)) continue;
    throw new CacheError(
      `${join(cacheFolder, entry.file)} is not the file that was fetched (${entry.bytes} bytes): nearcrawl rir fetch ${name}`,
    );
  }
  return wanted.map(([, entry]) => join(cacheFolder, entry.file));
}

/**
 * IANA's bootstrap files out of the cache folder, where they are kept like any source: fetched when they are
 * absent, asked for again when a month old; an old copy serves on when that fails (RFC 9224 section 8).
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { CacheError } from "#core/errors";
import { type CachedFile, isInPlace, readManifest } from "../download/cache-manifest.ts";
import { type FetchOptions, fetchSources } from "../download/fetch-sources.ts";
import { type RdapBootstrap, readBootstrap } from "../formats/rdap-bootstrap.ts";

const names = { ipv4: "rdap-ipv4", ipv6: "rdap-ipv6" } as const;
const monthMs = 30 * 86_400_000;

export async function cachedBootstrap(
  options: Omit<FetchOptions, "names" | "acceptSmaller">,
): Promise<{ readonly ipv4: RdapBootstrap; readonly ipv6: RdapBootstrap }> {
  const { cacheFolder, clock } = options;
  const known = await readManifest(cacheFolder);
  const isFresh = await Promise.all(
    Object.values(names).map(async (name) => {
      const entry = known[name];
      if (entry === undefined || !(await isInPlace(cacheFolder, entry))) return false;
      return clock.now().getTime() - Date.parse(entry.checkedAt) < monthMs;
    }),
  );
  const failures = isFresh.every(Boolean) ? new Map<string, string>() : await refresh(options);
  const manifest = await readManifest(cacheFolder);
  const read = async (name: string) => {
    const entry = manifest[name];
    if (entry === undefined) throw missing(name, failures.get(name));
    return await readCached(cacheFolder, entry);
  };
  return { ipv4: await read(names.ipv4), ipv6: await read(names.ipv6) };
}

/** Why which of them could not be had. */
async function refresh(
  options: Omit<FetchOptions, "names" | "acceptSmaller">,
): Promise<ReadonlyMap<string, string>> {
  const results = await fetchSources({ ...options, names: Object.values(names), acceptSmaller: true });
  return new Map(
    results.flatMap((result) => (result.type === "failed" ? [[result.source, result.reason] as const] : [])),
  );
}

async function readCached(cacheFolder: string, entry: CachedFile): Promise<RdapBootstrap> {
  const path = join(cacheFolder, entry.file);
  const text = await readFile(path, "utf8").catch((error: Error) => {
    throw new CacheError(`${path} cannot be read: ${error.message}`, { cause: error });
  });
  return readBootstrap(path, text);
}

function missing(name: string, reason: string | undefined): CacheError {
  return new CacheError(
    `IANA's list of RDAP servers (${name}) is not there: ${reason ?? "it was not fetched"}`,
  );
}

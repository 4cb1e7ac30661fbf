/**
 * `manifest.json` describes each file of the cache folder, its origin and date. It is replaced atomically by a rename
 * and validated when read. An entry that does not match its file is ignored.
 */

import { open, readFile, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { registries } from "#coordinator/place/subnets/subnet";
import { CacheError } from "#core/errors";
import { isPublishedFormat, keptDays } from "../formats/published.ts";
import type { SourcePath } from "../read/open-source.ts";
import { downloadKinds, importOrder } from "./download-source.ts";

/** More geofeeds of one file are ignored. */
export const mostGeofeedsNamed = 20_000;

const time = z.iso.datetime();

const entrySchema = z.strictObject({
  /** Null for what networks publish themselves. */
  registry: z.enum(registries).nullable(),
  kind: z.enum(downloadKinds),
  file: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,120}$/),
  /** The requested URL, without secrets and before redirects. */
  url: z.string().max(2000),
  etag: z.string().max(1000).nullable(),
  /** As the server wrote it. */
  lastModified: z.string().max(100).nullable(),
  bytes: z.int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  checksumAgreed: z.boolean(),
  fetchedAt: time,
  /** When the server last confirmed that this is its newest version. */
  checkedAt: time,
  geofeeds: z.array(z.string().max(500)).max(mostGeofeedsNamed).optional(),
});

const manifestSchema = z.strictObject({
  version: z.literal(1),
  /** Kinds that only an earlier version imports are skipped, and forgotten at the next fetch. */
  sources: z.preprocess(ofKnownKinds, z.record(z.string().max(63), entrySchema)),
});

const formerKinds: readonly unknown[] = ["rdap-bootstrap", "routing-table"];

function ofKnownKinds(sources: unknown): unknown {
  if (typeof sources !== "object" || sources === null) return sources;
  return Object.fromEntries(
    Object.entries(sources).filter(([, entry]) => !formerKinds.includes(entry?.kind)),
  );
}

export type CachedFile = Readonly<z.infer<typeof entrySchema>>;

export type CacheManifest = Readonly<Record<string, CachedFile>>;

const maxManifestBytes = 64_000_000;

/** Returns an empty manifest without a file. Throws a CacheError when it is damaged. */
export async function readManifest(cacheFolder: string): Promise<CacheManifest> {
  const file = join(cacheFolder, "manifest.json");
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
    throw new CacheError(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
  const checked = text.length > maxManifestBytes ? null : manifestSchema.safeParse(parsed(text));
  if (checked?.success) return checked.data.sources;
  const issue = checked?.error.issues[0];
  const fault = issue ? `${issue.path.join(".") || "it"}: ${issue.message}` : "it is too long";
  throw new CacheError(`${file} is damaged (${fault}): delete it, and the next fetch starts over`);
}

export async function writeManifest(cacheFolder: string, sources: CacheManifest): Promise<void> {
  const file = join(cacheFolder, "manifest.json");
  const unfinished = `${file}.new`;
  const handle = await open(unfinished, "w");
  try {
    await handle.writeFile(`${JSON.stringify({ version: 1, sources }, null, 2)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(unfinished, file);
}

export async function isInPlace(cacheFolder: string, entry: CachedFile): Promise<boolean> {
  try {
    const facts = await stat(join(cacheFolder, entry.file));
    return facts.isFile() && facts.size === entry.bytes;
  } catch {
    return false;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export const geofeedFolder = (cacheFolder: string) => join(cacheFolder, "geofeeds");

/** A list of places that nobody confirmed for a quarter is no longer imported. */
export function isTooOld({ kind, checkedAt }: Pick<CachedFile, "kind" | "checkedAt">, now: Date): boolean {
  return isPublishedFormat(kind) && now.getTime() - Date.parse(checkedAt) > keptDays * 86_400_000;
}

/**
 * Returns the cached files in import order: IANA's, statistics, WHOIS data (split files, whole databases, ARIN's), then
 * what networks publish, each by source name. Throws a CacheError when there are none, or one differs from what was
 * fetched.
 */
export async function cachedSourceFiles(
  cacheFolder: string,
  now: Date = new Date(),
): Promise<readonly SourcePath[]> {
  const manifest = await readManifest(cacheFolder);
  const wanted = importOrder.flatMap((kind) =>
    Object.entries(manifest)
      .filter(([, entry]) => entry.kind === kind && !isTooOld(entry, now))
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
  return [
    ...wanted.map(([, { file, kind }]) => {
      const path = join(cacheFolder, file);
      return isPublishedFormat(kind) ? { file: path, format: kind } : path;
    }),
    ...(await geofeedFiles(cacheFolder, now)),
  ];
}

/** A changed file is ignored: it came from a stranger and must not stop an import. */
async function geofeedFiles(cacheFolder: string, now: Date): Promise<readonly string[]> {
  const folder = geofeedFolder(cacheFolder);
  const files: string[] = [];
  for (const entry of Object.values(await readManifest(folder)))
    if (!isTooOld(entry, now) && (await isInPlace(folder, entry))) files.push(join(folder, entry.file));
  return files.sort();
}

/**
 * `manifest.json` describes each file of the cache folder, its origin and date. It is replaced atomically by a rename
 * and validated when read. An entry that does not match its file is ignored.
 */

import { open, readFile, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { registries } from "#coordinator/place/subnets/subnet";
import { CacheError } from "#core/errors";
import { foreignDateMs } from "#core/foreign-dates";
import { isPublishedFormat, keptDays } from "../formats/published.ts";
import type { SourcePath } from "../read/open-source.ts";
import type { CachedSource } from "../read/status-api.ts";
import { type DownloadKind, type DownloadSource, downloadKinds } from "./source-settings.ts";

export const mostGeofeedsNamed = 20_000;

const time = z.iso.datetime();

const entrySchema = z.strictObject({
  /** Null for lists that networks publish themselves. */
  registry: z.enum(registries).nullable(),
  kind: z.enum(downloadKinds),
  file: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,120}$/),
  /** The requested URL, without secrets and before redirects. */
  url: z.string().max(2000),
  etag: z.string().max(1000).nullable(),
  lastModified: z.string().max(100).nullable(),
  bytes: z.int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  checksumAgreed: z.boolean(),
  fetchedAt: time,
  /** When the server last confirmed that this is the newest version. */
  checkedAt: time,
  geofeeds: z.array(z.string().max(500)).max(mostGeofeedsNamed).optional(),
});

const manifestSchema = z.strictObject({
  version: z.literal(1),
  /** Skips kinds that only an earlier version imports. The next fetch removes them. */
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

/** Returns an empty manifest if there is no file. Throws a CacheError when the file is damaged. */
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

/** A list of places that was not confirmed for a quarter is no longer imported. */
function isTooOld({ kind, checkedAt }: Pick<CachedFile, "kind" | "checkedAt">, now: Date): boolean {
  return isPublishedFormat(kind) && now.getTime() - Date.parse(checkedAt) > keptDays * 86_400_000;
}

/**
 * Returns the cached files in import order: IANA's, statistics, WHOIS data (split files, whole databases, ARIN's), then
 * networks' own lists, each group by source name. Throws a CacheError when there are none, or when one differs from the
 * file that was fetched.
 */
export async function cachedSourceFiles(
  cacheFolder: string,
  now: Date = new Date(),
): Promise<readonly SourcePath[]> {
  const manifest = await readManifest(cacheFolder);
  const wanted = downloadKinds.flatMap((kind) =>
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

/** Ignores a changed file, since a stranger's file must not stop an import. */
async function geofeedFiles(cacheFolder: string, now: Date): Promise<readonly string[]> {
  const folder = geofeedFolder(cacheFolder);
  const files: string[] = [];
  for (const entry of Object.values(await readManifest(folder)))
    if (!isTooOld(entry, now) && (await isInPlace(folder, entry))) files.push(join(folder, entry.file));
  return files.sort();
}

// What `rir sources` lists: what would be fetched from where, and how old the cached copies are.

export type SourceRow = CachedSource;

/** A quarter in days, the interval at which registries must be refreshed. */
export const quarterDays = 92;
const dayMs = 86_400_000;

export async function sourceRows(
  sources: readonly DownloadSource[],
  cacheFolder: string,
  now: Date,
): Promise<readonly SourceRow[]> {
  const manifest = await readManifest(cacheFolder);
  const known = new Set(sources.map(({ name }) => name));
  const listed = sources.map(async (source) => {
    const entry = manifest[source.name] ?? null;
    const inPlace = entry !== null && (await isInPlace(cacheFolder, entry));
    const copy = copyFacts(entry, now);
    return { ...namedFacts(source), ...copy, state: copyState(source, { entry, inPlace, copy }) };
  });
  const others = Object.entries(manifest)
    .filter(([name]) => !known.has(name))
    .map(([name, entry]) => unlistedRow(name, entry, now));
  return [...(await Promise.all(listed)), ...others];
}

export interface GeofeedCopies {
  readonly files: number;
  readonly bytes: number;
  readonly tooOld: number;
}

export async function geofeedCopies(cacheFolder: string, now: Date): Promise<GeofeedCopies> {
  const entries = Object.values(await readManifest(geofeedFolder(cacheFolder)));
  return {
    files: entries.length,
    bytes: entries.reduce((sum, { bytes }) => sum + bytes, 0),
    tooOld: entries.filter((entry) => isTooOld(entry, now)).length,
  };
}

function namedFacts({ name, registry, kind, access, url, mirrors, file }: DownloadSource) {
  return { name, registry, kind, access, url, mirrors, file };
}

function unlistedRow(name: string, entry: CachedFile, now: Date): SourceRow {
  const { registry, kind, url, file } = entry;
  const unlisted = { access: { type: "public" }, mirrors: [], state: "not in the list" } as const;
  return { name, registry, kind, url, file, ...unlisted, ...copyFacts(entry, now) };
}

function copyFacts(entry: CachedFile | null, now: Date) {
  const modifiedMs = foreignDateMs(entry?.lastModified ?? "");
  const dataDate = modifiedMs === null ? (entry?.fetchedAt ?? null) : new Date(modifiedMs).toISOString();
  return {
    bytes: entry?.bytes ?? null,
    sha256: entry?.sha256 ?? null,
    checksumAgreed: entry?.checksumAgreed ?? null,
    dataDate,
    dataAgeDays: daysSince(dataDate, now),
    fetchedAt: entry?.fetchedAt ?? null,
    checkedDaysAgo: daysSince(entry?.checkedAt ?? null, now),
  };
}

function copyState(
  source: DownloadSource,
  at: {
    readonly entry: CachedFile | null;
    readonly inPlace: boolean;
    readonly copy: ReturnType<typeof copyFacts>;
  },
): SourceRow["state"] {
  if (source.state === "off") return "off";
  if (at.entry === null) return source.state === "waiting" ? "not set up" : "missing";
  if (!at.inPlace) return "changed on disk";
  const { checkedDaysAgo, dataAgeDays } = at.copy;
  if ((checkedDaysAgo ?? 0) > quarterDays) return "stale";
  const isOld = publishedDaily(source.kind) && (dataAgeDays ?? 0) > quarterDays;
  return isOld ? "old at its source" : "fresh";
}

/** IANA's files and the clouds' lists may stay unchanged for years, so only the check for a new version can be overdue. */
function publishedDaily(kind: DownloadKind): boolean {
  return !isPublishedFormat(kind) && kind !== "iana-registry";
}

function daysSince(time: string | null, now: Date): number | null {
  return time === null ? null : Math.max(0, Math.floor((now.getTime() - Date.parse(time)) / dayMs));
}

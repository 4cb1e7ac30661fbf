/** `rir sources` lists what would be fetched from where, and the age of our copies. */

import { foreignDateMs } from "#core/foreign-dates";
import { isPublishedFormat } from "../formats/published.ts";
import type { CachedSource } from "../read/status-api.ts";
import { type CachedFile, geofeedFolder, isInPlace, isTooOld, readManifest } from "./cache-manifest.ts";
import type { DownloadKind, DownloadSource } from "./download-source.ts";

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
  /** Not confirmed for a quarter, so no longer imported. */
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

/** IANA's files and clouds' lists may stay unchanged for years, so only our check can be overdue. */
function publishedDaily(kind: DownloadKind): boolean {
  return !isPublishedFormat(kind) && kind !== "iana-registry";
}

function daysSince(time: string | null, now: Date): number | null {
  return time === null ? null : Math.max(0, Math.floor((now.getTime() - Date.parse(time)) / dayMs));
}

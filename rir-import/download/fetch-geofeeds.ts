/**
 * Fetches the geofeeds that registry objects name (RFC 9632) after the registries' files: thousands of small files from
 * strangers' servers. They are limited individually and in total, requested a few at a time and one per host, never
 * from special-purpose addresses. A failed one keeps its old copy, which is imported for a quarter.
 */
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { geofeedFileOf } from "../formats/geofeed.ts";
import {
  type CacheManifest,
  geofeedFolder,
  isInPlace,
  readManifest,
  writeManifest,
} from "./cache-manifest.ts";
import type { Clock } from "./clock.ts";
import { downloadFailure } from "./download-failure.ts";
import type { DownloadSource } from "./download-source.ts";
import { checkContent, type FetchedSource, fetchSource, namesGeofeeds } from "./fetch-source.ts";
import { type HttpClient, noSecrets } from "./http-client.ts";
import { type FetchLimits, type SourceSettings, sourceOf } from "./source-settings.ts";

interface GeofeedsJob {
  readonly settings: SourceSettings;
  readonly cacheFolder: string;
  readonly manifest: CacheManifest;
  /** Refuses special-purpose addresses. */
  readonly client: HttpClient;
  readonly clock: Clock;
  readonly random: () => number;
  readonly signal: AbortSignal;
  readonly spread: (
    items: readonly DownloadSource[],
    work: (source: DownloadSource) => Promise<void>,
  ) => Promise<unknown>;
  readonly onProgress: (done: number, total: number) => void;
}

interface FetchedGeofeeds {
  readonly named: number;
  readonly fetched: number;
  readonly unchanged: number;
  readonly failed: number;
  /** More were named than the settings allow, or the time was over. */
  readonly notAsked: number;
  readonly bytes: number;
  readonly reasons: readonly string[];
}

const reasonsKept = 5;
const savedEvery = 250;

/** One try each, because an unreachable server is asked again the next time. */
const limitsOfOne: FetchLimits = {
  idleSeconds: 20,
  totalMinutes: 2,
  tries: 1,
  redirects: 5,
  longestWaitSeconds: 0,
};

/** Returns null when no registry object names any or the settings want none. */
export async function fetchGeofeeds(job: GeofeedsJob): Promise<FetchedGeofeeds | null> {
  const { settings, cacheFolder, clock } = job;
  const urls = settings.geofeeds.enabled ? await namedGeofeeds(job) : [];
  const folder = geofeedFolder(cacheFolder);
  let manifest = await readManifest(folder);
  if (urls.length === 0 && Object.keys(manifest).length === 0) return null;
  await mkdir(folder, { recursive: true });
  const sources = urls.slice(0, settings.geofeeds.most).map((url) => geofeedSource(url, settings));
  manifest = await withoutUnnamed(folder, manifest, urls);
  const untilMs = clock.now().getTime() + settings.geofeeds.totalMinutes * 60_000;
  const sums = { fetched: 0, unchanged: 0, failed: 0, notAsked: urls.length - sources.length, bytes: 0 };
  const reasons: string[] = [];
  let done = 0;
  let written = Promise.resolve();
  const save = () => {
    written = written.then(() => writeManifest(folder, manifest));
    return written;
  };
  await job.spread(sources, async (source) => {
    if (job.signal.aborted) return;
    if (clock.now().getTime() > untilMs) sums.notAsked += 1;
    else {
      try {
        const { type, entry } = await bring(source, {
          ...job,
          folder,
          cached: manifest[source.name] ?? null,
        });
        manifest = { ...manifest, [source.name]: entry };
        sums[type] += 1;
        sums.bytes += type === "fetched" ? entry.bytes : 0;
      } catch (error) {
        sums.failed += 1;
        if (reasons.length < reasonsKept) reasons.push(downloadFailure(error).message.slice(0, 300));
      }
    }
    done += 1;
    job.onProgress(done, sources.length);
    if (done % savedEvery === 0) await save();
  });
  await save();
  job.signal.throwIfAborted();
  return { named: urls.length, ...sums, reasons };
}

function geofeedSource(url: string, { geofeeds }: SourceSettings): DownloadSource {
  const file = geofeedFileOf(url);
  return sourceOf({
    ...{ name: file.replace(/\.csv$/, ""), registry: null, kind: "geofeed", url, file },
    ...{ smallestShare: 0, maxBytes: geofeeds.maxBytes },
  });
}

async function bring(
  source: DownloadSource,
  job: GeofeedsJob & { readonly folder: string; readonly cached: CacheManifest[string] | null },
): Promise<FetchedSource> {
  const { client, clock, random, signal, folder, cached } = job;
  const limits = {
    ...limitsOfOne,
    redirects: Math.min(limitsOfOne.redirects, job.settings.limits.redirects),
  };
  return await fetchSource({
    ...{ source, secrets: noSecrets, cacheFolder: folder, cached, acceptSmaller: true },
    ...{ client, limits, clock, random, signal, onBytes: () => {}, onWait: () => {} },
  });
}

/** Lists every URL once in order. A file fetched by an older version is scanned for them now. */
async function namedGeofeeds({ manifest, cacheFolder }: GeofeedsJob): Promise<readonly string[]> {
  const urls = new Set<string>();
  for (const entry of Object.values(manifest)) {
    if (!namesGeofeeds(entry.kind) || !(await isInPlace(cacheFolder, entry))) continue;
    const named = entry.geofeeds ?? (await checkContent(join(cacheFolder, entry.file), entry.kind)).geofeeds;
    for (const url of named ?? []) urls.add(url);
  }
  return [...urls].sort();
}

async function withoutUnnamed(
  folder: string,
  manifest: CacheManifest,
  urls: readonly string[],
): Promise<CacheManifest> {
  const named = new Set(urls.map(geofeedFileOf));
  const kept: Record<string, CacheManifest[string]> = {};
  for (const [name, entry] of Object.entries(manifest)) {
    if (named.has(entry.file)) kept[name] = entry;
    else
      for (const end of ["", ".previous", ".part", ".part.json"])
        await rm(join(folder, entry.file + end), { force: true });
  }
  return kept;
}

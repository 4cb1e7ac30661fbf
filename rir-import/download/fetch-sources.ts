/**
 * `rir fetch` downloads every active source, two at a time and never two from one host. A failure does not stop the
 * others, and each result is in the manifest before the next begins. The geofeeds that registry objects name come last.
 */

import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError, UsageError } from "#core/errors";
import { geofeedFileOf } from "../formats/geofeed.ts";
import { isPublishedFormat } from "../formats/published.ts";
import { withCacheLock } from "./cache-lock.ts";
import {
  type CacheManifest,
  geofeedFolder,
  isInPlace,
  readManifest,
  writeManifest,
} from "./cache-manifest.ts";
import { checkContent, type FetchedSource, fetchSource, namesGeofeeds } from "./fetch-source.ts";
import {
  type Clock,
  downloadFailure,
  HttpClient,
  type HttpSettings,
  noSecrets,
  type RequestSecrets,
} from "./http-client.ts";
import { type DownloadSource, type FetchLimits, type SourceSettings, sourceOf } from "./source-settings.ts";

export interface FetchOptions {
  readonly settings: SourceSettings;
  /** Names of sources, or `geofeeds`. An empty list fetches every active source. */
  readonly names: readonly string[];
  readonly cacheFolder: string;
  readonly acceptSmaller: boolean;
  readonly version: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: FetchProgress) => void;
}

export interface FetchProgress {
  readonly source: string;
  readonly state: "receiving" | "waiting" | "done";
  readonly bytesDone: number;
  readonly bytesTotal: number | null;
  readonly note: string;
  readonly sourcesDone: number;
  readonly sourcesTotal: number;
}

export type FetchResult =
  | {
      readonly source: string;
      readonly type: "fetched" | "unchanged" | "left out";
      readonly bytes: number;
      readonly note: string;
    }
  | { readonly source: string; readonly type: "failed"; readonly reason: string };

/**
 * Returns results in the list's order. Throws UsageError for unknown names, CacheError when another fetch is running,
 * and the signal's reason when it aborts.
 */
export async function fetchSources(options: FetchOptions): Promise<readonly FetchResult[]> {
  const sources = chosenSources(options.settings.sources, options.names);
  const http = await httpSettings(options.settings, options.version);
  const client = new HttpClient(http);
  const guarded = new HttpClient({ ...http, allowed: options.settings.allowAddresses });
  try {
    return await withCacheLock(options.cacheFolder, async (lost) => {
      const signal = AbortSignal.any([options.signal, lost]);
      return await new Fetch({ ...options, signal }, { client, guarded }).run(sources);
    });
  } finally {
    await client.close();
    await guarded.close();
  }
}

const geofeedsName = "geofeeds";

function chosenSources(all: readonly DownloadSource[], names: readonly string[]): readonly DownloadSource[] {
  if (names.length === 0) return all.filter(({ state }) => state !== "waiting");
  const byName = new Map(all.map((source) => [source.name, source]));
  const unknown = names.filter((name) => !byName.has(name) && name !== geofeedsName);
  if (unknown.length > 0) {
    throw new UsageError(
      `no source is called ${unknown.map((name) => `"${name}"`).join(", ")}; there are: ${[...byName.keys(), geofeedsName].join(", ")}`,
    );
  }
  return all.filter(({ name }) => names.includes(name));
}

class Fetch {
  readonly #options: FetchOptions;
  readonly #client: HttpClient;
  /** Downloads strangers' lists. Refuses special-purpose addresses unless the settings allow them. */
  readonly #guarded: HttpClient;
  #manifest: CacheManifest = {};
  #written: Promise<void> = Promise.resolve();
  #done = 0;
  #total = 0;

  constructor(options: FetchOptions, clients: { readonly client: HttpClient; readonly guarded: HttpClient }) {
    this.#options = options;
    this.#client = clients.client;
    this.#guarded = clients.guarded;
  }

  async run(sources: readonly DownloadSource[]): Promise<readonly FetchResult[]> {
    this.#manifest = await readManifest(this.#options.cacheFolder);
    this.#total = sources.length;
    const results = await spreadOverHosts(sources, hostOf, (source) => this.#fetch(source));
    this.#options.signal.throwIfAborted();
    const { names } = this.#options;
    const geofeeds = names.length === 0 || names.includes(geofeedsName) ? await this.#fetchGeofeeds() : null;
    return geofeeds === null ? results : [...results, geofeeds];
  }

  async #fetchGeofeeds(): Promise<FetchResult | null> {
    const { settings, cacheFolder, clock, random, signal } = this.#options;
    const source = geofeedsName;
    const got = await fetchGeofeeds({
      ...{ settings, cacheFolder, clock, random, signal },
      ...{ manifest: this.#manifest, client: this.#guarded },
      spread: (items, work) => spreadOverHosts(items, hostOf, work, mostGeofeedsAtOnce),
      onProgress: (done, total) =>
        this.#tell({
          ...{ source, state: done === total ? "done" : "waiting", bytesDone: 0, bytesTotal: null },
          note: `${done} of ${total} geofeeds`,
        }),
    });
    if (got === null) return null;
    const { named, fetched, unchanged, failed, notAsked, bytes, reasons } = got;
    const note = [
      `${named} named by registry objects: ${fetched} fetched, ${unchanged} unchanged, ${failed} failed`,
      ...(notAsked === 0 ? [] : [`${notAsked} not asked`]),
      ...reasons,
    ].join("; ");
    if (failed > 0 && fetched + unchanged === 0) return { source, type: "failed", reason: note };
    return { source, type: fetched > 0 ? "fetched" : "unchanged", bytes, note };
  }

  async #fetch(source: DownloadSource): Promise<FetchResult> {
    const result = await this.#resultOf(source);
    this.#done++;
    const bytes = result.type === "failed" ? 0 : result.bytes;
    const note = result.type === "failed" ? `failed: ${result.reason}` : result.type;
    this.#tell({ source: source.name, state: "done", bytesDone: bytes, bytesTotal: bytes, note });
    return result;
  }

  async #resultOf(source: DownloadSource): Promise<FetchResult> {
    const { name } = source;
    if (source.state === "off") return await this.#leaveOut(name);
    if (source.access.type === "on-request" && source.state === "waiting") {
      return { source: name, type: "failed", reason: `not set up: ${source.access.how}` };
    }
    try {
      const { type, entry, warning } = await this.#bring(source);
      await this.#record({ ...this.#manifest, [name]: entry });
      return { source: name, type, bytes: entry.bytes, note: warning ?? "" };
    } catch (error) {
      return { source: name, type: "failed", reason: downloadFailure(error).message };
    }
  }

  async #bring(source: DownloadSource): Promise<FetchedSource> {
    const { cacheFolder, acceptSmaller, settings, clock, random, signal } = this.#options;
    signal.throwIfAborted();
    let bytes = { bytesDone: 0, bytesTotal: null as number | null };
    return await fetchSource({
      source,
      secrets: await secretsOf(source),
      cacheFolder,
      cached: this.#manifest[source.name] ?? null,
      acceptSmaller,
      client: isPublishedFormat(source.kind) ? this.#guarded : this.#client,
      limits: settings.limits,
      clock,
      random,
      signal,
      onBytes: (bytesDone, bytesTotal) => {
        bytes = { bytesDone, bytesTotal };
        this.#tell({ source: source.name, state: "receiving", ...bytes, note: "" });
      },
      onWait: (ms, reason) => {
        const note = `${reason}; next try in ${Math.ceil(ms / 1000)} s`;
        this.#tell({ source: source.name, state: "waiting", ...bytes, note });
      },
    });
  }

  /** The file stays on disk but is no longer imported. */
  async #leaveOut(name: string): Promise<FetchResult> {
    const { [name]: known, ...others } = this.#manifest;
    if (known !== undefined) await this.#record(others);
    return { source: name, type: "left out", bytes: known?.bytes ?? 0, note: "switched off in the settings" };
  }

  /** Serialises writes, because two sources may finish at the same time. */
  async #record(manifest: CacheManifest): Promise<void> {
    this.#manifest = manifest;
    this.#written = this.#written.then(() => writeManifest(this.#options.cacheFolder, this.#manifest));
    await this.#written;
  }

  #tell(progress: Omit<FetchProgress, "sourcesDone" | "sourcesTotal">): void {
    this.#options.onProgress({ ...progress, sourcesDone: this.#done, sourcesTotal: this.#total });
  }
}

function hostOf({ url, mirrors }: DownloadSource): string {
  const first = url ?? mirrors[0];
  return first === undefined ? "" : new URL(first).host;
}

async function secretsOf({ headerFiles, queryFiles }: DownloadSource): Promise<RequestSecrets> {
  const read = async (files: Readonly<Record<string, string>>) =>
    Object.fromEntries(
      await Promise.all(Object.entries(files).map(async ([key, file]) => [key, await readSecret(file)])),
    ) as Record<string, string>;
  return { headers: await read(headerFiles), query: await read(queryFiles) };
}

/** Two sources at a time and never two from one host, because registries are not mirrors. */
const mostAtOnce = 2;
const mostGeofeedsAtOnce = 8;

/** Returns results in the order of the items. `work` must not throw. */
async function spreadOverHosts<Item, Result>(
  items: readonly Item[],
  hostOf: (item: Item) => string,
  work: (item: Item) => Promise<Result>,
  most = mostAtOnce,
): Promise<readonly Result[]> {
  const results = new Array<Result>(items.length);
  const waiting = items.map((item, index) => ({ item, index, host: hostOf(item) }));
  const underWay = new Map<string, Promise<void>>();
  while (waiting.length > 0 || underWay.size > 0) {
    const next = underWay.size < most ? waiting.findIndex(({ host }) => !underWay.has(host)) : -1;
    if (next < 0) {
      await Promise.race(underWay.values());
      continue;
    }
    const [{ item, index, host }] = waiting.splice(next, 1) as [(typeof waiting)[number]];
    underWay.set(
      host,
      work(item).then((result) => {
        results[index] = result;
        underWay.delete(host);
      }),
    );
  }
  return results;
}

// Reads a key or password from a file of its own, so that it is neither in the settings nor on a command line.

const maxSecretLength = 4096;

async function readSecret(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new ConfigError([`${file}: the secret cannot be read (${error.code ?? "unknown fault"})`]);
  });
  const secret = text.trim();
  if (secret === "" || secret.length > maxSecretLength || /[^\x20-\x7e]/.test(secret)) {
    throw new ConfigError([`${file}: must hold one line of printable ASCII`]);
  }
  return secret;
}

async function httpSettings(settings: SourceSettings, version: string): Promise<HttpSettings> {
  const { proxy, proxyAuthorizationFile, certificateFile, contact, limits } = settings;
  return {
    userAgent: registryUserAgent(version, contact),
    proxy:
      proxy === null
        ? null
        : { url: proxy, authorization: proxyAuthorizationFile && (await readSecret(proxyAuthorizationFile)) },
    certificates: certificateFile === null ? [] : [await readCertificates(certificateFile)],
    redirects: limits.redirects,
  };
}

/** Example: `Nearcrawl/0.1.0 (registry refresh; +noc@example.org)`. Says so when no contact is given. */
function registryUserAgent(version: string, contact: string | null): string {
  return `Nearcrawl/${version} (registry refresh; ${contact === null ? "no contact given" : `+${contact}`})`;
}

async function readCertificates(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((error: Error) => {
    throw new ConfigError([`${file}: the certificates cannot be read: ${error.message}`]);
  });
  if (!text.includes("-----BEGIN CERTIFICATE-----"))
    throw new ConfigError([`${file}: holds no PEM certificate`]);
  return text;
}

// The geofeeds that registry objects name (RFC 9632) are thousands of small files on strangers' servers. They are
// limited individually and in total, and never fetched from special-purpose addresses. A failed one keeps its old copy,
// which is imported for a quarter.

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
  /** Geofeeds not fetched because more were named than the settings allow, or because the time was over. */
  readonly notAsked: number;
  readonly bytes: number;
  readonly reasons: readonly string[];
}

const reasonsKept = 5;
const savedEvery = 250;

/** Each geofeed gets one try, because the next fetch tries an unreachable server again. */
const limitsOfOne: FetchLimits = {
  idleSeconds: 20,
  totalMinutes: 2,
  tries: 1,
  redirects: 5,
  longestWaitSeconds: 0,
};

/** Returns null when no registry object names a geofeed or the settings disable them. */
async function fetchGeofeeds(job: GeofeedsJob): Promise<FetchedGeofeeds | null> {
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

/** Lists every URL once, in order. Scans files for geofeeds now if an older version fetched them. */
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

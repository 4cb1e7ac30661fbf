/**
 * `rir fetch`: every source that is on, two at a time and never two from one host. One that fails does not stop
 * the others; each result is in the manifest before the next begins.
 */
import { UsageError } from "#core/errors";
import { withCacheLock } from "./cache-lock.ts";
import { type CacheManifest, readManifest, writeManifest } from "./cache-manifest.ts";
import type { Clock } from "./clock.ts";
import { downloadFailure } from "./download-failure.ts";
import type { DownloadSource } from "./download-source.ts";
import { type FetchedSource, fetchSource } from "./fetch-source.ts";
import { HttpClient, type RequestSecrets } from "./http-client.ts";
import { httpSettings } from "./http-settings.ts";
import { readSecret } from "./secret-file.ts";
import type { SourceSettings } from "./source-settings.ts";
import { spreadOverHosts } from "./spread-over-hosts.ts";

export interface FetchOptions {
  readonly settings: SourceSettings;
  /** Names of sources; empty: every one that is on. */
  readonly names: readonly string[];
  readonly cacheFolder: string;
  readonly acceptSmaller: boolean;
  /** For the User-Agent: the version of this software. */
  readonly version: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: FetchProgress) => void;
}

/** Where one source is; `state` says what it is doing. */
export interface FetchProgress {
  readonly source: string;
  readonly state: "receiving" | "waiting" | "done";
  readonly bytesDone: number;
  /** Null where the server does not say. */
  readonly bytesTotal: number | null;
  /** Why it waits, and how long; how it ended. */
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
 * In the order of the list. Throws UsageError for names that are not in it, CacheError when another fetch is at
 * work, and the signal's reason when it aborts.
 */
export async function fetchSources(options: FetchOptions): Promise<readonly FetchResult[]> {
  const sources = chosenSources(options.settings.sources, options.names);
  const client = new HttpClient(await httpSettings(options.settings, options.version));
  try {
    return await withCacheLock(options.cacheFolder, async (lost) => {
      const signal = AbortSignal.any([options.signal, lost]);
      return await new Fetch({ ...options, signal }, client).run(sources);
    });
  } finally {
    await client.close();
  }
}

function chosenSources(all: readonly DownloadSource[], names: readonly string[]): readonly DownloadSource[] {
  if (names.length === 0) return all.filter(({ state }) => state !== "waiting");
  const byName = new Map(all.map((source) => [source.name, source]));
  const unknown = names.filter((name) => !byName.has(name));
  if (unknown.length > 0) {
    throw new UsageError(
      `no source is called ${unknown.map((name) => `"${name}"`).join(", ")}; there are: ${[...byName.keys()].join(", ")}`,
    );
  }
  return all.filter(({ name }) => names.includes(name));
}

/** One run: the manifest as it grows, and how many sources are done. */
class Fetch {
  readonly #options: FetchOptions;
  readonly #client: HttpClient;
  #manifest: CacheManifest = {};
  #written: Promise<void> = Promise.resolve();
  #done = 0;
  #total = 0;

  constructor(options: FetchOptions, client: HttpClient) {
    this.#options = options;
    this.#client = client;
  }

  async run(sources: readonly DownloadSource[]): Promise<readonly FetchResult[]> {
    this.#manifest = await readManifest(this.#options.cacheFolder);
    this.#total = sources.length;
    const results = await spreadOverHosts(sources, hostOf, (source) => this.#fetch(source));
    this.#options.signal.throwIfAborted();
    return results;
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
      client: this.#client,
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

  /** The file stays on disk, but no import reads it any more. */
  async #leaveOut(name: string): Promise<FetchResult> {
    const { [name]: known, ...others } = this.#manifest;
    if (known !== undefined) await this.#record(others);
    return { source: name, type: "left out", bytes: known?.bytes ?? 0, note: "switched off in the settings" };
  }

  /** One write after the other: two sources may end at once. */
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

/** Fetches with adjustable settings for local servers, a manual clock and a cache folder. */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type FetchOptions, type FetchResult, fetchSources } from "#rir-import/download/fetch-sources";
import type { Clock } from "#rir-import/download/http-client";
import { sourceSettings } from "#rir-import/download/source-settings";
import { temporaryFolder } from "../../support/temporary-folder.ts";

export interface ManualClock extends Clock {
  /** The sleeps in ms. Each ends at once and advances the time. */
  readonly slept: number[];
  advance(ms: number): void;
}

export function manualClock(start = "2026-03-02T12:00:00.000Z"): ManualClock {
  let nowMs = Date.parse(start);
  const timers = new Map<() => void, number>();
  const slept: number[] = [];
  const advance = (ms: number) => {
    nowMs += ms;
    for (const [run, atMs] of [...timers]) {
      if (atMs > nowMs) continue;
      timers.delete(run);
      run();
    }
  };
  return {
    slept,
    advance,
    now: () => new Date(nowMs),
    after: (ms, run) => {
      const own = () => run();
      timers.set(own, nowMs + ms);
      return () => timers.delete(own);
    },
    sleep: async (ms, signal) => {
      signal.throwIfAborted();
      slept.push(ms);
      advance(ms);
    },
  };
}

export interface CacheFolder {
  readonly path: string;
  read(name: string): string;
  bytes(name: string): Buffer;
  manifest(): Readonly<Record<string, Record<string, unknown>>>;
  remove(): void;
}

export function cacheFolder(): CacheFolder {
  const path = temporaryFolder("registry-cache-");
  const bytes = (name: string) => readFileSync(join(path, name));
  return {
    path,
    bytes,
    read: (name) => bytes(name).toString("utf8"),
    manifest: () => JSON.parse(bytes("manifest.json").toString("utf8")).sources,
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** Fetches only what the settings name, without the registries' public locations. */
export function fetchFrom(
  settings: Record<string, unknown>,
  options: Partial<FetchOptions> & { readonly cacheFolder: string },
): Promise<readonly FetchResult[]> {
  return fetchSources({
    settings: sourceSettings({ onlyThese: true, contact: "noc@example.org", ...settings }, "/"),
    names: [],
    acceptSmaller: false,
    version: "1.2.3",
    clock: manualClock(),
    random: () => 1,
    signal: new AbortController().signal,
    onProgress: () => {},
    ...options,
  });
}

export const oneSource = (url: string, more: Record<string, unknown> = {}) => ({
  sources: { stats: { registry: "ripencc", kind: "statistics", url, ...more } },
});

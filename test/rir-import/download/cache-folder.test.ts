/** The cache folder: its manifest, its lock, the files for an import, and their age. */

import { existsSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { withCacheLock } from "#rir-import/download/cache-lock";
import {
  type CachedFile,
  cachedSourceFiles,
  readManifest,
  sourceRows,
  writeManifest,
} from "#rir-import/download/cache-manifest";
import { defaultSources } from "#rir-import/download/source-settings";
import { fileOf } from "#rir-import/read/open-source";
import { type CacheFolder, cacheFolder } from "./fetching.ts";

let cache: CacheFolder;
beforeEach(() => {
  cache = cacheFolder();
});
afterEach(() => cache.remove());

/** An entry of a default source with its file on disk. */
function cached(name: string, changes: Partial<CachedFile> = {}): readonly [string, CachedFile] {
  const source = defaultSources.find((one) => one.name === name)!;
  writeFileSync(join(cache.path, source.file), "data");
  const entry: CachedFile = {
    registry: source.registry,
    kind: source.kind,
    file: source.file,
    url: source.url!,
    etag: null,
    lastModified: "Mon, 02 Mar 2026 00:00:00 GMT",
    bytes: 4,
    sha256: "0".repeat(64),
    checksumAgreed: false,
    fetchedAt: "2026-03-02T12:00:00.000Z",
    checkedAt: "2026-03-02T12:00:00.000Z",
    ...changes,
  };
  return [name, entry];
}

describe("the files that an import takes", () => {
  it("are IANA's, then statistics, then WHOIS data", async () => {
    const names = [
      "lacnic-database",
      "ripencc-organisation",
      "ripencc-inetnum",
      "apnic-statistics",
      "iana-ipv4-address-space",
      "afrinic-statistics",
      "arin-bulk",
    ];
    await writeManifest(cache.path, Object.fromEntries(names.map((name) => cached(name))));

    const files = await cachedSourceFiles(cache.path);

    expect(files.map((file) => fileOf(file).slice(cache.path.length + 1))).toEqual([
      "ipv4-address-space.xml",
      "delegated-afrinic-extended-latest",
      "delegated-apnic-extended-latest",
      "ripe.db.inetnum.gz",
      "ripe.db.organisation.gz",
      "lacnic.db.gz",
      "arin_db.zip",
    ]);
  });

  it("must be what was fetched", async () => {
    await writeManifest(cache.path, Object.fromEntries([cached("apnic-inetnum", { bytes: 5 })]));

    await expect(cachedSourceFiles(cache.path)).rejects.toThrow(
      /apnic\.db\.inetnum\.gz is not the file that was fetched \(5 bytes\): nearcrawl rir fetch apnic-inetnum/,
    );
  });

  it("must be there at all", async () => {
    await expect(cachedSourceFiles(cache.path)).rejects.toThrow(
      "holds no registry files: nearcrawl rir fetch",
    );
  });
});

describe("the manifest", () => {
  it("is checked when it is read: damage is reported with its remedy", async () => {
    for (const text of ["{", "[]", '{"version":1,"sources":{"a":{"file":"../../etc/passwd"}}}']) {
      writeFileSync(join(cache.path, "manifest.json"), text);

      await expect(readManifest(cache.path)).rejects.toThrow(/manifest\.json is damaged \(.*\): delete it/);
    }
  });

  it("of an earlier version is adopted, except for kinds of files that are no longer imported", async () => {
    const [name, entry] = cached("apnic-inetnum");
    const sources = Object.fromEntries(
      ["rdap-bootstrap", "routing-table"].map((kind) => [kind, { ...entry, kind }]),
    );
    writeFileSync(
      join(cache.path, "manifest.json"),
      JSON.stringify({ version: 1, sources: { ...sources, [name]: entry } }),
    );

    expect(await readManifest(cache.path)).toEqual({ [name]: entry });
  });
});

describe("how old our copies are", () => {
  const stateOf = async (name: string, now: string) =>
    (await sourceRows(defaultSources, cache.path, new Date(now))).find((row) => row.name === name);

  it("counts from the day we last asked; past a quarter it is stale", async () => {
    await writeManifest(cache.path, Object.fromEntries([cached("apnic-inetnum")]));

    expect(await stateOf("apnic-inetnum", "2026-06-02T12:00:00Z")).toMatchObject({
      state: "fresh",
      bytes: 4,
      dataDate: "2026-03-02T00:00:00.000Z",
      dataAgeDays: 92,
      checkedDaysAgo: 92,
    });
    expect(await stateOf("apnic-inetnum", "2026-06-03T12:00:00Z")).toMatchObject({
      state: "stale",
      dataAgeDays: 93,
    });
  });

  it("is reported when the registry itself no longer publishes, however often we ask", async () => {
    const checkedAt = "2026-08-01T00:00:00.000Z";
    await writeManifest(cache.path, Object.fromEntries([cached("apnic-inetnum", { checkedAt })]));

    expect((await stateOf("apnic-inetnum", "2026-08-02T00:00:00Z"))?.state).toBe("old at its source");
  });

  it("does not count against IANA, whose registries rarely change", async () => {
    const checkedAt = "2026-08-01T00:00:00.000Z";
    await writeManifest(cache.path, Object.fromEntries([cached("iana-ipv4-address-space", { checkedAt })]));

    expect((await stateOf("iana-ipv4-address-space", "2026-08-02T00:00:00Z"))?.state).toBe("fresh");
    expect((await stateOf("iana-ipv4-address-space", "2026-11-02T00:00:00Z"))?.state).toBe("stale");
  });

  it("lists what is missing, changed, waiting for access, and no longer in the list", async () => {
    const [, entry] = cached("apnic-inet6num", { bytes: 9 });
    await writeManifest(cache.path, { "apnic-inet6num": entry, "our-own": { ...entry, file: "own.gz" } });

    expect((await stateOf("apnic-inetnum", "2026-03-03T00:00:00Z"))?.state).toBe("missing");
    expect((await stateOf("apnic-inet6num", "2026-03-03T00:00:00Z"))?.state).toBe("changed on disk");
    expect((await stateOf("arin-bulk", "2026-03-03T00:00:00Z"))?.state).toBe("not set up");
    expect((await stateOf("our-own", "2026-03-03T00:00:00Z"))?.state).toBe("not in the list");
  });
});

describe("the lock", () => {
  const lock = () => join(cache.path, "fetch.lock");
  const held = (holder: Record<string, unknown>) => writeFileSync(lock(), JSON.stringify(holder));
  /** No process has this id, since Linux's maximum is four million. */
  const deadPid = 2 ** 30;
  const since = "2026-03-02T12:00:00.000Z";

  it("is held during the work and released, also when the work fails", async () => {
    await withCacheLock(cache.path, async () => expect(existsSync(lock())).toBe(true));
    await expect(withCacheLock(cache.path, async () => Promise.reject(new Error("no")))).rejects.toThrow(
      "no",
    );

    expect(readdirSync(cache.path)).toEqual([]);
  });

  it("of a dead process is taken over at once", async () => {
    held({ pid: deadPid, host: hostname(), token: "old", since });

    expect(await withCacheLock(cache.path, async () => "done")).toBe("done");
  });

  it("of another machine is respected until it is five minutes old", async () => {
    held({ pid: deadPid, host: "elsewhere", token: "old", since });
    const work = () => withCacheLock(cache.path, async () => "done");

    await expect(work()).rejects.toThrow(`process ${deadPid} on elsewhere, since ${since}`);
    const sixMinutesAgo = new Date(statSync(lock()).mtimeMs - 360_000);
    utimesSync(lock(), sixMinutesAgo, sixMinutesAgo);
    expect(await work()).toBe("done");
  });

  it("goes to one of twenty that find it abandoned at once, fifty times in a row", async () => {
    let inside = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++inside);
      for (let turn = 0; turn < 300; turn++) await new Promise((resolve) => setImmediate(resolve));
      inside--;
    };

    for (let round = 0; round < 50; round++) {
      held({ pid: deadPid, host: hostname(), token: "old", since });
      const all = Array.from({ length: 20 }, () => withCacheLock(cache.path, work));
      const outcomes = await Promise.allSettled(all);
      expect(outcomes.some(({ status }) => status === "fulfilled")).toBe(true);
      rmSync(lock(), { force: true });
    }

    expect(most).toBe(1);
    expect(readdirSync(cache.path)).toEqual([]);
  });
});

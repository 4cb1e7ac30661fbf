/** The operator's settings for sources: what they change, and every fault at once. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ConfigError } from "#core/errors";
import { defaultSources, readSourceSettings, sourceSettings } from "#rir-import/download/source-settings";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const named = (values: unknown, name: string) =>
  sourceSettings(values, "/etc/nearcrawl").sources.find((source) => source.name === name);

function faultsOf(values: unknown): readonly string[] {
  try {
    sourceSettings(values, "/");
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
  }
  return [];
}

describe("the registries' public locations", () => {
  it("are https, each with a file of its own in the cache", () => {
    const urls = defaultSources.flatMap(({ url }) => url ?? []);

    expect(urls.filter((url) => !url.startsWith("https://"))).toEqual([]);
    expect(new Set(defaultSources.map(({ file }) => file)).size).toBe(defaultSources.length);
    expect(new Set(defaultSources.map(({ name }) => name)).size).toBe(defaultSources.length);
  });

  it("cover every registry with statistics that have a checksum", () => {
    const statistics = defaultSources.filter(({ kind }) => kind === "statistics");

    expect(statistics.map(({ registry }) => registry)).toEqual([
      "afrinic",
      "apnic",
      "arin",
      "lacnic",
      "ripencc",
    ]);
    expect(statistics.every(({ hasMd5 }) => hasMd5)).toBe(true);
  });

  it("wait for the operator where a registry wants an agreement first, or the address changes weekly", () => {
    const waiting = defaultSources.filter(({ state }) => state === "waiting");

    expect(waiting.map(({ name, access }) => [name, access.type])).toEqual([
      ["arin-bulk", "on-request"],
      ["lacnic-bulk", "on-request"],
      ["azure-ranges", "on-request"],
    ]);
  });
});

describe("the settings", () => {
  it("set up ARIN's bulk data by naming the file of the key", () => {
    const source = named({ sources: { "arin-bulk": { queryFiles: { apikey: "arin-key" } } } }, "arin-bulk");

    expect(source).toMatchObject({ state: "on", queryFiles: { apikey: "/etc/nearcrawl/arin-key" } });
  });

  it("set up LACNIC's by its URL, and nothing less", () => {
    const url = "https://bulk.example.org/lacnic";

    expect(named({ sources: { "lacnic-bulk": { url } } }, "lacnic-bulk")).toMatchObject({ state: "on", url });
    expect(faultsOf({ sources: { "lacnic-bulk": { enabled: true } } })).toEqual([
      "sources.lacnic-bulk: url: has to be given, there is no public one",
    ]);
  });

  it("switch off, replace and add", () => {
    const mirror = "https://mirror.example.org/x.gz";
    const values = {
      sources: {
        "lacnic-database": { enabled: false },
        "apnic-inetnum": { mirrors: [mirror], smallestShare: 0.5 },
        "our-own": { registry: "ripencc", kind: "whole-database", url: mirror },
      },
    };

    expect(named(values, "lacnic-database")?.state).toBe("off");
    expect(named(values, "apnic-inetnum")).toMatchObject({
      state: "on",
      mirrors: [mirror],
      smallestShare: 0.5,
      file: "apnic.db.inetnum.gz",
    });
    expect(named(values, "our-own")).toMatchObject({ state: "on", file: "x.gz", hasMd5: false });
  });

  it("start from an empty list where they say so", () => {
    expect(sourceSettings({ onlyThese: true }, "/").sources).toEqual([]);
  });

  it("list every fault with its place, unknown keys too", () => {
    const faults = faultsOf({
      contakt: "x",
      proxy: "http://user:secret@proxy.example.org",
      limits: { tries: 0 },
      sources: {
        "apnic-inetnum": { url: "ftp://ftp.apnic.net/x", colour: "red" },
        ours: { file: "../../etc/passwd" },
      },
    });

    expect(faults).toEqual([
      "proxy: must be an http or https URL without user, password or fragment",
      "limits.tries: Too small: expected number to be >=1",
      "sources.apnic-inetnum.url: must be an http or https URL without user, password or fragment",
      "sources.apnic-inetnum.colour: there is no such setting",
      "sources.ours.file: must be a plain file name",
      "contakt: there is no such setting",
    ]);
  });

  it("refuse an incomplete new source, and two with one file", () => {
    const url = "https://example.org/apnic.db.inetnum.gz";

    expect(
      faultsOf({ sources: { ours: {}, other: { registry: "apnic", kind: "rpsl-split", url } } }),
    ).toEqual([
      "sources.ours: a new source needs registry, kind and url",
      "sources.other.file: apnic.db.inetnum.gz is the file of apnic-inetnum too",
    ]);
  });

  it("name their file in every fault", async () => {
    const folder = temporaryFolder("source-settings-");
    const file = join(folder, "sources.json");

    writeFileSync(file, '{"a": 1}');
    await expect(readSourceSettings(file)).rejects.toThrow(`${file}: a: there is no such setting`);
    writeFileSync(file, "{");
    await expect(readSourceSettings(file)).rejects.toThrow(`${file}: not JSON: `);
    await expect(readSourceSettings(join(folder, "none"))).rejects.toThrow("cannot be read");
    rmSync(folder, { recursive: true });
  });
});

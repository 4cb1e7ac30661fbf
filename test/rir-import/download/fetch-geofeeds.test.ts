/** Geofeeds and clouds' lists over real TLS on loopback: found in the registry's file, fetched, limited, kept. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseRange } from "#core/ip/range";
import { readState } from "#rir-import/check";
import { cachedSourceFiles, geofeedCopies } from "#rir-import/download/cache-manifest";
import { GeofeedFinder, geofeedFileOf } from "#rir-import/formats/geofeed";
import { type CacheFolder, cacheFolder, fetchFrom, manualClock } from "./fetching.ts";
import {
  always,
  answer,
  certificateFile,
  inTurn,
  published,
  type RegistryServer,
  registryServer,
} from "./registry-server.ts";

let server: RegistryServer;
let cache: CacheFolder;
beforeEach(async () => {
  server = await registryServer({}, { secure: true });
  cache = cacheFolder();
});
afterEach(async () => {
  await server.close();
  cache.remove();
});

const object = (at: number, naming: string) =>
  `inetnum: 45.0.${at}.0/24\nnetname: EX-${at}\n${naming}\nsource: RIPE\n`;

/** The registry's database, whose objects name these paths of the server. */
function publishDatabase(...paths: readonly string[]): void {
  const objects = paths.map((path, at) =>
    object(at, `${at % 2 === 0 ? "geofeed:" : "remarks: Geofeed"} ${server.origin}${path}`),
  );
  server.paths.set("/ripe.db.gz", published(gzipSync(objects.join("\n")), { etag: `"${paths.join()}"` }));
}

const settings = (more: Record<string, unknown> = {}) => ({
  certificateFile,
  allowAddresses: ["127.0.0.1"],
  sources: {
    db: { registry: "ripencc", kind: "whole-database", url: `${server.origin}/ripe.db.gz`, smallestShare: 0 },
  },
  ...more,
});
const fetchAll = async (more: Record<string, unknown> = {}, options = {}) =>
  (await fetchFrom(settings(more), { cacheFolder: cache.path, ...options })).filter(
    ({ source }) => source !== "db",
  );
const fileOf = (path: string) => join(cache.path, "geofeeds", geofeedFileOf(`${server.origin}${path}`));
const textOf = (path: string) => readFileSync(fileOf(path), "utf8");

describe("what registry objects name", () => {
  it("is fetched behind the registry's file, and only once it changed", async () => {
    publishDatabase("/a.csv", "/b.csv");
    server.paths.set("/a.csv", published("45.0.0.0/25,NL,,,\n"));
    server.paths.set("/b.csv", published("45.0.1.0/25,DE,,,\n"));

    expect(await fetchAll()).toEqual([
      {
        ...{ source: "geofeeds", type: "fetched", bytes: 36 },
        note: "2 named by registry objects: 2 fetched, 0 unchanged, 0 failed",
      },
    ]);
    expect(textOf("/b.csv")).toBe("45.0.1.0/25,DE,,,\n");
    expect(cache.manifest().db?.geofeeds).toEqual([`${server.origin}/a.csv`, `${server.origin}/b.csv`]);

    server.paths.set("/a.csv", published("45.0.0.0/25,SE,,,\n", { etag: '"v2"' }));
    expect(await fetchAll()).toMatchObject([
      { type: "fetched", note: "2 named by registry objects: 1 fetched, 1 unchanged, 0 failed" },
    ]);
    expect(textOf("/a.csv")).toBe("45.0.0.0/25,SE,,,\n");
    expect(server.requestsTo("/b.csv")[1]?.headers["if-none-match"]).toBe('"v1"');
    expect(server.mostAtOnce()).toBe(1);
  });

  it("is imported with the registries' files until it is unconfirmed for a quarter", async () => {
    publishDatabase("/a.csv");
    server.paths.set("/a.csv", published("45.0.0.0/25,NL,,,\n"));
    await fetchAll();
    const files = async (day: string) => await cachedSourceFiles(cache.path, new Date(day));

    expect(await files("2026-06-02")).toEqual([join(cache.path, "ripe.db.gz"), fileOf("/a.csv")]);
    expect(await files("2026-06-03")).toEqual([join(cache.path, "ripe.db.gz")]);
    const copies = async (day: string) => await geofeedCopies(cache.path, new Date(day));
    expect(await copies("2026-06-02")).toEqual({ files: 1, bytes: 18, tooOld: 0 });
    expect(await copies("2026-06-03")).toMatchObject({ tooOld: 1 });
  });

  it("stays when a fetch fails, and is removed when no object names it any more", async () => {
    publishDatabase("/a.csv", "/b.csv");
    server.paths.set("/a.csv", inTurn(published("45.0.0.0/25,NL,,,\n"), always(500)));
    server.paths.set("/b.csv", published("45.0.1.0/25,DE,,,\n"));
    await fetchAll();

    const later = await fetchAll({}, { clock: manualClock("2026-04-02T12:00:00.000Z") });
    expect(later).toMatchObject([{ note: expect.stringContaining("1 unchanged, 1 failed; ") }]);
    expect(later).toMatchObject([{ note: expect.stringContaining("/a.csv: the server answers 500") }]);
    expect(textOf("/a.csv")).toBe("45.0.0.0/25,NL,,,\n");

    publishDatabase("/b.csv");
    await fetchAll();
    expect(existsSync(fileOf("/a.csv"))).toBe(false);
    expect(readdirSync(join(cache.path, "geofeeds")).sort()).toEqual([
      geofeedFileOf(`${server.origin}/b.csv`),
      "manifest.json",
    ]);
  });

  it("is limited by the settings, and nothing where they allow none", async () => {
    publishDatabase("/a.csv", "/b.csv", "/c.csv");
    for (const path of ["/a.csv", "/b.csv", "/c.csv"])
      server.paths.set(path, published("45.0.0.0/25,NL,,,\n"));

    expect(await fetchAll({ geofeeds: { enabled: false } })).toEqual([]);
    expect(await fetchAll({ geofeeds: { most: 2 } })).toMatchObject([
      { note: "3 named by registry objects: 2 fetched, 0 unchanged, 0 failed; 1 not asked" },
    ]);
    expect(server.requestsTo("/c.csv")).toEqual([]);
  });
});

describe("a hostile geofeed", () => {
  it("is refused unread when it announces 500 MB, and cut off when it only sends them", async () => {
    let sent = 0;
    publishDatabase("/said.csv", "/streamed.csv");
    server.paths.set("/said.csv", (_request, response) => {
      response.writeHead(200, { "content-length": 500_000_000 }).flushHeaders();
    });
    server.paths.set("/streamed.csv", (_request, response) => {
      const piece = Buffer.alloc(2 ** 20, "45.0.1.0/24,NL,,,\n");
      const send = () => {
        while (sent < 500 * 2 ** 20 && !response.destroyed) {
          sent += piece.length;
          if (!response.write(piece)) return void response.once("drain", send);
        }
        response.end();
      };
      response.writeHead(200);
      send();
    });

    const [result] = await fetchAll();

    expect(result).toMatchObject({ source: "geofeeds", type: "failed" });
    const { reason } = result as { reason: string };
    expect(reason).toContain("/said.csv: 500000000 bytes, larger than the 16777216 bytes that are taken");
    expect(reason).toContain("/streamed.csv: larger than the 16777216 bytes that are taken");
    expect(sent).toBeLessThan(40 * 2 ** 20);
    expect(readdirSync(join(cache.path, "geofeeds"))).toEqual(["manifest.json"]);
  });

  it("cannot lead to a private or special-purpose address, to another service, or away from TLS", async () => {
    publishDatabase("/private.csv", "/metadata.csv", "/mapped.csv", "/http.csv", "/port.csv");
    const to = (location: string) => always(302, "", { location });
    server.paths.set("/private.csv", to("https://10.0.0.1/geofeed.csv"));
    server.paths.set("/metadata.csv", to("https://169.254.169.254/latest/meta-data"));
    server.paths.set("/mapped.csv", to("https://[::ffff:192.168.0.1]/"));
    server.paths.set("/http.csv", to("http://127.0.0.1/"));
    server.paths.set("/port.csv", to("https://127.0.0.1:5432/"));

    const [result] = await fetchAll();
    const { reason } = result as { reason: string };

    expect(reason).toContain(
      "/private.csv: 10.0.0.1 is 10.0.0.0/8 private use (RFC 1918), which is not asked",
    );
    expect(reason).toContain("/metadata.csv: 169.254.169.254 is 169.254.0.0/16 link-local");
    expect(reason).toContain("/mapped.csv: [::ffff:c0a8:1] is 192.168.0.0/16 private use");
    expect(reason).toContain("/http.csv: redirected from https to http");
    expect(reason).toContain("/port.csv: 127.0.0.1:5432 names port 5432");
  });

  it("is not requested from an internal address where none is allowed", async () => {
    server.paths.set("/aws.json", published("{}"));
    const sources = {
      literal: { kind: "aws-ranges", url: `${server.origin}/aws.json` },
      named: { kind: "google-ranges", url: `${server.origin.replace("127.0.0.1", "localhost")}/google.json` },
    };
    const results = await fetchFrom({ certificateFile, sources }, { cacheFolder: cache.path });

    expect(results).toMatchObject([
      { type: "failed", reason: expect.stringMatching(/127\.0\.0\.1:\d+ is 127\.0\.0\.0\/8 loopback/) },
      { type: "failed", reason: expect.stringMatching(/localhost is at (127\.0\.0\.1|::1): .* loopback/) },
    ]);
    expect(server.requests).toEqual([]);
  });

  it("that is a web page, or not a geofeed, is refused", async () => {
    publishDatabase("/page.csv", "/nothing.csv", "/comments.csv");
    server.paths.set("/page.csv", always(200, "<!doctype html><title>Sign in</title>"));
    server.paths.set("/nothing.csv", always(200, "prefix,country\nno,NL\n"));
    server.paths.set("/comments.csv", always(200, "# nothing to say any more\n"));

    const [result] = await fetchAll();

    expect(result).toMatchObject({ note: expect.stringContaining("1 fetched, 0 unchanged, 2 failed") });
    expect(result).toMatchObject({ note: expect.stringContaining("a web page, not a list of places") });
    expect(result).toMatchObject({ note: expect.stringContaining('not an address range: "prefix,country"') });
  });
});

/** Runs `rir fetch` and an import of its cache. */
describe("an operator's geofeed", () => {
  const statistics =
    "2|ripencc|20261101|1|19830705|20261031|+0100\nripencc|NL|ipv4|45.0.0.0|65536|19930101|allocated|a\n";
  const twoLines = "45.0.0.0/24,NL,NL-NH,Amsterdam,\n45.0.1.0/24,GR,GR-I,Athens,\n";
  const both = ["45.0.0.0/24 NL-NH Amsterdam", "45.0.1.0/24 GR-I Athens"];

  async function imported(feed: string | Buffer, file = "feed.csv") {
    server.paths.set("/stats", published(statistics));
    server.paths.set("/feed", published(feed, { etag: `"${feed.length}"` }));
    const sources = {
      stats: { registry: "ripencc", kind: "statistics", url: `${server.origin}/stats` },
      "our-feed": { kind: "geofeed", url: `${server.origin}/feed`, file, smallestShare: 0 },
    };
    const fetched = await fetchFrom({ ...settings(), sources }, { cacheFolder: cache.path });
    if (fetched.some(({ type }) => type === "failed")) return { fetched };
    const { files, published: ranges } = await readState(
      await cachedSourceFiles(cache.path, new Date("2026-03-03")),
      () => {},
    );
    const of = (range: string) => ranges.of(parseRange(range)!).map(({ place }) => `${range} ${place}`);
    return {
      fetched,
      malformed: files.at(-1)!.malformedSamples.map(({ line, value }) => `${line}: ${value}`),
      places: ["45.0.0.0/24", "45.0.1.0/24"].flatMap(of),
    };
  }

  it.each<readonly [string, string | Buffer, readonly string[]]>([
    [
      "with a header row",
      `ip_prefix,alpha2code,region,city,postal_code\n${twoLines}`,
      ["1: ip_prefix,alpha2code,region,city,postal_code"],
    ],
    ["with a broken first line", `45.0.0.0.0/24,NL,,,\n${twoLines}`, ["1: 45.0.0.0.0/24,NL,,,"]],
    [
      "whose first line looks like a registry's object",
      `prefix: country\n${twoLines}`,
      ["1: prefix: country"],
    ],
    [
      "with thirty broken lines before",
      `${"broken\n".repeat(30)}${twoLines}`,
      Array.from({ length: 20 }, (_, at) => `${at + 1}: broken`),
    ],
    ["behind 100 KB of comments", `${`# ${"x".repeat(98)}\n`.repeat(1000)}${twoLines}`, []],
    ["with a byte order mark and a header row", `\uFEFFprefix,country\n${twoLines}`, ["1: prefix,country"]],
    ["packed by gzip", gzipSync(twoLines), []],
    ["whose lines end by carriage returns", twoLines.replaceAll("\n", "\r"), []],
    ["in UTF-16 of little end with a mark", Buffer.from(`\uFEFF${twoLines}`, "utf16le"), []],
    ["in UTF-16 of big end with a mark", Buffer.from(`\uFEFF${twoLines}`, "utf16le").swap16(), []],
    ["in UTF-16 without a mark", Buffer.from(twoLines, "utf16le"), []],
    ["of mixed line ends", twoLines.replace("\n", "\r").replace("\n", "\r\n"), []],
  ])("%s has that line reported, and the rest imported", async (_what, feed, malformed) => {
    expect(await imported(feed)).toMatchObject({ malformed, places: both });
  });

  it("of comments alone withdraws its entries, and stops no import", async () => {
    expect(await imported("# nothing to say any more\n")).toMatchObject({ malformed: [], places: [] });
  });

  it("is recognised without a manifest by any of its first lines", async () => {
    await imported(`prefix,country\n${twoLines}`);
    const { files } = await readState([join(cache.path, "stats"), join(cache.path, "feed.csv")], () => {});

    expect(files.map(({ format, kept, malformed }) => ({ format, kept, malformed }))).toMatchObject([
      { format: "delegated" },
      { format: "geofeed", kept: 2, malformed: 1 },
    ]);
  });

  it("that an import would refuse does not replace the last one", async () => {
    await imported(twoLines);
    const { fetched } = await imported(twoLines + "broken\n".repeat(200));

    expect(fetched).toMatchObject([
      {},
      { type: "failed", reason: expect.stringContaining("200 of 202 records are malformed") },
    ]);
    expect(cache.read("feed.csv")).toBe(twoLines);
  });
});

describe("a cloud's list", () => {
  const list = (prefixes: number) =>
    JSON.stringify({
      syncToken: "1",
      creationTime: "2026-03-01T05:03:15",
      prefixes: Array.from({ length: prefixes }, (_, at) => ({ ipv4Prefix: `45.${at}.0.0/16`, scope: "x1" })),
    });

  it("is a source like the others: fetched, imported last, refused when it is much smaller or something else", async () => {
    const cloud = { sources: { google: { kind: "google-ranges", url: `${server.origin}/cloud.json` } } };
    server.paths.set(
      "/cloud.json",
      inTurn(
        published(list(100)),
        (_request, response) => answer(response, 200, list(10)),
        (_request, response) => answer(response, 200, `{"error":"${"x".repeat(10_000)}"}`),
      ),
    );
    const options = { cacheFolder: cache.path };
    const fetched = () => fetchFrom({ certificateFile, allowAddresses: ["127.0.0.1"], ...cloud }, options);

    expect(await fetched()).toMatchObject([{ source: "google", type: "fetched" }]);
    expect(await cachedSourceFiles(cache.path, new Date("2026-03-03"))).toEqual([
      { file: join(cache.path, "cloud.json"), format: "google-ranges" },
    ]);
    expect(await fetched()).toMatchObject([
      { reason: expect.stringContaining("much smaller than the last one") },
    ]);
    expect(await fetched()).toMatchObject([{ reason: expect.stringContaining("prefixes is no list") }]);
    expect(cache.read("cloud.json")).toBe(list(100));
  });
});

it("geofeeds are found wherever chunks are cut, in attributes, remarks and ARIN's lines", () => {
  const text = Buffer.from(
    [
      "geofeed:        https://a.example/g.csv",
      "remarks:  GEOFEED HTTPS://shouted.example/",
      "remarks: Geofeed https://b.example/g.csv # since May",
      '<line number="0">Geofeed https://c.example/g.csv</line>',
      "remarks: see our geofeed at http://d.example/",
      "geofeed: ftp://e.example/",
      "geofeed: https://f.example/without-an-end",
    ].join("\n"),
  );
  for (const chunkBytes of [1, 3, 50, 10_000]) {
    const finder = new GeofeedFinder(100);
    for (let at = 0; at < text.length; at += chunkBytes) finder.push(text.subarray(at, at + chunkBytes));
    finder.end();
    expect([...finder.urls], String(chunkBytes)).toEqual([
      "https://a.example/g.csv",
      "https://b.example/g.csv",
      "https://c.example/g.csv",
      "https://f.example/without-an-end",
    ]);
  }
});

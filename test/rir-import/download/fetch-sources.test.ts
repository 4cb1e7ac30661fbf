/** Downloads from a real HTTP server on loopback: what is accepted and refused, and what stays. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FetchOptions, FetchProgress, FetchResult } from "#rir-import/download/fetch-sources";
import { type CacheFolder, cacheFolder, fetchFrom, manualClock, oneSource } from "./fetching.ts";
import {
  always,
  answer,
  certificateFile,
  cutAfter,
  type Handler,
  inTurn,
  published,
  type RegistryServer,
  registryServer,
  rpsl,
  statistics,
} from "./registry-server.ts";

let server: RegistryServer;
let cache: CacheFolder;
beforeEach(async () => {
  server = await registryServer();
  cache = cacheFolder();
});
afterEach(async () => {
  await server.close();
  cache.remove();
});

const md5 = (body: string) => createHash("md5").update(body).digest("hex");
const into = () => ({ cacheFolder: cache.path });
const stats = (more: Record<string, unknown> = {}) => oneSource(`${server.origin}/stats`, more);
/** Serves these answers under /stats in order. */
const sends = (...handlers: readonly Handler[]) => server.paths.set("/stats", inTurn(...handlers));
const fetchStats = (options: Partial<FetchOptions> = {}, settings: Record<string, unknown> = stats()) =>
  fetchFrom(settings, { ...into(), ...options });
const reasonOf = ([result]: readonly FetchResult[]) =>
  result?.type === "failed" ? result.reason : `not refused: ${result?.type}`;

describe("a source is fetched", () => {
  it("into the cache, with its validators and digest in the manifest, under our own name and contact", async () => {
    const body = statistics(3);
    server.paths.set("/pub/stats", published(body));

    const results = await fetchStats({}, oneSource(`${server.origin}/pub/stats`));

    expect(results).toEqual([{ source: "stats", type: "fetched", bytes: body.length, note: "" }]);
    expect(cache.read("stats")).toBe(body);
    expect(cache.manifest().stats).toEqual({
      ...{ registry: "ripencc", kind: "statistics", file: "stats", url: `${server.origin}/pub/stats` },
      ...{ etag: '"v1"', lastModified: "Mon, 02 Mar 2026 03:04:05 GMT", bytes: body.length },
      ...{ sha256: createHash("sha256").update(body).digest("hex"), checksumAgreed: false },
      ...{ fetchedAt: "2026-03-02T12:00:00.000Z", checkedAt: "2026-03-02T12:00:00.000Z" },
    });
    expect(readdirSync(cache.path).sort()).toEqual(["manifest.json", "stats"]);
    expect(statSync(join(cache.path, "stats")).mtime).toEqual(new Date("2026-03-02T03:04:05Z"));
    expect(server.requests[0]!.headers).toMatchObject({
      "user-agent": "Nearcrawl/1.2.3 (registry refresh; +noc@example.org)",
      "accept-encoding": "identity",
    });
  });

  it("only when it changed: a 304 keeps ours and notes when that was checked", async () => {
    sends(published(statistics(3)));
    await fetchStats();

    const results = await fetchStats({ clock: manualClock("2026-06-01T00:00:00.000Z") });

    expect(results).toMatchObject([{ type: "unchanged" }]);
    expect(server.requests[1]!.headers).toMatchObject({
      "if-none-match": '"v1"',
      "if-modified-since": "Mon, 02 Mar 2026 03:04:05 GMT",
    });
    expect(cache.manifest().stats).toMatchObject({
      fetchedAt: "2026-03-02T12:00:00.000Z",
      checkedAt: "2026-06-01T00:00:00.000Z",
    });
  });

  it("completely when our copy was changed or lost, whatever the manifest says", async () => {
    sends(published(statistics(3)));
    await fetchStats();
    writeFileSync(join(cache.path, "stats"), "spoilt");

    expect(await fetchStats()).toMatchObject([{ type: "fetched" }]);
    expect(cache.read("stats")).toBe(statistics(3));
  });

  it("and the one before it is kept as .previous", async () => {
    sends(published(statistics(3), { etag: '"a"' }), published(statistics(4), { etag: '"b"' }));
    await fetchStats();
    await fetchStats();

    expect([cache.read("stats"), cache.read("stats.previous")]).toEqual([statistics(4), statistics(3)]);
  });

  it("from a mirror when its own place fails", async () => {
    const mirror = await registryServer({ "/copy": published(statistics(2)) });

    const results = await fetchStats({}, stats({ mirrors: [`${mirror.origin}/copy`] }));
    await mirror.close();

    expect(results).toMatchObject([{ type: "fetched" }]);
    expect(cache.manifest().stats).toMatchObject({ url: `${mirror.origin}/copy` });
  });

  it("with keys from files, which reach neither a redirect's target nor the manifest", async () => {
    const secret = join(cache.path, "key");
    writeFileSync(secret, "OPEN-SESAME\n");
    const elsewhere = await registryServer({ "/data": published(statistics(2)) });
    sends(always(302, "", { location: `${elsewhere.origin}/data` }));

    const secrets = { headerFiles: { "x-key": secret }, queryFiles: { apikey: secret } };
    const results = await fetchStats({}, stats(secrets));
    await elsewhere.close();

    expect(results).toMatchObject([{ type: "fetched" }]);
    expect(server.requests[0]).toMatchObject({
      path: "/stats?apikey=OPEN-SESAME",
      headers: { "x-key": "OPEN-SESAME" },
    });
    expect(JSON.stringify(elsewhere.requests)).not.toContain("OPEN-SESAME");
    expect(cache.read("manifest.json")).not.toContain("OPEN-SESAME");
  });
});

describe("an interrupted download", () => {
  const body = statistics(4000);
  const newer = statistics(4001);
  const otherRange = always(206, body.slice(7), {
    "content-range": `bytes 7-${body.length - 1}/${body.length}`,
  });
  const weak = { etag: 'W/"v1"', "last-modified": new Date().toUTCString() };

  type Broken = readonly [
    how: string,
    facts: Record<string, string>,
    then: readonly Handler[],
    whole: string,
    ranges: readonly (string | undefined)[],
  ];

  it.each<Broken>([
    ["gone on with where it ended, if it is the same file", {}, [published(body)], body, ["bytes=100000-"]],
    [
      "begun anew when the file changed meanwhile",
      {},
      [published(newer, { etag: '"v2"' })],
      newer,
      ["bytes=100000-"],
    ],
    [
      "begun anew where only a weak validator is there: its bytes may differ",
      weak,
      [published(body)],
      body,
      [undefined],
    ],
    [
      "begun anew when the server sends another range than asked for",
      {},
      [otherRange, published(body)],
      body,
      ["bytes=100000-", undefined],
    ],
  ])("is %s", async (_how, facts, then, whole, ranges) => {
    const { handler, onProgress } = cutAfter(100_000, body, facts);
    sends(handler, ...then);
    const clock = manualClock();

    const results = await fetchStats({ clock, onProgress });

    expect(results).toMatchObject([{ type: "fetched", bytes: whole.length }]);
    expect(server.requests.slice(1).map(({ headers }) => headers.range)).toEqual(ranges);
    expect(server.requests[1]!.headers["if-range"]).toBe(ranges[0] && '"v1"');
    expect(cache.read("stats")).toBe(whole);
    expect(clock.slept[0]).toBe(1000);
  });

  it("is resumed by the next run", async () => {
    const interrupted = new AbortController();
    sends((_request, response) => {
      response.writeHead(200, { "content-length": body.length, etag: '"v1"' });
      response.write(body.slice(0, 50_000));
    }, published(body));
    const stop = ({ bytesDone }: FetchProgress) => {
      if (bytesDone > 0) interrupted.abort(new Error("interrupted"));
    };

    const first = fetchStats({ signal: interrupted.signal, onProgress: stop });
    await expect(first).rejects.toThrow("interrupted");

    expect(await fetchStats()).toMatchObject([{ type: "fetched" }]);
    expect(server.requests[1]!.headers.range).toMatch(/^bytes=[1-9]/);
    expect(cache.read("stats")).toBe(body);
  });
});

describe("anything but the data stays out of the cache, which keeps the old file", () => {
  const padding = `<!-- ${"x".repeat(10_000)} -->`;
  const spam = Buffer.concat([Buffer.from("<html><title>Sorry</title>"), Buffer.alloc(9e5, "spam")]);
  const packed = gzipSync(statistics(9000));
  const untold =
    (data: string | Buffer): Handler =>
    (_request, response) =>
      response.writeHead(200, { connection: "close" }).end(data);
  const endless: Handler = (_request, response) => {
    response.writeHead(200);
    const more = () => {
      if (!response.destroyed) response.write(statistics(100), () => setImmediate(more));
    };
    more();
  };
  const small = { maxBytes: statistics(100).length };
  const smaller = /only \d+ bytes, much smaller than the last one \(at least \d+ are expected\)/;

  type Refused = readonly [what: string, Handler, words: string | RegExp, more: Record<string, unknown>];

  it.each<Refused>([
    [
      "a web page that says 200",
      always(200, `<!doctype html><html><title>Service unavailable</title>${padding}</html>`),
      /^http:\S+\/stats: not taken: a web page \("Service unavailable"\), not a registry file$/,
      {},
    ],
    ["a web page in gzip", always(200, gzipSync(spam, { level: 0 })), 'a web page ("Sorry")', {}],
    ["data of another kind", always(200, rpsl(2000)), "it is rpsl data, where statistics is expected", {}],
    ["a gzip that ends early", untold(packed.subarray(0, packed.length - 20)), "the gzip data end early", {}],
    ["a file much smaller than the last one", always(200, statistics(60)), smaller, {}],
    ["a much smaller one that does not say its length", untold(statistics(60)), smaller, {}],
    [
      "a file larger than its limit",
      always(200, statistics(101)),
      /\d+ bytes, larger than the \d+ bytes/,
      small,
    ],
    [
      "a larger one that does not say its length",
      untold(statistics(101)),
      /larger than the \d+ bytes/,
      small,
    ],
    ["a file without end", endless, "larger than the 1000000 bytes that are taken", { maxBytes: 1_000_000 }],
    ["endless redirects", always(302, "", { location: "/stats" }), "more than 5 redirects", {}],
  ])("%s", async (_what, handler, words, more) => {
    sends(published(statistics(100)), handler);
    await fetchStats({}, stats(more));

    const reason = reasonOf(await fetchStats({}, stats(more)));

    expect(reason).toMatch(words);
    expect(cache.read("stats")).toBe(statistics(100));
    expect(cache.manifest().stats).toMatchObject({ bytes: statistics(100).length });
    expect(existsSync(join(cache.path, "stats.part"))).toBe(false);
  });

  it("a redirect from https to http", async () => {
    const location = `${server.origin}/plain`;
    const secure = await registryServer({ "/stats": always(302, "", { location }) }, { secure: true });
    server.paths.set("/plain", published(statistics(3)));

    const results = await fetchStats({}, { certificateFile, ...oneSource(`${secure.origin}/stats`) });
    await secure.close();

    expect(reasonOf(results)).toBe(
      `${secure.origin}/stats: redirected from https to http: ${location} is refused`,
    );
    expect(server.requests).toEqual([]);
  });

  it("a server with an untrusted certificate, at the first try", async () => {
    const secure = await registryServer({ "/stats": published(statistics(3)) }, { secure: true });
    const clock = manualClock();

    const results = await fetchStats({ clock }, oneSource(`${secure.origin}/stats`));
    await secure.close();

    expect(reasonOf(results)).toMatch(/self.signed certificate/);
    expect(clock.slept).toEqual([]);
  });

  it("but a smaller file is accepted when the operator confirms it", async () => {
    sends(published(statistics(100), { etag: '"a"' }), published(statistics(10), { etag: '"b"' }));
    await fetchStats();

    expect(await fetchStats({ acceptSmaller: true })).toMatchObject([{ type: "fetched" }]);
    expect(cache.read("stats")).toBe(statistics(10));
  });
});

describe("the checksum published beside a file", () => {
  const body = statistics(50);
  const newer = statistics(51);
  const missing = "the checksum that should be beside it is not there";
  const fetchWith = async (sum: string | null, ...handlers: readonly Handler[]) => {
    sends(...handlers);
    if (sum !== null) server.paths.set("/stats.md5", always(200, sum));
    return await fetchStats({}, stats({ hasMd5: true }));
  };

  it.each([
    ["agrees, in BSD's form", `MD5 (stats) = ${md5(body)}\n`, true, ""],
    ["agrees, in coreutils'", `${md5(body)}  stats\n`, true, ""],
    ["is not there: the file is taken with a remark", null, false, missing],
  ])("%s", async (_what, sum, checksumAgreed, note) => {
    expect(await fetchWith(sum, published(body))).toMatchObject([{ type: "fetched", note }]);
    expect(cache.manifest().stats).toMatchObject({ checksumAgreed });
  });

  it("that differs is fetched again, in case both were being replaced, and then refused", async () => {
    const results = await fetchWith(md5("something else"), published(body));

    expect(reasonOf(results)).toContain(`its MD5 sum is ${md5(body)}`);
    expect(server.requestsTo("/stats")).toHaveLength(2);
    expect(existsSync(join(cache.path, "stats"))).toBe(false);
  });

  it("that agrees at the second try is accepted: the file was replaced between file and sum", async () => {
    const results = await fetchWith(md5(newer), published(body), published(newer, { etag: '"v2"' }));

    expect(results).toMatchObject([{ type: "fetched" }]);
    expect(cache.read("stats")).toBe(newer);
  });

  it("that is a web page without a sum is refused", async () => {
    const reason = reasonOf(await fetchWith("<html>Sorry</html>", published(body)));

    expect(reason).toContain("holds 0 MD5 sums, not one");
  });
});

describe("a server in trouble", () => {
  const date = "Mon, 02 Mar 2026 12:03:00 GMT";
  const good = published(statistics(2));

  it.each<readonly [string, readonly Handler[], readonly number[]]>([
    [
      "is asked again, after a second, two, four …",
      [always(500), always(502), always(504), good],
      [1000, 2000, 4000],
    ],
    [
      "is asked again after the time it names, in seconds or as a date",
      [always(503, "", { "retry-after": "120" }), always(429, "", { "retry-after": date }), good],
      [120_000, 60_000],
    ],
  ])("%s", async (_what, handlers, slept) => {
    const clock = manualClock("2026-03-02T12:00:00.000Z");
    sends(...handlers);

    expect(await fetchStats({ clock })).toMatchObject([{ type: "fetched" }]);
    expect(clock.slept).toEqual(slept);
  });

  it.each<readonly [string, Handler, string, number]>([
    [
      "left alone when it asks for a longer wait than ours",
      always(503, "", { "retry-after": "86400" }),
      "the server answers 503 and asks to come back in 86400 seconds",
      1,
    ],
    ["given up after so many tries", always(500), "the server answers 500", 3],
    ["not asked again for what is not there", always(404), "the server answers 404", 1],
  ])("is %s", async (_what, handler, words, requests) => {
    sends(handler);

    const results = await fetchStats({}, { ...stats(), limits: { tries: 3 } });

    expect(reasonOf(results)).toBe(`${server.origin}/stats: ${words}`);
    expect(server.requests).toHaveLength(requests);
  });

  it("that falls silent half-way is given up, and the download is resumed", async () => {
    const body = statistics(4000);
    const clock = manualClock();
    sends((_request, response) => {
      response.writeHead(200, { "content-length": body.length, etag: '"v1"' });
      response.write(body.slice(0, 50_000));
    }, published(body));
    // The piece is on disk and the watch runs again at the next turn of the event loop.
    let silent = false;
    const onProgress = ({ bytesDone, state }: FetchProgress) => {
      if (silent || state !== "receiving" || bytesDone < 50_000) return;
      silent = true;
      setImmediate(() => clock.advance(60_000));
    };

    expect(await fetchStats({ clock, onProgress })).toMatchObject([{ type: "fetched" }]);
    expect(server.requests[1]!.headers.range).toBe("bytes=50000-");
    expect(cache.read("stats")).toBe(body);
  });

  it("that never answers is given up when the total time is over", async () => {
    const clock = manualClock();
    sends(() => setImmediate(() => clock.advance(240 * 60_000)));

    expect(reasonOf(await fetchStats({ clock }))).toBe("not finished within 240 minutes");
  });
});

describe("several sources", () => {
  const facts = { registry: "ripencc", kind: "statistics" };

  it("are fetched at most two at once, never two from one host; a failure stops no other", async () => {
    const others = await Promise.all([registryServer(), registryServer()]);
    const servers = [server, ...others];
    let open = 0;
    let most = 0;
    const slowly: Handler = (_request, response) => {
      most = Math.max(most, ++open);
      setTimeout(() => {
        open--;
        answer(response, 200, statistics(2));
      }, 20);
    };
    const sources = servers.flatMap(({ origin, paths }, host) =>
      ["a", "b", "missing"].map((name) => {
        if (name !== "missing") paths.set(`/${host}${name}`, slowly);
        return [`${name}${host}`, { ...facts, url: `${origin}/${host}${name}` }];
      }),
    );

    const results = await fetchFrom({ sources: Object.fromEntries(sources) }, into());
    const atOnce = servers.map((one) => one.mostAtOnce());
    await Promise.all(others.map((one) => one.close()));

    const ofOneHost = ["fetched", "fetched", "failed"];
    expect(results.map(({ type }) => type)).toEqual([...ofOneHost, ...ofOneHost, ...ofOneHost]);
    expect(atOnce).toEqual([1, 1, 1]);
    // The busy first host is skipped for the next one.
    expect(most).toBe(2);
  });

  it("that the settings switch off are no longer imported", async () => {
    sends(published(statistics(2)));
    await fetchStats();

    expect(await fetchStats({}, stats({ enabled: false }))).toMatchObject([{ type: "left out" }]);
    expect(cache.manifest()).toEqual({});
  });

  it("are selected by name; an unknown name lists the known ones", async () => {
    await expect(fetchStats({ names: ["stat"] })).rejects.toThrow(
      'no source is called "stat"; there are: stats',
    );
  });

  it("are not fetched twice at once into one folder", async () => {
    let second: Promise<unknown> = Promise.resolve();
    sends((_request, response) => {
      second = fetchStats().catch((error: Error) => error.message);
      second.then(() => answer(response, 200, statistics(2)));
    });

    expect(await fetchStats()).toMatchObject([{ type: "fetched" }]);
    expect(await second).toMatch(/fetch\.lock: another fetch is at work in this folder \(process \d+ on /);
  });
});

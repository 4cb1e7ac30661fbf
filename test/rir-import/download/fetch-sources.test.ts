/** Downloads against a real HTTP server on loopback: what is taken, what is refused, what stays. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FetchProgress } from "#rir-import/download/fetch-sources";
import { type CacheFolder, cacheFolder, fetchFrom, manualClock, oneSource } from "./fetching.ts";
import {
  always,
  answer,
  certificateFile,
  cutAfter,
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

describe("a source is fetched", () => {
  it("into the cache, with its validators and digest in the manifest", async () => {
    const body = statistics(3);
    server.paths.set("/pub/stats", published(body));

    const results = await fetchFrom(oneSource(`${server.origin}/pub/stats`), into());

    expect(results).toEqual([{ source: "stats", type: "fetched", bytes: body.length, note: "" }]);
    expect(cache.read("stats")).toBe(body);
    expect(cache.manifest().stats).toEqual({
      registry: "ripencc",
      kind: "statistics",
      file: "stats",
      url: `${server.origin}/pub/stats`,
      etag: '"v1"',
      lastModified: "Mon, 02 Mar 2026 03:04:05 GMT",
      bytes: body.length,
      sha256: createHash("sha256").update(body).digest("hex"),
      checksumAgreed: false,
      fetchedAt: "2026-03-02T12:00:00.000Z",
      checkedAt: "2026-03-02T12:00:00.000Z",
    });
    expect(readdirSync(cache.path).sort()).toEqual(["manifest.json", "stats"]);
    expect(statSync(join(cache.path, "stats")).mtime).toEqual(new Date("2026-03-02T03:04:05Z"));
  });

  it("under our own name, with the contact, as it lies on the server's disk", async () => {
    server.paths.set("/stats", published(statistics(1)));

    await fetchFrom(oneSource(`${server.origin}/stats`), into());

    expect(server.requests[0]!.headers).toMatchObject({
      "user-agent": "Nearcrawl/1.2.3 (registry refresh; +noc@example.org)",
      "accept-encoding": "identity",
    });
  });

  it("only when it changed: a 304 keeps ours and notes when that was checked", async () => {
    server.paths.set("/stats", published(statistics(3)));
    const settings = oneSource(`${server.origin}/stats`);
    await fetchFrom(settings, into());

    const clock = manualClock("2026-06-01T00:00:00.000Z");
    const results = await fetchFrom(settings, { ...into(), clock });

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

  it("whole when our copy was changed or lost, whatever the manifest says", async () => {
    server.paths.set("/stats", published(statistics(3)));
    const settings = oneSource(`${server.origin}/stats`);
    await fetchFrom(settings, into());
    writeFileSync(join(cache.path, "stats"), "spoilt");

    const results = await fetchFrom(settings, into());

    expect(results).toMatchObject([{ type: "fetched" }]);
    expect(cache.read("stats")).toBe(statistics(3));
  });

  it("and the one before it is kept as .previous", async () => {
    const settings = oneSource(`${server.origin}/stats`);
    for (const [etag, records] of [
      ['"a"', 3],
      ['"b"', 4],
    ] as const) {
      server.paths.set("/stats", published(statistics(records), { etag }));
      await fetchFrom(settings, into());
    }

    expect(cache.read("stats")).toBe(statistics(4));
    expect(cache.read("stats.previous")).toBe(statistics(3));
  });

  it("from a mirror when its own place fails", async () => {
    const mirror = await registryServer({ "/copy": published(statistics(2)) });

    const results = await fetchFrom(
      oneSource(`${server.origin}/gone`, { mirrors: [`${mirror.origin}/copy`] }),
      into(),
    );
    await mirror.close();

    expect(results).toMatchObject([{ type: "fetched" }]);
    expect(cache.manifest().stats).toMatchObject({ url: `${mirror.origin}/copy` });
  });

  it("with keys from files, which neither a redirect elsewhere nor the manifest sees", async () => {
    const secret = join(cache.path, "key");
    writeFileSync(secret, "OPEN-SESAME\n");
    const elsewhere = await registryServer({ "/data": published(statistics(2)) });
    server.paths.set("/bulk", always(302, "", { location: `${elsewhere.origin}/data` }));

    const results = await fetchFrom(
      oneSource(`${server.origin}/bulk`, {
        headerFiles: { "x-key": secret },
        queryFiles: { apikey: secret },
      }),
      into(),
    );
    await elsewhere.close();

    expect(results).toMatchObject([{ type: "fetched" }]);
    expect(server.requests[0]).toMatchObject({
      path: "/bulk?apikey=OPEN-SESAME",
      headers: { "x-key": "OPEN-SESAME" },
    });
    expect(JSON.stringify(elsewhere.requests)).not.toContain("OPEN-SESAME");
    expect(cache.read("manifest.json")).not.toContain("OPEN-SESAME");
  });
});

describe("what broke off", () => {
  it("is gone on with from where it ended, when it is still the same file", async () => {
    const body = statistics(4000);
    const { handler, onProgress } = cutAfter(100_000, body);
    server.paths.set("/stats", inTurn(handler, published(body)));
    const clock = manualClock();

    const results = await fetchFrom(oneSource(`${server.origin}/stats`), { ...into(), clock, onProgress });

    expect(results).toMatchObject([{ type: "fetched", bytes: body.length }]);
    const [, second] = server.requests;
    expect(second!.headers["if-range"]).toBe('"v1"');
    expect(second!.headers.range).toBe("bytes=100000-");
    expect(cache.read("stats")).toBe(body);
    expect(clock.slept).toEqual([1000]);
  });

  it("is begun anew when the file changed meanwhile", async () => {
    const body = statistics(4001);
    const changed = published(body, { etag: '"v2"' });
    const { handler, onProgress } = cutAfter(100_000, statistics(4000));
    server.paths.set("/stats", inTurn(handler, changed));

    await fetchFrom(oneSource(`${server.origin}/stats`), { ...into(), onProgress });

    expect(server.requests[1]!.headers["if-range"]).toBe('"v1"');
    expect(cache.read("stats")).toBe(body);
  });

  it("is begun anew where only a weak validator is there: its bytes may differ", async () => {
    const body = statistics(4000);
    const facts = { etag: 'W/"v1"', "last-modified": new Date().toUTCString() };
    const { handler, onProgress } = cutAfter(100_000, body, facts);
    server.paths.set("/stats", inTurn(handler, published(body)));

    await fetchFrom(oneSource(`${server.origin}/stats`), { ...into(), onProgress });

    expect(server.requests[1]!.headers.range).toBeUndefined();
    expect(cache.read("stats")).toBe(body);
  });

  it("is begun anew when the server sends another range than asked for", async () => {
    const body = statistics(4000);
    const wrong = always(206, body.slice(7), {
      "content-range": `bytes 7-${body.length - 1}/${body.length}`,
    });
    const { handler, onProgress } = cutAfter(100_000, body);
    server.paths.set("/stats", inTurn(handler, wrong, published(body)));

    const results = await fetchFrom(oneSource(`${server.origin}/stats`), { ...into(), onProgress });

    expect(results).toMatchObject([{ type: "fetched" }]);
    expect(server.requests.map(({ headers }) => headers.range)).toEqual([
      undefined,
      "bytes=100000-",
      undefined,
    ]);
    expect(cache.read("stats")).toBe(body);
  });

  it("is gone on with by the next run, after this one was interrupted", async () => {
    const body = statistics(4000);
    const interrupted = new AbortController();
    server.paths.set("/stats", (_request, response) => {
      response.writeHead(200, { "content-length": body.length, etag: '"v1"' });
      response.write(body.slice(0, 50_000));
    });
    const stop = ({ bytesDone }: FetchProgress) => {
      if (bytesDone > 0) interrupted.abort(new Error("interrupted"));
    };
    const settings = oneSource(`${server.origin}/stats`);

    const first = fetchFrom(settings, { ...into(), signal: interrupted.signal, onProgress: stop });
    await expect(first).rejects.toThrow("interrupted");
    server.paths.set("/stats", published(body));
    const second = await fetchFrom(settings, into());

    expect(second).toMatchObject([{ type: "fetched" }]);
    expect(server.requests[1]!.headers.range).toMatch(/^bytes=[1-9]/);
    expect(cache.read("stats")).toBe(body);
  });
});

describe("what is not the data stays out of the cache, and the old file in", () => {
  /** Fetches good data, then what the handler sends; the reason of the refusal. */
  async function refused(handler: Parameters<RegistryServer["paths"]["set"]>[1], more = {}): Promise<string> {
    const settings = oneSource(`${server.origin}/stats`, more);
    server.paths.set("/stats", published(statistics(100)));
    await fetchFrom(settings, into());
    server.paths.set("/stats", handler);
    const [result] = await fetchFrom(settings, into());
    expect(cache.read("stats")).toBe(statistics(100));
    expect(cache.manifest().stats).toMatchObject({ bytes: statistics(100).length });
    expect(existsSync(join(cache.path, "stats.part"))).toBe(false);
    return result!.type === "failed" ? result!.reason : `not refused: ${result!.type}`;
  }
  const padding = `<!-- ${"x".repeat(10_000)} -->`;

  it("a web page that says 200", async () => {
    const page = `<!doctype html><html><title>Service unavailable</title>${padding}</html>`;

    const reason = await refused(always(200, page));

    expect(reason).toBe(
      `${server.origin}/stats: not taken: a web page ("Service unavailable"), not a registry file`,
    );
  });

  it("a web page in gzip", async () => {
    const page = gzipSync(
      Buffer.concat([Buffer.from(`<html><title>Sorry</title>`), Buffer.alloc(9e5, "spam")]),
      {
        level: 0,
      },
    );

    expect(await refused(always(200, page))).toContain('a web page ("Sorry")');
  });

  it("data of another kind", async () => {
    expect(await refused(always(200, rpsl(2000)))).toContain("it is rpsl data, where statistics is expected");
  });

  it("a gzip that ends early, from a server that does not say how long it is", async () => {
    const packed = gzipSync(statistics(9000));
    const cut: Parameters<typeof refused>[0] = (_request, response) =>
      response.writeHead(200, { connection: "close" }).end(packed.subarray(0, packed.length - 20));

    expect(await refused(cut)).toContain("the gzip data end early");
  });

  it("a file much smaller than the last one, before it is downloaded", async () => {
    const reason = await refused(always(200, statistics(60)));

    expect(reason).toMatch(/only \d+ bytes, much smaller than the last one \(at least \d+ are expected\)/);
  });

  it("a file much smaller than the last one, when the server does not say its length", async () => {
    const reason = await refused((_request, response) => response.writeHead(200).end(statistics(60)));

    expect(reason).toContain("much smaller than the last one");
  });

  it("a file larger than its limit, told or not", async () => {
    const more = { maxBytes: statistics(100).length };

    const told = await refused(always(200, statistics(101)), more);
    const untold = await refused((_request, response) => response.writeHead(200).end(statistics(101)), more);

    expect(told).toMatch(/\d+ bytes, larger than the \d+ bytes that are taken/);
    expect(untold).toMatch(/larger than the \d+ bytes that are taken/);
  });

  it("a file without end, as soon as it passes its limit", async () => {
    const endless: Parameters<typeof refused>[0] = (_request, response) => {
      response.writeHead(200);
      const more = () => {
        if (!response.destroyed) response.write(statistics(100), () => setImmediate(more));
      };
      more();
    };

    const reason = await refused(endless, { maxBytes: 1_000_000 });

    expect(reason).toContain("larger than the 1000000 bytes that are taken");
  });

  it("a redirect from https to http", async () => {
    const secure = await registryServer(
      { "/stats": always(302, "", { location: `${server.origin}/plain` }) },
      { secure: true },
    );
    server.paths.set("/plain", published(statistics(3)));

    const [result] = await fetchFrom({ certificateFile, ...oneSource(`${secure.origin}/stats`) }, into());
    await secure.close();

    expect(result).toMatchObject({
      type: "failed",
      reason: `${secure.origin}/stats: redirected from https to http: ${server.origin}/plain is refused`,
    });
    expect(server.requests).toEqual([]);
  });

  it("a server whose certificate nobody vouches for, at the first try", async () => {
    const secure = await registryServer({ "/stats": published(statistics(3)) }, { secure: true });
    const clock = manualClock();

    const [result] = await fetchFrom(oneSource(`${secure.origin}/stats`), { ...into(), clock });
    await secure.close();

    expect(result).toMatchObject({
      type: "failed",
      reason: expect.stringMatching(/self.signed certificate/),
    });
    expect(clock.slept).toEqual([]);
  });

  it("endless redirects", async () => {
    const reason = await refused(always(302, "", { location: "/stats" }));

    expect(reason).toContain("more than 5 redirects");
  });

  it("but a smaller file is taken when the operator says so", async () => {
    const settings = oneSource(`${server.origin}/stats`);
    server.paths.set("/stats", published(statistics(100), { etag: '"a"' }));
    await fetchFrom(settings, into());
    server.paths.set("/stats", published(statistics(10), { etag: '"b"' }));

    const results = await fetchFrom(settings, { ...into(), acceptSmaller: true });

    expect(results).toMatchObject([{ type: "fetched" }]);
    expect(cache.read("stats")).toBe(statistics(10));
  });
});

describe("the checksum published beside a file", () => {
  const body = statistics(50);
  const settings = () => oneSource(`${server.origin}/stats`, { hasMd5: true });

  it("agrees, in BSD's form and in coreutils'", async () => {
    for (const text of [`MD5 (stats) = ${md5(body)}\n`, `${md5(body)}  stats\n`]) {
      server.paths.set("/stats", published(body, { etag: JSON.stringify(text.slice(0, 3)) }));
      server.paths.set("/stats.md5", always(200, text));

      const results = await fetchFrom(settings(), into());

      expect(results).toMatchObject([{ type: "fetched", note: "" }]);
      expect(cache.manifest().stats).toMatchObject({ checksumAgreed: true });
    }
  });

  it("does not agree: once more, in case both were just being replaced, then refused", async () => {
    server.paths.set("/stats", published(body));
    server.paths.set("/stats.md5", always(200, md5("something else")));

    const [result] = await fetchFrom(settings(), into());

    expect(result).toMatchObject({
      type: "failed",
      reason: expect.stringContaining(`its MD5 sum is ${md5(body)}`),
    });
    expect(server.requestsTo("/stats")).toHaveLength(2);
    expect(existsSync(join(cache.path, "stats"))).toBe(false);
  });

  it("agrees at the second look, when the file was replaced between file and sum", async () => {
    const newer = statistics(51);
    server.paths.set("/stats", inTurn(published(body), published(newer, { etag: '"v2"' })));
    server.paths.set("/stats.md5", always(200, md5(newer)));

    expect(await fetchFrom(settings(), into())).toMatchObject([{ type: "fetched" }]);
    expect(cache.read("stats")).toBe(newer);
  });

  it("is not there: the file is taken with a remark", async () => {
    server.paths.set("/stats", published(body));

    expect(await fetchFrom(settings(), into())).toMatchObject([
      { type: "fetched", note: "the checksum that should be beside it is not there" },
    ]);
  });

  it("is a web page with no sum in it: refused", async () => {
    server.paths.set("/stats", published(body));
    server.paths.set("/stats.md5", always(200, "<html>Sorry</html>"));

    expect(await fetchFrom(settings(), into())).toMatchObject([
      { type: "failed", reason: expect.stringContaining("holds 0 MD5 sums, not one") },
    ]);
  });
});

describe("a server in trouble", () => {
  it("is asked again, after a second, two, four …", async () => {
    const clock = manualClock();
    server.paths.set("/stats", inTurn(always(500), always(502), always(504), published(statistics(2))));

    const results = await fetchFrom(oneSource(`${server.origin}/stats`), { ...into(), clock });

    expect(results).toMatchObject([{ type: "fetched" }]);
    expect(clock.slept).toEqual([1000, 2000, 4000]);
  });

  it("is asked again after the time it names, in seconds or as a date", async () => {
    const clock = manualClock("2026-03-02T12:00:00.000Z");
    const date = "Mon, 02 Mar 2026 12:03:00 GMT";
    server.paths.set(
      "/stats",
      inTurn(
        always(503, "", { "retry-after": "120" }),
        always(429, "", { "retry-after": date }),
        published(statistics(2)),
      ),
    );

    await fetchFrom(oneSource(`${server.origin}/stats`), { ...into(), clock });

    expect(clock.slept).toEqual([120_000, 60_000]);
  });

  it("is left alone when it asks for a longer wait than ours", async () => {
    const clock = manualClock();
    server.paths.set("/stats", always(503, "", { "retry-after": "86400" }));

    const [result] = await fetchFrom(oneSource(`${server.origin}/stats`), { ...into(), clock });

    expect(result).toMatchObject({
      type: "failed",
      reason: `${server.origin}/stats: the server answers 503 and asks to come back in 86400 seconds`,
    });
    expect(clock.slept).toEqual([]);
  });

  it("is given up after so many tries", async () => {
    server.paths.set("/stats", always(500));

    const settings = { ...oneSource(`${server.origin}/stats`), limits: { tries: 3 } };
    const [result] = await fetchFrom(settings, into());

    expect(result).toMatchObject({
      type: "failed",
      reason: `${server.origin}/stats: the server answers 500`,
    });
    expect(server.requests).toHaveLength(3);
  });

  it("is not asked again for what is not there", async () => {
    const [result] = await fetchFrom(oneSource(`${server.origin}/stats`), into());

    expect(result).toMatchObject({
      type: "failed",
      reason: `${server.origin}/stats: the server answers 404`,
    });
    expect(server.requests).toHaveLength(1);
  });

  it("that falls silent in the middle is given up, and gone on with", async () => {
    const body = statistics(4000);
    const clock = manualClock();
    server.paths.set(
      "/stats",
      inTurn((_request, response) => {
        response.writeHead(200, { "content-length": body.length, etag: '"v1"' });
        response.write(body.slice(0, 50_000));
      }, published(body)),
    );
    // The piece is on disk and the watch runs again when the next turn of the event loop comes.
    let silent = false;
    const onProgress = ({ bytesDone, state }: FetchProgress) => {
      if (silent || state !== "receiving" || bytesDone < 50_000) return;
      silent = true;
      setImmediate(() => clock.advance(60_000));
    };

    const results = await fetchFrom(oneSource(`${server.origin}/stats`), { ...into(), clock, onProgress });

    expect(results).toMatchObject([{ type: "fetched" }]);
    expect(server.requests[1]!.headers.range).toBe("bytes=50000-");
    expect(cache.read("stats")).toBe(body);
  });

  it("that never answers is given up when the total time is over", async () => {
    const clock = manualClock();
    server.paths.set("/stats", () => setImmediate(() => clock.advance(240 * 60_000)));

    const [result] = await fetchFrom({ ...oneSource(`${server.origin}/stats`) }, { ...into(), clock });

    expect(result).toMatchObject({ type: "failed", reason: "not finished within 240 minutes" });
  });
});

describe("several sources", () => {
  it("fail by themselves: the others are fetched", async () => {
    server.paths.set("/good", published(statistics(2)));
    const facts = { registry: "ripencc", kind: "statistics" };
    const sources = {
      bad: { ...facts, url: `${server.origin}/bad` },
      good: { ...facts, url: `${server.origin}/good` },
    };

    const results = await fetchFrom({ sources }, into());

    expect(results.map(({ type }) => type)).toEqual(["failed", "fetched"]);
  });

  it("come at most two at once, and never two from one host", async () => {
    const others = await Promise.all([registryServer(), registryServer()]);
    const servers = [server, ...others];
    let open = 0;
    let most = 0;
    const slowly: Parameters<typeof server.paths.set>[1] = (_request, response) => {
      most = Math.max(most, ++open);
      setImmediate(() =>
        setImmediate(() => {
          open--;
          answer(response, 200, statistics(2));
        }),
      );
    };
    const sources = Object.fromEntries(
      servers.flatMap(({ origin, paths }, host) =>
        ["a", "b", "c"].map((name) => {
          paths.set(`/${host}${name}`, slowly);
          return [
            `${name}${host}`,
            { registry: "ripencc", kind: "statistics", url: `${origin}/${host}${name}` },
          ];
        }),
      ),
    );

    const results = await fetchFrom({ sources }, into());
    const atOnce = servers.map((one) => one.mostAtOnce());
    await Promise.all(others.map((one) => one.close()));

    expect(results.map(({ type }) => type)).toEqual(new Array(9).fill("fetched"));
    expect(atOnce).toEqual([1, 1, 1]);
    expect(most).toBeLessThanOrEqual(2);
  });

  it("that the settings switch off are no longer imported", async () => {
    server.paths.set("/stats", published(statistics(2)));
    const settings = oneSource(`${server.origin}/stats`);
    await fetchFrom(settings, into());

    const off = oneSource(`${server.origin}/stats`, { enabled: false });
    const results = await fetchFrom(off, into());

    expect(results).toMatchObject([{ type: "left out" }]);
    expect(cache.manifest()).toEqual({});
  });

  it("are asked for by name; a name that is not in the list says which are", async () => {
    const settings = oneSource(`${server.origin}/stats`);

    await expect(fetchFrom(settings, { ...into(), names: ["stat"] })).rejects.toThrow(
      'no source is called "stat"; there are: stats',
    );
  });

  it("are not fetched twice at once into one folder", async () => {
    let second: Promise<unknown> = Promise.resolve();
    server.paths.set("/stats", (_request, response) => {
      second = fetchFrom(oneSource(`${server.origin}/other`), into()).catch((error: Error) => error.message);
      second.then(() => answer(response, 200, statistics(2)));
    });

    const results = await fetchFrom(oneSource(`${server.origin}/stats`), into());

    expect(results).toMatchObject([{ type: "fetched" }]);
    expect(await second).toMatch(/fetch\.lock: another fetch is at work in this folder \(process \d+ on /);
  });
});

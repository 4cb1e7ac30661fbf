/** Compression: for clients that accept it, and never where the length would reveal a secret. */
import { Readable } from "node:stream";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { type FastifyInstance, fastify } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { assetAddress } from "#coordinator/web/assets";
import { codingFor, compressAnswers } from "#coordinator/web/compression";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { signIn } from "../support/signed-in.ts";
import { testAccess, webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;

beforeAll(async () => {
  await seedWorld(database.pool);
  app = webServer(database, { access: testAccess(database, () => worldNow) });
});
afterAll(async () => await app?.close());

const asked = async (url: string, headers: Record<string, string> = {}) =>
  await app.inject({ url, headers: { "accept-encoding": "gzip, deflate, br", ...headers } });

describe("an answer", () => {
  it("is the same when compressed, as page, JSON, CSV, style and script", async () => {
    const style = assetAddress("nearcrawl.css");
    for (const url of ["/about-crawler", "/api/overview", "/api/openapi.json", style, "/assets/charts.js"]) {
      const [plain, brotli, gzip] = await Promise.all([
        app.inject(url),
        asked(url),
        asked(url, { "accept-encoding": "gzip" }),
      ]);

      expect([url, plain.headers["content-encoding"]]).toEqual([url, undefined]);
      expect([url, brotli.headers["content-encoding"]]).toEqual([url, "br"]);
      expect([url, gzip.headers["content-encoding"]]).toEqual([url, "gzip"]);
      for (const one of [plain, brotli, gzip]) expect(one.headers.vary).toContain("accept-encoding");
      expect(brotli.headers["content-length"]).toBe(String(brotli.rawPayload.length));
      if (url === "/api/overview") continue; // It says when it was asked.
      expect(brotliDecompressSync(brotli.rawPayload).toString()).toBe(plain.body);
      expect(gunzipSync(gzip.rawPayload).toString()).toBe(plain.body);
    }
  });

  it("is not compressed when it is short, a stream, or sent with a digest of its bytes", async () => {
    const small = fastify();
    compressAnswers(small);
    const text = "of a word and another ".repeat(100);
    small.get("/whole", (_, reply) => reply.type("text/plain").send(text));
    small.get("/short", (_, reply) => reply.type("text/plain").send("short"));
    small.get("/stream", (_, reply) => reply.type("text/csv").send(Readable.from([text])));
    small.get("/digested", (_, reply) =>
      reply.type("text/plain").header("repr-digest", "sha-256=:1:").send(text),
    );
    small.get("/picture", (_, reply) => reply.type("image/png").send(Buffer.from(text)));
    const codings: unknown[] = [];
    for (const url of ["/whole", "/short", "/stream", "/digested", "/picture"]) {
      const answer = await small.inject({ url, headers: { "accept-encoding": "gzip" } });
      codings.push(answer.headers["content-encoding"]);
    }
    await small.close();

    expect(codings).toEqual(["gzip", undefined, undefined, undefined, undefined]);
  });

  it("to people who are signed in is compressed only if no other site asked for it (BREACH)", async () => {
    const { headers } = await signIn(database, "operator");
    const codings: unknown[] = [];
    for (const site of ["same-origin", "none", "cross-site", "same-site", null]) {
      const { "sec-fetch-site": _, ...own } = headers;
      const answer = await asked("/fleet", { ...own, ...(site && { "sec-fetch-site": site }) });
      codings.push(answer.headers["content-encoding"]);
    }

    expect(codings).toEqual(["br", "br", undefined, undefined, undefined]);
  });
});

it("the client's weights are respected", () => {
  expect(codingFor("gzip, br")).toBe("br");
  expect(codingFor("gzip;q=1.0, br;q=0")).toBe("gzip");
  expect(codingFor("identity;q=1, *;q=0")).toBeNull();
  expect(codingFor("*")).toBe("br");
  expect(codingFor("GZIP")).toBe("gzip");
  expect(codingFor("")).toBeNull();
});

describe("assets", () => {
  it("are cached for ever at the address in the page, and revalidated at any other", async () => {
    const address = assetAddress("nearcrawl.css");
    const [named, plain, other] = await Promise.all([
      app.inject(address),
      app.inject("/assets/nearcrawl.css"),
      app.inject("/assets/nearcrawl.css?v=of-another-release"),
    ]);
    const again = await app.inject({
      url: "/assets/nearcrawl.css",
      headers: { "if-none-match": String(plain.headers.etag) },
    });

    expect((await app.inject("/about-crawler")).body).toContain(`href="${address}"`);
    expect(named.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    expect([plain, other].map((one) => one.headers["cache-control"])).toEqual(["no-cache", "no-cache"]);
    expect(again.statusCode).toBe(304);
    expect((await app.inject("/assets/base.css")).statusCode).toBe(404);
  });

  it("robots.txt allows other crawlers only the page about ours", async () => {
    const { body } = await app.inject("/robots.txt");

    expect(body).toContain("Allow: /about-crawler\n");
    expect(body).toMatch(/^Disallow: \/$/m);
  });
});

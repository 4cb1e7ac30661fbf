import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DatabaseWatch } from "#coordinator/database/database-watch";
import { apiOperations, describeApi } from "#coordinator/open-api";
import { OwnHealth } from "#coordinator/tell/overview/own-health";
import { changeCauseWords, delegationCauseWords, roundCauseWords } from "#core/explanation";
import { softwareVersion } from "#protocol/software-version";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { seedHost, seedPage, seedUrl, seedWorld } from "../support/seed-world.ts";
import { webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
beforeAll(async () => {
  await seedWorld(database.pool);
  const url = "https://www.example.org/harbour";
  await seedUrl(database.pool, { url });
  await seedPage(database.pool, {
    url,
    title: "<b>Ferries</b> & 'boats'",
    text: "The ferry leaves the <i>harbour</i> at seven.",
  });
  app = webServer(database, { parts: await everyPart(database) });
});
afterAll(async () => await app?.close());

const json = { accept: "application/json" };

describe("pages and JSON", () => {
  it("the same address gives JSON to clients that accept it, and /api/ always does", async () => {
    const negotiated = await app.inject({ url: "/who?q=1.2.3.4", headers: json });
    const underApi = await app.inject("/api/who?q=1.2.3.4");

    expect(negotiated.json()).toEqual(underApi.json());
    expect(underApi.json()).toMatchObject({ found: true, effective: { crawler: { name: "athens" } } });
    expect(negotiated.headers.vary).toContain("accept");
  });

  it("a browser, which accepts anything, gets the page", async () => {
    const page = await app.inject({
      url: "/",
      headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" },
    });

    expect(page.headers["content-type"]).toContain("text/html");
  });

  it("anything unknown has status 404 and says so", async () => {
    expect((await app.inject("/who?q=no+such+thing")).statusCode).toBe(404);
    expect((await app.inject("/api/crawlers/nobody")).json()).toEqual({
      error: { status: 404, message: "There is no crawler named nobody." },
    });
    expect((await app.inject("/nothing/here")).body).toContain("Nothing is at this address.");
  });

  it("a name given twice counts once", async () => {
    expect((await app.inject("/api/who?q=1.2.3.4&q=5.6.7.8")).json()).toMatchObject({ question: "1.2.3.4" });
  });
});

describe("hostile input", () => {
  it("markup in a question, a title or a name stays text", async () => {
    await seedHost(database.pool, {
      host: "evil.example.org",
      state: "refused",
      stateReason: "<script>alert(1)</script>",
    });
    await database.pool.query(`update holder set name = '<img src=x onerror=alert(1)>' where holder_id = 3`);

    const pages = await Promise.all(
      [
        '/who?q="><script>alert(1)</script>',
        "/who?q=evil.example.org",
        "/who?q=5.6.7.8",
        "/search?q=ferry",
        '/search?q="><svg/onload=1>',
      ].map((url) => app.inject(encodeURI(url))),
    );

    for (const page of pages)
      expect(page.body).not.toMatch(/<script>alert|<img src=x|<svg\/onload|<b>Ferries|<i>/);
    expect(pages[1]?.body).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(pages[3]?.body).toContain("&lt;b&gt;Ferries&lt;/b&gt; &amp; &#39;boats&#39;");
  });

  it("SQL in a question is a question", async () => {
    const answer = await app.inject(`/api/who?q=${encodeURIComponent("'; drop table crawler; --")}`);

    expect(answer.statusCode).toBe(404);
    expect((await app.inject("/api/crawlers/athens")).statusCode).toBe(200);
  });

  it("long questions and broken encodings are refused with the reason", async () => {
    const long = await app.inject(`/api/who?q=${"a".repeat(2049)}`);
    const words = await app.inject(`/search?q=${"a".repeat(301)}`);
    const broken = await app.inject("/crawlers/%E0%A4%A");

    expect(long.json()).toEqual({
      error: { status: 400, message: expect.stringMatching(/^q: a{60}…: longer than 2048 characters\.$/) },
    });
    expect(words.statusCode).toBe(400);
    expect(broken.statusCode).toBe(400);
  });

  it("only GET and HEAD are answered", async () => {
    for (const method of ["POST", "PUT", "DELETE", "PATCH"] as const) {
      const answer = await app.inject({ method, url: "/api/who?q=1.2.3.4" });

      expect(answer.statusCode).toBe(405);
      expect(answer.headers.allow).toBe("GET, HEAD");
    }
    expect((await app.inject({ method: "HEAD", url: "/" })).statusCode).toBe(200);
  });

  it("no file outside the assets is served", async () => {
    for (const url of ["/assets/../page-frame.ts", "/assets/%2e%2e/html.ts", "/assets/..%2fhtml.ts"]) {
      expect((await app.inject(url)).body).not.toContain("export");
    }
  });
});

describe("every answer", () => {
  it("forbids inline scripts, frames and foreign sources", async () => {
    for (const url of ["/", "/nothing", "/api/overview", "/assets/nearcrawl.js"]) {
      const { headers } = await app.inject(url);

      expect(headers["content-security-policy"]).toContain(
        "default-src 'none'; script-src 'self'; style-src 'self'",
      );
      expect(headers["x-content-type-options"]).toBe("nosniff");
      expect(headers["x-frame-options"]).toBe("DENY");
    }
  });

  it("has neither inline script nor style nor a source elsewhere", async () => {
    for (const url of [
      "/",
      "/who?q=www.example.org",
      "/search?q=ferry",
      "/crawlers/athens",
      "/about-crawler",
    ]) {
      const { body } = await app.inject(url);

      expect(body).not.toMatch(/<script(?![^>]* src="\/assets\/)|<style| style="| on[a-z]+="/);
      expect(body).not.toMatch(/(src|<link[^>]* href)="(https?:)?\/\//);
    }
  });

  it("of a first page, with all it loads, stays under 60 KB on the wire", async () => {
    const page = await app.inject("/");
    const assets = [...page.body.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map((match) => match[1]!);
    const onTheWire = { "accept-encoding": "br" };
    const loaded = await Promise.all(["/", ...assets].map((url) => app.inject({ url, headers: onTheWire })));

    expect(assets.length).toBeGreaterThanOrEqual(3);
    expect(loaded.map(({ statusCode }) => statusCode)).toEqual(loaded.map(() => 200));
    expect(loaded.reduce((sum, { rawPayload }) => sum + rawPayload.length, 0)).toBeLessThan(60_000);
  });
});

describe("operation", () => {
  it("health, readiness and metrics answer", async () => {
    expect((await app.inject("/health")).json()).toEqual({ status: "ok", version: softwareVersion });
    expect((await app.inject("/ready")).json()).toEqual({ ready: true, faults: [] });
    const metrics = await app.inject("/metrics");
    expect(metrics.headers["content-type"]).toContain("text/plain");
    expect(metrics.body).toContain("# TYPE nearcrawl_pages_total counter");
  });

  it("without a database it is not ready, and a page says that something is wrong, without the details", async () => {
    const away = () => Promise.reject(new Error("connect ECONNREFUSED /secret/socket"));
    const nowhere = { now: () => new Date(), nowMs: () => performance.now() };
    const watch = new DatabaseWatch("postgresql:///nearcrawl?host=/nowhere/secret", nowhere);
    const health = new OwnHealth({ database: watch, ...nowhere });
    const broken = webServer(database, { reads: { crawlTotals: away }, health });

    const ready = await broken.inject("/ready");
    const page = await broken.inject("/");
    await broken.close();
    await watch.close();

    expect([ready.statusCode, ready.json().ready]).toEqual([503, false]);
    expect(ready.json().reason).toBe("the database does not answer (ENOENT)");
    expect(page.statusCode).toBe(500);
    expect(page.body).not.toContain("secret");
  });

  it("the page for webmasters names the user agent and the robots rules for it", async () => {
    const { body } = await app.inject("/about-crawler");

    expect(body).toContain("Nearcrawl/0.1 (+https://crawl.example.org/about-crawler)");
    expect(body).toContain("User-agent: Nearcrawl\nDisallow: /");
    expect(body).toContain('href="mailto:crawl@example.org"');
  });
});

interface OpenApi {
  readonly openapi: string;
  readonly paths: Record<string, Record<"get" | "post", Operation>>;
  readonly components: { readonly schemas: Record<string, JsonSchema> };
}
interface Operation {
  readonly parameters?: readonly { name: string; in: string; example: unknown }[];
  readonly responses: Record<string, { content?: Record<string, { schema: JsonSchema; example?: unknown }> }>;
}

describe("the OpenAPI document", () => {
  const document = describeApi() as unknown as OpenApi;
  const { schemas } = document.components;

  it("is served unchanged except for the origin", async () => {
    const { servers, ...served } = (await app.inject("/api/openapi.json")).json();
    const { servers: _, ...described } = JSON.parse(
      JSON.stringify(document).replaceAll(/\b(http|ws)s:\/\/search\.example/g, "$1://localhost:80"),
    );
    expect(served).toEqual(described);
    expect(servers).toEqual([{ url: "http://localhost:80" }]);
    expect(document.openapi).toMatch(/^3\.1/);
  });

  it("has examples that fit their schemas", () => {
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.values(methods).map((operation) => ({ path, operation })),
    );
    const faults = operations.flatMap(({ path, operation }) =>
      Object.entries(operation.responses).flatMap(([status, response]) =>
        Object.values(response.content ?? {}).flatMap(({ schema, example }) =>
          example === undefined ? [] : faultsOf(example, schema, schemas, `${path} ${status}`),
        ),
      ),
    );

    expect(faults).toEqual([]);
  });

  it("has examples of request bodies that pass validation", () => {
    const bodies = Object.entries(apiOperations).flatMap(([name, { body }]) =>
      body?.example === undefined ? [] : [{ name, ...body }],
    );

    expect(bodies.length).toBeGreaterThan(0);
    for (const { name, schema, example } of bodies) {
      expect([name, schema.safeParse(example).error?.message]).toEqual([name, undefined]);
    }
  });

  it("describes what the API answers, for every kind of question", async () => {
    const questions = [
      "https://www.example.org/",
      "www.example.org",
      "1.2.3.4",
      "1.2.0.0/16",
      "Example Networks",
      "athens",
      "exampel",
      "new.example.org",
      "not a thing",
    ];
    const asked = [
      ["/api/overview", "Overview"],
      ["/api/crawlers/athens", "CrawlerDetail"],
      ["/api/search?q=ferry", "SearchAnswer"],
      ...questions.map((question) => [`/api/who?q=${encodeURIComponent(question)}`, "WhoAnswer"]),
    ] as const;

    for (const [url, schema] of asked) {
      const answer = (await app.inject(url)).json();
      expect(faultsOf(answer, { $ref: `#/components/schemas/${schema}` }, schemas, url)).toEqual([]);
    }
  });

  it("names every cause of delegations, rounds and changes", () => {
    const named = [schemas.DelegationCause, schemas.RoundCause, schemas.ChangeCause].map(
      (schema) => new Set(schema?.enum),
    );

    const known = [delegationCauseWords, roundCauseWords, changeCauseWords].map(
      (words) => new Set(Object.keys(words)),
    );
    expect(named).toEqual(known);
  });

  it("leaves no cause without its list", () => {
    const causes = Object.values(schemas).flatMap(({ properties }) => properties?.cause ?? []);

    expect(causes.length).toBeGreaterThan(0);
    expect(causes.filter(({ $ref }) => !$ref?.endsWith("Cause"))).toEqual([]);
  });
});

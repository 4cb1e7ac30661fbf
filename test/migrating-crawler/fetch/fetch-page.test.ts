/** Outcomes of a URL at an ordinary site on real sockets. */
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { fetchAll, fetchOne } from "../support/fetch-one.ts";
import { closedPort, html, startSite } from "../support/origin.ts";

describe("a page", () => {
  it("that is compressed is decoded, and both sizes are reported", async () => {
    const body = `<title>Packed</title>${"<p>the same words again".repeat(200)}`;
    const origin = await startSite((_request, response) =>
      response
        .writeHead(200, { "content-type": "text/html", "content-encoding": "gzip" })
        .end(gzipSync(body)),
    );

    const result = await fetchOne({ url: `${origin.url}/` });

    expect(result.page?.title).toBe("Packed");
    expect(result.bodyBytes).toBe(body.length);
    expect(result.wireBytes).toBeLessThan(body.length / 10);
  });

  it("that has not changed is recognised by its validators and costs no body", async () => {
    const origin = await startSite((request, response) => {
      if (request.headers["if-none-match"] === '"v1"') return void response.writeHead(304).end();
      html(response, "<p>new", { etag: '"v2"', "last-modified": "Sat, 21 Nov 2026 10:00:00 GMT" });
    });

    const same = await fetchOne({ url: `${origin.url}/`, etag: '"v1"' });
    const other = await fetchOne({ url: `${origin.url}/`, etag: '"v0"' });

    expect(same.outcome).toEqual({ type: "unchanged", status: 304 });
    expect(same.page).toBeNull();
    expect(other).toMatchObject({ etag: '"v2"', lastModified: "Sat, 21 Nov 2026 10:00:00 GMT" });
  });

  it("is timed by phases, and a reused connection has no connect time", async () => {
    const origin = await startSite((_request, response) => html(response, "<p>x"));

    const { results } = await fetchAll([{ url: `${origin.url}/1` }, { url: `${origin.url}/2` }]);

    // robots.txt opened the connection; the first page reports the connect time.
    expect(results[0]?.timing.connectMs).toBeGreaterThan(0);
    expect(results[1]?.timing.connectMs).toBeNull();
    expect(results[1]?.timing.firstByteMs).toBeGreaterThan(0);
    expect(results[1]?.timing.totalMs).toBeGreaterThanOrEqual(results[1]!.timing.firstByteMs!);
  });

  it("whose idle connection was closed is requested again on a new one", async () => {
    let served = 0;
    const origin = await startSite((request, response) => {
      served++;
      if (served === 1) response.once("finish", () => request.socket.destroy());
      html(response, "<p>x");
    });

    const { results } = await fetchAll([{ url: `${origin.url}/1` }, { url: `${origin.url}/2` }]);

    expect(results.map((result) => result.outcome.type)).toEqual(["fetched", "fetched"]);
  });

  it.each([
    [404, { type: "http-error", status: 404, retryAfterSeconds: null }],
    [204, { type: "unsupported", status: 204, contentType: "" }],
  ])("answered with %i has that outcome", async (status, outcome) => {
    const origin = await startSite((_request, response) => void response.writeHead(status).end());

    expect((await fetchOne({ url: `${origin.url}/` })).outcome).toEqual(outcome);
  });

  it("answered with 503 carries Retry-After, and the host is left alone that long", async () => {
    const origin = await startSite(
      (_request, response) => void response.writeHead(503, { "retry-after": "120" }).end(),
    );

    const result = await fetchOne({ url: `${origin.url}/` });

    expect(result.outcome).toEqual({ type: "http-error", status: 503, retryAfterSeconds: 120 });
    expect(result.hostDelayMs).toBeGreaterThan(119_000);
  });

  it("of a host that refuses connections fails by the target's fault", async () => {
    const result = await fetchOne({ url: `http://127.0.0.1:${await closedPort()}/` });

    expect(result.outcome).toMatchObject({ type: "failed", blame: "target", code: "connect-refused" });
    expect(result.timing.connectMs).toBeNull();
  });

  it("of a domain that the partner denies is refused before any request", async () => {
    const result = await fetchOne({ url: "http://www.shop.example/" }, { denyDomains: ["shop.example"] });

    expect(result.outcome).toEqual({
      type: "failed",
      blame: "crawler",
      code: "not-allowed",
      reason: "the partner's deny-list holds shop.example",
    });
    expect(result.address).toBeNull();
  });
});

describe("robots.txt", () => {
  /** RFC 9309 section 2.3.1.4 */
  it.each([500, 503, 429])("answered with %i forbids everything", async (status) => {
    const origin = await startSite(
      (_request, response) => html(response, "<p>x"),
      (_request, response) => void response.writeHead(status).end(),
    );

    const result = await fetchOne({ url: `${origin.url}/` });

    expect(result.outcome).toMatchObject({ type: "failed", blame: "target", code: "robots-closed" });
    expect(origin.requests).toEqual(["GET /robots.txt"]);
  });

  /** RFC 9309 section 2.3.1.3 */
  it.each([401, 402, 403, 404, 410])("answered with %i allows everything", async (status) => {
    const origin = await startSite(
      (_request, response) => html(response, "<p>x"),
      (_request, response) => void response.writeHead(status).end(),
    );

    expect((await fetchOne({ url: `${origin.url}/` })).outcome.type).toBe("fetched");
  });

  it("that is unreachable because the host is silent fails the page with that reason", async () => {
    const origin = await startSite(
      (_request, response) => html(response, "<p>x"),
      () => {},
    );

    const result = await fetchOne(
      { url: `${origin.url}/` },
      { timeouts: { connectMs: 200, firstByteMs: 200, idleMs: 200, totalMs: 1000 } },
    );

    expect(result.outcome).toMatchObject({ type: "failed", code: "first-byte-timeout" });
    expect(origin.requests).toEqual(["GET /robots.txt"]);
  });

  it("sets the pace by Crawl-delay, which the result reports", async () => {
    const origin = await startSite(
      (_request, response) => html(response, "<p>x"),
      (_request, response) => void response.end("User-agent: *\nCrawl-delay: 0.2"),
    );

    expect((await fetchOne({ url: `${origin.url}/` })).hostDelayMs).toBeCloseTo(200, -1);
  });
});

/** Outcomes of a URL at an ordinary site on real sockets. */
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { fetchAll, fetchOne } from "../support/fetch-one.ts";
import { closedPort, html, type Origin, startOrigin, startSite } from "../support/origin.ts";

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

// Sitemaps and feeds over real sockets: found in robots.txt, fetched like pages, and read.

/** `ORIGIN` in the text stands for the site's own; the function compresses it. */
type Served = readonly [
  text: string,
  headers: Readonly<Record<string, string>>,
  pack?: (text: string) => Buffer,
];

async function siteOf(files: Readonly<Record<string, Served>>): Promise<Origin> {
  const origin = await startOrigin((request, response) => {
    const none: Served = ["none", { "content-type": "text/plain" }];
    const [text, headers, pack = Buffer.from] = files[request.url ?? ""] ?? none;
    response.writeHead(request.url! in files ? 200 : 404, headers);
    response.end(pack(text.replaceAll("ORIGIN", `http://${request.headers.host}`)));
  });
  return origin;
}

const xml = { "content-type": "application/xml" };
const urlset = (...paths: string[]) =>
  `<urlset>${paths.map((path) => `<url><loc>ORIGIN${path}</loc></url>`).join("")}</urlset>`;
const two = urlset("/a", "/b");
const packed = (text: string) => gzipSync(text);

describe("a sitemap is read", () => {
  it.each(
    Object.entries<Served>({
      "as XML": [two, xml],
      "as text/xml with a content coding": [
        two,
        { "content-type": "text/xml", "content-encoding": "gzip" },
        packed,
      ],
      "as a compressed file": [two, { "content-type": "application/x-gzip" }, packed],
      "as a compressed file followed by a line break": [
        two,
        { "content-type": "application/octet-stream" },
        (text) => Buffer.concat([packed(text), Buffer.from("\r\n")]),
      ],
      "as a compressed file of unknown type": [two, { "content-type": "application/octet-stream" }, packed],
      "as a compressed file with a content coding": [
        two,
        { "content-type": "application/gzip", "content-encoding": "gzip" },
        (text) => gzipSync(packed(text)),
      ],
      "as plain text": ["ORIGIN/a\nORIGIN/b\n", { "content-type": "text/plain" }],
      "when it is declared a page": [two, { "content-type": "text/html" }],
    }),
  )("%s", async (_how, served) => {
    const origin = await siteOf({ "/map": served });

    const { outcome, page } = await fetchOne({ url: `${origin.url}/map` });

    expect(outcome).toEqual({ type: "fetched", status: 200, truncated: false });
    expect(page).toMatchObject({ kind: "sitemap", text: "" });
    expect(page?.links.map((link) => link.url)).toEqual([`${origin.url}/a`, `${origin.url}/b`]);
  });
});

it("robots.txt leads through an index to the pages", async () => {
  const origin = await siteOf({
    "/robots.txt": ["User-agent: *\nSitemap: ORIGIN/index.xml\n", { "content-type": "text/plain" }],
    "/index.xml": ["<sitemapindex><sitemap><loc>ORIGIN/map.xml.gz</loc></sitemap></sitemapindex>", xml],
    "/map.xml.gz": [two, { "content-type": "application/gzip" }, packed],
    "/": ["<p>front page", { "content-type": "text/html" }],
  });

  const front = await fetchOne({ url: `${origin.url}/` });
  const [index] = front.robots?.sitemaps ?? [];
  const map = (await fetchOne({ url: index! })).page?.links[0]?.url;
  const { page } = await fetchOne({ url: map! });

  expect([index, map]).toEqual([`${origin.url}/index.xml`, `${origin.url}/map.xml.gz`]);
  expect(page?.links.map((link) => link.url)).toEqual([`${origin.url}/a`, `${origin.url}/b`]);
});

it("a truncated list is marked and gives what arrived", async () => {
  const long = urlset(...Array.from({ length: 6000 }, (_, index) => `/${index}-${"x".repeat(1000)}`));
  const origin = await siteOf({ "/map.gz": [long, { "content-type": "application/gzip" }, packed] });

  const { outcome, page } = await fetchOne({ url: `${origin.url}/map.gz` });

  expect(outcome).toMatchObject({ type: "fetched", truncated: true });
  expect(page?.leftOutLinks ?? 0).toBeGreaterThan(500);
  expect(page?.links.length).toBeGreaterThan(3000);
});

it("other XML and compressed pages are unsupported", async () => {
  const origin = await siteOf({
    "/drawing": ['<svg xmlns="http://www.w3.org/2000/svg"/>', xml],
    "/page.gz": ["<!doctype html><p>text", { "content-type": "application/gzip" }, packed],
  });

  const { results } = await fetchAll([{ url: `${origin.url}/drawing` }, { url: `${origin.url}/page.gz` }]);

  expect(results.map(({ outcome }) => outcome.type)).toEqual(["unsupported", "unsupported"]);
});

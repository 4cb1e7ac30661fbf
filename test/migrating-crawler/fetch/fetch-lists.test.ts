/** Sitemaps and feeds over real sockets: found in robots.txt, fetched like pages, and read. */
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { fetchAll, fetchOne } from "../support/fetch-one.ts";
import { type Origin, startOrigin } from "../support/origin.ts";

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
    expect(page).toMatchObject({ kind: "sitemap", lexemes: "" });
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

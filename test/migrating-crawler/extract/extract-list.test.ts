/** What is shipped of sitemaps and feeds. */
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { extractList, type FetchedList, robotsDirectives } from "#crawler/extract/extract-list";
import { maxListedUrls, type PageExtract, pageExtract } from "#protocol/result";
import { inZone } from "../../support/in-zone.ts";
import { noWaiting } from "../support/extracted.ts";

const sitemapNamespace = "http://www.sitemaps.org/schemas/sitemap/0.9";
const urlset = (...entries: string[]) => `<urlset xmlns="${sitemapNamespace}">${entries.join("")}</urlset>`;
const url = (loc: string) => `<url><loc>${loc}</loc></url>`;

/** Validates the extract by the message's schema; null for no list. */
async function listOf(
  body: string | Buffer,
  changes: Partial<FetchedList> = {},
): Promise<PageExtract | null> {
  const list = {
    url: "https://site.example/maps/all.xml",
    contentType: "application/xml",
    robotsTag: undefined,
  };
  const extracted = await extractList(
    { ...list, bytes: Buffer.from(body as string), ...changes },
    noWaiting(),
  );
  return extracted === null ? null : pageExtract.parse(extracted.page);
}

async function urlsOf(
  body: string | Buffer,
  changes: Partial<FetchedList> = {},
): Promise<string[] | undefined> {
  return (await listOf(body, changes))?.links.map((link) => link.url);
}

describe("a sitemap", () => {
  it("gives its URLs and when they changed", async () => {
    const page = await listOf(
      `<?xml version="1.0" encoding="UTF-8"?>\n<!-- made today --><urlset xmlns="${sitemapNamespace}">
        <url><loc> https://site.example/a?x=1&amp;y=2&#38;z=3 </loc><lastmod>2026-03-04</lastmod><changefreq> Weekly
          </changefreq></url>
        <url><lastmod>2026-03-04T12:30+02:00</lastmod><loc><![CDATA[https://site.example/b?x=1&y=2]]></loc></url>
        <url><loc>https://site.example/c</loc><lastmod>last week</lastmod><changefreq>sometimes</changefreq><priority>0.5</priority></url></urlset>`,
    );

    expect(page).toMatchObject({ kind: "sitemap", text: "", words: 0, title: "" });
    expect(page?.links).toEqual([
      {
        url: "https://site.example/a?x=1&y=2&z=3",
        anchor: "",
        nofollow: false,
        modifiedAt: "2026-03-04",
        changeFrequency: "weekly",
      },
      {
        url: "https://site.example/b?x=1&y=2",
        anchor: "",
        nofollow: false,
        modifiedAt: "2026-03-04T10:30:00Z",
      },
      { url: "https://site.example/c", anchor: "", nofollow: false },
    ]);
  });

  it.each([
    ["2024-01-08T00:00:00", "2024-01-08T00:00:00Z"],
    ["2024-01-08 10:20:30", "2024-01-08T10:20:30Z"],
    ["2024-01-08T10:20", "2024-01-08T10:20:00Z"],
    ["Mon, 08 Jan 2024 10:20:30", "2024-01-08T10:20:30Z"],
    ["Mon, 08 Jan 2024 10:20:30 +0100", "2024-01-08T09:20:30Z"],
    ["Mon, 08 Jan 24 10:20:30 GMT", "2024-01-08T10:20:30Z"],
    ["2024-01-08T10:20:30 +01:00", "2024-01-08T09:20:30Z"],
    ["2011-08-23T13:15:00+02", "2011-08-23T11:15:00Z"],
    ["2024-01-08T24:00:00Z", "2024-01-09T00:00:00Z"],
    ["2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"],
    ["2024-01-08T10:20:30.123456789+05:30", "2024-01-08T04:50:30Z"],
    ["2024-01-08t10:20:30z", "2024-01-08T10:20:30Z"],
    ["2024-02-30", undefined],
    ["2024-02-30T10:00:00Z", undefined],
    ["0000-00-00T00:00:00+00:00", undefined],
    ["2015-10-08T07:18:53.846344Z 2015-06-15T15:33:55.288302Z", undefined],
    ["2024-01-08T10:20:30+99:00", undefined],
    ["Mon, 08 Jan 2024 10:20:30 CET", undefined],
    ["2024", undefined],
    ["May 2024", undefined],
  ])("reads the date %s as the same moment on every machine", async (lastmod, modifiedAt) => {
    for (const zone of ["Asia/Tokyo", "America/New_York"]) {
      const page = await inZone(zone, () =>
        listOf(urlset(`<url><loc>https://site.example/a</loc><lastmod>${lastmod}</lastmod></url>`)),
      );
      expect(page?.links[0]?.modifiedAt).toBe(modifiedAt);
    }
  });

  it("index gives its sitemaps", async () => {
    const index =
      "<sitemapindex><sitemap><loc>https://site.example/part-1.xml.gz</loc></sitemap><sitemap><loc>" +
      "https://site.example/part-2.xml</loc></sitemap></sitemapindex>";

    expect(await urlsOf(index)).toEqual([
      "https://site.example/part-1.xml.gz",
      "https://site.example/part-2.xml",
    ]);
  });

  it.each(["/a", "//site.example/a", "site.example/a", "a", "https:a", "?a", "mailto:a@site.example"])(
    "leaves out and counts %s, which has no protocol of the web",
    async (loc) => {
      const page = await listOf(urlset(url(loc), url("HTTPS://site.example/b")));

      expect(page?.links.map((link) => link.url)).toEqual(["https://site.example/b"]);
      expect(page?.leftOutLinks).toBe(1);
    },
  );

  it("may have a prefix and elements of other vocabularies", async () => {
    const prefixed = `<sm:urlset xmlns:sm="${sitemapNamespace}" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
      <sm:url><image:image><image:loc>https://site.example/pic.png</image:loc></image:image><sm:loc>https://site.example/a</sm:loc>
      <gallery xmlns="urn:other"><loc>https://site.example/not</loc></gallery></sm:url></sm:urlset>`;

    expect(await urlsOf(prefixed)).toEqual(["https://site.example/a"]);
  });

  it("covers its host and the hosts below it, and separates other hosts", async () => {
    const page = await listOf(
      urlset(
        url("https://site.example/a"),
        url("http://www.site.example/b"),
        url("https://news.site.example/c"),
        url("https://other.example/"),
        url("https://notsite.example/"),
        url("http://169.254.169.254/"),
        url("https://site.example:22/"),
        url("file:///etc/passwd"),
      ),
      { url: "https://www.site.example/sitemap.xml" },
    );

    expect(page?.links.map((link) => link.url)).toEqual([
      "https://site.example/a",
      "http://www.site.example/b",
      "https://news.site.example/c",
    ]);
    expect(page?.foreignLinks?.map((link) => link.url)).toEqual([
      "https://other.example/",
      "https://notsite.example/",
      "http://169.254.169.254/",
      "https://site.example:22/",
    ]);
    expect(page?.leftOutLinks).toBe(1);
  });

  it("may be plain text", async () => {
    const text = "\ufeff https://site.example/a\r\nhttps://site.example/b\n\nhttps://site.example/a\n";

    expect(await listOf(text, { contentType: "text/plain" })).toMatchObject({
      kind: "sitemap",
      links: [{ url: "https://site.example/a" }, { url: "https://site.example/b" }],
    });
  });

  it.each([
    ["once", (xml: string) => gzipSync(xml)],
    ["twice", (xml: string) => gzipSync(gzipSync(xml))],
  ])("may be compressed %s, whatever its type", async (_times, pack) => {
    const packed = pack(urlset(url("https://site.example/a")));

    for (const contentType of ["application/x-gzip", "application/xml", "application/octet-stream"]) {
      expect(await urlsOf(packed, { contentType })).toEqual(["https://site.example/a"]);
    }
  });

  const accented = urlset(url("https://site.example/é"));
  it.each([
    ["UTF-16 with a byte order mark", Buffer.from(`\ufeff${accented}`, "utf16le"), ""],
    ["UTF-16 without one", Buffer.from(accented, "utf16le"), ""],
    [
      "what its declaration says",
      Buffer.from(`<?xml version='1.0' encoding='latin1'?>${accented}`, "latin1"),
      "",
    ],
    ["what the header says", Buffer.from(accented, "latin1"), "; charset=iso-8859-1"],
  ])("is read in %s", async (_which, bytes, charset) => {
    expect(await urlsOf(bytes, { contentType: `text/xml${charset}` })).toEqual([
      "https://site.example/%C3%A9",
    ]);
  });

  it("that is broken gives its whole entries", async () => {
    const broken = `<urlset><url><loc>https://site.example/a</loc><url><loc>https://site.example/b<lastmod>2026-01-01</lastmod></url>
      <url/><url><loc></loc></url></image:loc></p><url><loc>https://site.example/c?x=1&y=2</loc></url>
      <url><loc>https://site.example/d</loc><priority>0.5</prio`;

    expect(await urlsOf(`${broken}`)).toEqual([
      "https://site.example/a",
      "https://site.example/b",
      "https://site.example/c?x=1&y=2",
      "https://site.example/d",
    ]);
    expect(
      await urlsOf("<urlset><url><loc>https://site.example/a</loc></url><url><loc>https://site.exam"),
    ).toEqual(["https://site.example/a"]);
  });

  it("that is compressed and truncated gives what arrived", async () => {
    const many = urlset(
      ...Array.from({ length: 5000 }, (_, index) => url(`https://site.example/${index * 7919}`)),
    );
    const packed = gzipSync(many);

    const urls = await urlsOf(packed.subarray(0, packed.length / 2), { contentType: "application/gzip" });

    expect(urls?.length).toBeGreaterThan(1000);
    expect(urls?.[999]).toBe(`https://site.example/${999 * 7919}`);
  });

  it("with more URLs than a message holds gives the most recently changed ones", async () => {
    const entries = Array.from(
      { length: maxListedUrls + 500 },
      (_, index) =>
        `<url><loc>https://site.example/${index}</loc>${index < 500 ? "" : "<lastmod>2026-01-01</lastmod>"}</url>`,
    );

    const page = await listOf(urlset(...entries));

    expect(page?.links).toHaveLength(maxListedUrls);
    expect(page?.links[0]?.url).toBe("https://site.example/500");
    expect(page?.leftOutLinks).toBe(500);
  });

  it("of URLs of the maximum length still fits a message", async () => {
    const long = "x".repeat(1900);
    const entries = Array.from({ length: 2600 }, (_, index) =>
      url(`https://${index % 2 === 0 ? "site" : "other"}.example/${index}-${long}`),
    );

    const page = await listOf(urlset(...entries));

    expect(JSON.stringify(page).length).toBeLessThan(4.2e6);
    const { links = [], foreignLinks = [], leftOutLinks = 0 } = page ?? {};
    expect(links).toHaveLength(1300);
    expect(foreignLinks.length).toBeGreaterThan(500);
    expect(links.length + foreignLinks.length + leftOutLinks).toBe(2600);
  });
});

describe("entities", () => {
  it("declared in the document are never expanded, and a URL with one is none", async () => {
    const levels = "bcdefghij"
      .split("")
      .map((name, index) => `<!ENTITY ${name} "${`&${"abcdefghij"[index]};`.repeat(10)}">`);
    const laughs = `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">${levels.join("")}
      <!ENTITY u "<url><loc>https://site.example/declared</loc></url>"> ]>
      ${urlset(url("https://site.example/&j;"), url("https://site.example/a"))}`;

    expect(await urlsOf(laughs)).toEqual(["https://site.example/a"]);
  });

  it("that are external are not fetched and give nothing", async () => {
    const outside = `<!DOCTYPE u [<!ENTITY f SYSTEM "file:///etc/passwd"><!ENTITY % p SYSTEM "https://site.example/p.dtd"> %p;]>
      ${urlset(url("https://site.example/a?&f;"))}`;

    expect(await listOf(outside)).toMatchObject({ kind: "sitemap", links: [] });
  });
});

describe("a feed", () => {
  it("in RSS 2.0 gives its items' pages on any host", async () => {
    const page = await listOf(
      `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>News</title><link>https://site.example/</link>
        <atom:link href="https://site.example/feed" rel="self"/>
        <item><title>One &amp;lt;b&amp;gt; <![CDATA[<i>two</i>]]></title><link>https://site.example/1</link>
          <pubDate>Wed, 04 Mar 2026 10:00:00 GMT</pubDate><description>&lt;a href="https://site.example/no"&gt;</description></item>
        <item><guid>https://site.example/2</guid></item><item><guid isPermaLink="false">3</guid></item>
        <item><link>https://other.example/4</link></item></channel></rss>`,
      { contentType: "application/rss+xml" },
    );

    expect(page?.kind).toBe("feed");
    expect(page?.links).toEqual([
      {
        url: "https://site.example/1",
        anchor: "One &lt;b&gt; two",
        nofollow: false,
        modifiedAt: "2026-03-04T10:00:00Z",
      },
      { url: "https://site.example/2", anchor: "", nofollow: false },
      { url: "https://other.example/4", anchor: "", nofollow: false },
    ]);
  });

  it("in RSS 1.0 does the same", async () => {
    const rdf = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
      <channel><link>https://site.example/</link></channel>
      <item rdf:about="https://site.example/1"><link>https://site.example/1</link><dc:date>2026-03-04</dc:date></item></rdf:RDF>`;

    expect((await listOf(rdf))?.links).toEqual([
      { url: "https://site.example/1", anchor: "", nofollow: false, modifiedAt: "2026-03-04" },
    ]);
  });

  it("in Atom gives its entries' alternates, resolved against its base", async () => {
    const atom = `<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://site.example/blog/"><link href="/"/>
      <entry><title type="html">A &amp;amp; B</title><link rel="edit" href="e"/><link href="a?x=1&amp;y=2"/><link rel="alternate" href="later"/>
        <published>2026-01-01T00:00:00Z</published><updated>2026-03-04T10:00:00.123Z</updated>
        <source><link href="https://other.example/"/></source></entry>
      <entry><content type="xhtml"><div><a href="/no">x</a><link href="/no"/></div></content><link rel='alternate' href='b'/></entry></feed>`;

    const page = await listOf(atom, { contentType: "application/atom+xml" });

    expect(page?.links.map(({ url, modifiedAt }) => [url, modifiedAt])).toEqual([
      ["https://site.example/blog/a?x=1&y=2", "2026-03-04T10:00:00Z"],
      ["https://site.example/blog/b", undefined],
    ]);
  });

  it.each([
    ['<entry xml:base="When/2026/"><link href="Story"/></entry>', "/maps/When/2026/Story"],
    ['<entry><link xml:base="/other/" href="x"/></entry>', "/other/x"],
    [
      '<entry xml:base="/abs/"><link href="y"/><content type="html" xml:base="/c/">z</content></entry>',
      "/abs/y",
    ],
    ['<entry xml:base="a/"><link xml:base="b/" href="c"/></entry>', "/maps/a/b/c"],
    ['<entry xml:base="/a/"><link rel="edit" xml:base="/no/" href="e"/><link href="c"/></entry>', "/a/c"],
    ['<entry xml:base="/a/"><link href="n"/></entry><entry><link href="c"/></entry>', "/maps/c"],
    ['<entry xml:base="mailto:a@b"><link href="c"/></entry>', "/maps/c"],
    ['<entry xml:base="?x=1&amp;y=2"><link href="#c"/></entry>', "/maps/all.xml?x=1&y=2"],
    ['<entry xml:base=""><link href="c"/></entry>', "/maps/c"],
    ['<entry xml:base="/a/"><link href="https://other.example/"/></entry>', "https://other.example/"],
  ])("in Atom with xml:base at an entry or a link: %s", async (entries, expected) => {
    const atom = `<feed xmlns="http://www.w3.org/2005/Atom"><title>n</title>${entries}</feed>`;

    const url = new URL(expected, "https://site.example").href;
    expect((await urlsOf(atom, { contentType: "application/atom+xml" }))?.at(-1)).toBe(url);
  });

  it("applies a base to its own links too, and in RSS", async () => {
    const own = `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="/f/"><entry><link href="a"/></entry></feed>`;
    const rss = `<rss version="2.0" xml:base="/blog/"><channel><item xml:base="2026/"><link>a</link></item></channel></rss>`;

    expect(await urlsOf(own, { contentType: "application/atom+xml" })).toEqual(["https://site.example/f/a"]);
    expect(await urlsOf(rss, { contentType: "application/rss+xml" })).toEqual([
      "https://site.example/blog/2026/a",
    ]);
  });
});

describe("a document", () => {
  it.each([
    ["a page", "<!doctype html><title>sitemap</title><a href=/x>x</a>", "text/html"],
    [
      "a page in XML",
      '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>',
      "application/xhtml+xml",
    ],
    ["text with a URL in it", "https://site.example/ is our site", "text/plain"],
    ["a drawing", '<svg xmlns="http://www.w3.org/2000/svg"><a href="/x"/></svg>', "application/xml"],
    [
      "other RDF",
      '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
      "application/rdf+xml",
    ],
    ["nothing", "", "application/xml"],
    ["a packed page", gzipSync("<!doctype html><p>x"), "application/gzip"],
    [
      "a prolog without an end",
      "<!DOCTYPE urlset [<urlset><url><loc>https://site.example/</loc>",
      "text/xml",
    ],
  ])("that is %s is no list, whatever its name", async (_what, body, contentType) => {
    expect(await listOf(body, { contentType, url: "https://site.example/sitemap.xml" })).toBeNull();
  });

  it("that is a list is read as one under every accepted type", async () => {
    expect(await urlsOf(urlset(url("https://site.example/a")), { contentType: "text/html" })).toEqual([
      "https://site.example/a",
    ]);
  });
});

it("a header's nofollow applies to a list's URLs", async () => {
  const page = await listOf(urlset(url("https://site.example/a")), { robotsTag: "noindex, nofollow" });

  expect(page).toMatchObject({ robots: { noindex: true, nofollow: true }, links: [{ nofollow: true }] });
});

// Meta robots and X-Robots-Tag: the stricter of what addresses everybody and us applies.

const nowMs = Date.parse("2026-11-22T12:00:00Z");
const unbounded = Number.POSITIVE_INFINITY;

function said(metas: readonly string[], header?: string | readonly string[]) {
  return robotsDirectives({ metas, header, nowMs });
}

describe("robots directives", () => {
  it("forbid nothing when there are none or they only allow", () => {
    const nothing = { noindex: false, nofollow: false, excerptCharacters: unbounded };

    expect(said([])).toEqual(nothing);
    expect(said(["all", "index, follow, max-snippet:-1, max-image-preview:large"])).toEqual(nothing);
  });

  it.each([
    ["none", true, true],
    ["NoIndex", true, false],
    ["noindex nofollow", true, true],
    ["noindex;nofollow", true, true],
    ["  nofollow ,noarchive", false, true],
    ["nosnippet", false, false],
  ])("%j: noindex %s, nofollow %s", (value, noindex, nofollow) => {
    expect(said([value])).toMatchObject({ noindex, nofollow });
    expect(said([], value)).toMatchObject({ noindex, nofollow });
  });

  it("combine: the more restrictive one wins, wherever it is", () => {
    expect(said(["index, follow"], ["noindex", "follow"])).toMatchObject({ noindex: true, nofollow: false });
    expect(said(["noindex", "nofollow"], "all")).toMatchObject({ noindex: true, nofollow: true });
  });

  it("apply when they name us, and not when they name another crawler", () => {
    expect(said([], "googlebot: noindex, nofollow")).toMatchObject({ noindex: false, nofollow: false });
    expect(said([], "Nearcrawl: noindex")).toMatchObject({ noindex: true });
    expect(said([], "Nearcrawl*: noindex")).toMatchObject({ noindex: true });
    expect(said([], "Nearcrawl/0.1: noindex")).toMatchObject({ noindex: true });
    expect(said([], "Nearcrawler: noindex")).toMatchObject({ noindex: false });
    expect(said([], "nofollow, otherbot: noindex, nearcrawl: nosnippet")).toEqual({
      noindex: false,
      nofollow: true,
      excerptCharacters: 0,
    });
  });

  it.each([
    ["unavailable_after: 21-Nov-26 15:00:00 GMT", true],
    ["unavailable_after: Wednesday, 25-Nov-26 15:00:00 GMT", false],
    ["nofollow, unavailable_after: Sat, 21 Nov 2026 15:00:00 GMT, noarchive", true],
    ["unavailable_after: 2026-11-23", false],
    ["unavailable_after: 2026-11-21T00:00:00Z", true],
    ["unavailable_after: soon", false],
    ["unavailable_after: May", false],
    ["unavailable_after: Sat Nov 21 15:00:00 2026", true],
    ["unavailable_after: 21 November 2026 15:00 PST", true],
    ["otherbot: unavailable_after: 2020-01-01", false],
  ])("%s: the page is over: %s", (value, noindex) => {
    expect(said([value]).noindex).toBe(noindex);
    expect(said([], value).noindex).toBe(noindex);
  });

  it.each([
    ["nosnippet", 0],
    ["noarchive", unbounded],
    ["nocache, noimageindex, notranslate", unbounded],
    ["noarchive, max-snippet:20", 20],
    ["max-snippet:0", 0],
    ["max-snippet: 50, max-snippet:80", 50],
    ["max-snippet:-1", unbounded],
    ["max-snippet:many", unbounded],
  ])("%s: an excerpt of %d characters", (value, excerptCharacters) => {
    expect(said([value])).toEqual({ noindex: false, nofollow: false, excerptCharacters });
  });

  it("of endless length are read up to the bound of real ones", () => {
    const many = Array.from({ length: 10_000 }, () => "x:".repeat(5000));

    expect(said(many.slice(0, 10), many).noindex).toBe(false);
  });
});

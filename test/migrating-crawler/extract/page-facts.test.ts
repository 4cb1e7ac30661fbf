/** What a page says about itself besides its text (titles, dates, structured data, feeds), and its main text. */
import { describe, expect, it } from "vitest";
import { readMoment } from "#crawler/extract/page-dates";
import { extracted as extract } from "../support/extracted.ts";

describe("a page's title", () => {
  it.each([
    ["<title>Own</title><meta property=og:title content=Graph><h1>Head</h1>", "Own"],
    ["<title> </title><meta property=og:title content=' The  graph '><h1>Head</h1>", "The graph"],
    ["<h2>First</h2><h1>Head <b>line</b></h1>", "Head line"],
    ["<svg><title>Picture</title></svg><h2>Second</h2>", "Second"],
    ["<p>text", ""],
  ])("of %s is %j", async (html, title) => {
    expect((await extract(html)).title).toBe(title);
  });
});

describe("a page's address", () => {
  it.each<readonly [string, string | readonly string[], string | null]>([
    ["", '<https://site.example/kanon>; rel="canonical"', "https://site.example/kanon"],
    ["", ['</a>; rel=preload, </b>; title="x"; rel=canonical'], "https://site.example/b"],
    ["", '</a>; rel="next"', null],
    ["<link rel=canonical href=/c>", "</a>; rel=canonical", "https://site.example/c"],
  ])("is the one that %j and Link: %j state", async (html, linkHeader, canonicalUrl) => {
    expect((await extract(html, { linkHeader })).canonicalUrl).toBe(canonicalUrl);
  });

  it("is not changed by a base within noscript", async () => {
    const page = await extract("<noscript><base href=https://other.example/></noscript><a href=x>y</a>");

    expect(page.links[0]?.url).toBe("https://site.example/folder/x");
  });
});

/** WHATWG HTML, section 4.2.5.3: shared declarative refresh steps. */
describe("a page's refresh", () => {
  const refreshed = async (content: string, changes = {}) =>
    (await extract(`<meta http-equiv=" Refresh " content="${content.replaceAll('"', "&quot;")}">`, changes))
      .refresh;

  it.each([
    ["0; url=/next", 0, "/next"],
    ["0;URL='/next'", 0, "/next"],
    ['5 , Url = "/next" behind', 5, "/next"],
    ["\t0\n/next", 0, "/next"],
    ["0 '/next'", 0, "/next"],
    ["0.9.1;url=/next", 0, "/next"],
    [".5; url=/next", 0, "/next"],
    ["600; url='/next", 600, "/next"],
    ["0; url=//user:secret@other.example/x", 0, "https://other.example/x"],
    ["0; url", 0, "/folder/url"],
    ["0; urls=1", 0, "/folder/urls=1"],
    [`${"9".repeat(30)}; url=/next`, 1e9, "/next"],
  ])("of %j is after %d s to %s, which is among its links", async (content, seconds, target) => {
    const page = await extract(
      `<meta http-equiv=REFRESH content='${content.replaceAll("'", "&#39;")}'><a href=/next>x</a>`,
    );

    const url = new URL(target, "https://site.example").href;
    expect(page.refresh).toEqual({ url, seconds });
    expect(page.links[0]).toMatchObject({ url, nofollow: false });
  });

  it.each([
    "",
    "5",
    "5;",
    "5 ;",
    "; url=/next",
    "x; url=/next",
    "0url=/next",
    "-1; url=/next",
    "0; url=",
    "0; url=''",
    "0; url=page#here",
    "0; url=javascript:alert(1)",
  ])("is none when the content is %j", async (content) => {
    expect(await refreshed(content)).toBeUndefined();
  });

  it("may be in the header, has a maximum delay, and is not followed when the page forbids it", async () => {
    const page = await extract("<meta name=robots content=nofollow><p>x", { refreshHeader: "0; url=/next" });
    const startedMs = performance.now();

    await refreshed(`${"1".repeat(100_000)}${" ".repeat(100_000)}x`);
    await refreshed(`0${" ;".repeat(100_000)}`);

    expect(performance.now() - startedMs).toBeLessThan(1000);
    expect(page.refresh).toEqual({ url: "https://site.example/next", seconds: 0 });
    expect(page.links).toEqual([{ url: "https://site.example/next", anchor: "", nofollow: true }]);
  });
});

describe("a page's dates", () => {
  it.each(
    Object.entries<string | undefined>({
      "<meta property=article:published_time content=2019-04-28T06:01:07+02:00>": "2019-04-28T06:01:07+02:00",
      '<script type=application/ld+json>{"@type":"NewsArticle","datePublished":"2019-04-28"}</script>':
        "2019-04-28",
      "<article itemscope itemtype=https://schema.org/Article><span itemprop=datePublished>28 April 2019</span></article>":
        "2019-04-28",
      "<meta name=DC.date.issued content=2019-04-28>": "2019-04-28",
      "<footer><time datetime=2001-01-01></footer><p>by A on <time datetime=2019-04-28>then</time>":
        "2019-04-28",
      "<h1>Head</h1><div>28 April 2019, by A</div><p>text": "2019-04-28",
      "<aside><time datetime=2001-01-01>then</time></aside><h1>Head</h1><div>28 April 2019, by A</div><p>text":
        "2019-04-28",
      "<aside><time class=published datetime=2001-01-01></aside><h1>Head</h1><p>by A on <time datetime=2019-04-28>then</time>":
        "2019-04-28",
      ["<aside><div itemscope itemtype=https://schema.org/Article><b itemprop=datePublished content=2001-01-01>" +
        "</b></div></aside><b itemprop=datePublished content=2019-04-28></b>"]: "2019-04-28",
      "<div><a href=/x>Other</a> <time datetime=2001-01-01></div><article><h1>Head</h1><time datetime=2019-04-28></article>":
        "2019-04-28",
      "<html lang=en><h1>Titel</h1><div>28. April 2019</div><p>text": "2019-04-28",
      "<html lang=en><h1>Titel</h1><div>28. März 2019</div><p>text": "2019-03-28",
      "<html lang=utf-8><h1>Titel</h1><div>28 mars 2019</div><p>text": "2019-03-28",
      "<h1>Head</h1><p>text</p><aside><time datetime=2019-04-28></aside>": "2019-04-28",
      "<p>In 2019 there were 28.": undefined,
    }),
  )("%s: published %s", async (html, publishedAt) => {
    expect((await extract(html)).publishedAt).toBe(publishedAt);
  });

  it("come from its address as a last resort", async () => {
    const page = await extract("<p>text", { url: "https://site.example/2019/04/28/story" });

    expect(page.publishedAt).toBe("2019-04-28");
  });

  it("include when it was changed", async () => {
    const page = await extract(
      "<meta property=article:modified_time content=2020-01-02><meta property=article:published_time content=2019-01-02>",
    );

    expect(page).toMatchObject({ publishedAt: "2019-01-02", modifiedAt: "2020-01-02" });
  });
});

const prose =
  "The nearest of many crawlers fetches every page, and what is in the page goes home in a form that is much smaller. ";
const prose3 = `<p>${prose.repeat(3)}`;
const blank = "\n\t\t".repeat(300);
const main = "The nearest of many crawlers";
const json = (data: string) => `<script type="application/ld+json">${data}</script>`;
const site = (path: string) => `https://site.example/${path}`;

const xhtml = `<html xmlns="http://www.w3.org/1999/xhtml"><head><title/><script src="x"/></head><body><p>seen <![CDATA[a<b]]></p></body></html>`;

interface Facts {
  /** A part of the extracted page. */
  readonly is?: object;
  /** Patterns that occur in what is searched of it, and some that do not. */
  readonly has?: readonly RegExp[];
  readonly lacks?: readonly RegExp[];
  readonly given?: Parameters<typeof extract>[1];
}

const facts: readonly (readonly [string, string, Facts])[] = [
  [
    "metadata is read from the head",
    `<html lang="de-AT"><head><title> Zwei
      Wörter </title><meta name=Description content="Kurz &amp; gut"><link rel="nofollow Canonical" href="/kanon">
      </head><body><h1>Eins</h1><svg><title>nicht</title></svg><h2>Zwei <b>fett</b></h2></body>`,
    {
      is: {
        ...{ title: "Zwei Wörter", description: "Kurz & gut", canonicalUrl: site("kanon") },
        ...{ language: "de", textSearchConfig: "german" },
        headings: [
          { level: 1, text: "Eins" },
          { level: 2, text: "Zwei fett" },
        ],
      },
    },
  ],
  [
    "an unclosed head leaves the text whole",
    "<head><title>T</title><p>visible words",
    { is: { text: "visible words" } },
  ],
  [
    "the text has a line for each block, with the headings in their places",
    "<title>tree</title><h1>branch</h1><p>a \n leaf<h2>root</h2> <pre>stem\n  bark</pre>",
    { is: { title: "tree", text: "branch\na leaf\nroot\nstem bark", words: 7 } },
  ],
  [
    "scripts, styles and hidden templates are no text",
    "<p>seen<script>let unseen</script><style>.unseen{}</style><noscript>unseen</noscript><template>unseen</template>",
    { is: { text: "seen", words: 1 } },
  ],
  [
    "noindex removes the text, and nofollow marks the links",
    "<meta name=nearcrawl content=NOFOLLOW><p>words <a href=/x>y</a>",
    {
      given: { robotsTag: "noindex" },
      is: { robots: { noindex: true, nofollow: true }, text: "", links: [{ nofollow: true }] },
      lacks: [/words/],
    },
  ],
  [
    "structured data describes the main thing, not the site or the author",
    json(`{"@context":"https://schema.org","@graph":[
      {"@type":"WebSite","name":"Site"},{"@type":"WebPage","name":"Page"},
      {"@type":["NewsArticle"],"headline":"Story","description":"Short","author":{"@type":"Person","name":"A"}}]}`),
    { is: { structured: { type: "NewsArticle", name: "Story", description: "Short" } } },
  ],
  [
    "structured data is read from microdata, without the properties of its properties",
    `<div itemscope itemtype="http://schema.org/Recipe"><span itemprop="author" itemscope>
      <b itemprop="name">Cook</b></span><span itemprop="name">Soup <i>of</i> peas</span><meta itemprop="description" content="Green"></div>`,
    { is: { structured: { type: "Recipe", name: "Soup of peas", description: "Green" } } },
  ],
  [
    "structured data is read from Open Graph, without the site's name",
    "<meta property=og:type content=article><meta property=og:title content='Story | Site'><meta property=og:site_name content=Site>",
    { is: { structured: { type: "article", name: "Story", description: "" } } },
  ],
  [
    "structured data may contain line ends and comment marks",
    json('//<![CDATA[\n{"@type":"Article","headline":"one\ntwo"};\n//]]>'),
    { is: { structured: { name: "one two" } } },
  ],
  [
    "feeds are the alternates that are RSS or Atom, each once",
    `<link rel=alternate type=application/rss+xml href=/rss>
    <link rel="Alternate home" type="application/atom+xml; charset=utf-8" href="atom">
    <link rel=alternate hreflang=de href=/de><link rel=alternate type=application/rss+xml href=/rss#2>
    <link rel=alternate type=application/rss+xml href=ftp://x/>`,
    { is: { feeds: [site("rss"), site("folder/atom")] } },
  ],
  [
    "links are absolute and unique, without fragments, with anchor text and rel",
    `<a href="b#part">first <i>words</i></a><a href="b">again</a><a rel="nofollow ugc" href="//other.example/">o</a>
     <a href="javascript:alert(1)">j</a><a href="mailto:x@y.example">m</a><a href="http://[bad">b</a><a href="/pic"><img alt="a picture"></a>`,
    {
      is: {
        links: [
          { url: site("folder/b"), anchor: "first words", nofollow: false },
          { url: "https://other.example/", anchor: "o", nofollow: true },
          { url: site("pic"), anchor: "a picture", nofollow: false },
        ],
      },
    },
  ],
  [
    "links are followed when any of several to the same page is, in any order",
    '<a rel="nofollow" href="a">1</a><a href="a">2</a><a href="b">1</a><a rel="nofollow" href="b">2</a>',
    { is: { links: [{ nofollow: false }, { nofollow: false }] } },
  ],
  [
    "links of readers and advertisers are not to be followed",
    "<a rel=ugc href=/a>a</a><a rel='Sponsored noopener' href=/b>b</a><a href=/c>c</a>",
    { is: { links: [{ nofollow: true }, { nofollow: true }, { nofollow: false }] } },
  ],
  [
    "links are resolved against the first base element",
    '<base href="https://base.example/x/"><base href="https://no.example/"><a href=y>z</a>',
    { is: { links: [{ url: "https://base.example/x/y" }] } },
  ],
  [
    "links in templates do not count, those of image maps do",
    "<template><a href=/{{x}}>x</a></template><map><area href=/m alt='to M'></map>",
    { is: { links: [{ url: site("m"), anchor: "to M", nofollow: false }] } },
  ],
  [
    "a link ends where the next one begins",
    "<a href=/a>one <a href=/b>two</a> three",
    { is: { links: [{ anchor: "one" }, { anchor: "two" }] } },
  ],
  [
    "the main text excludes navigation, footers, notices and lists of links",
    `<body><header><div class=site-menu><a href=/a>Alpha</a> <a href=/b>Beta</a></div></header>
      <nav>Gamma navigation</nav><div id=cookie-banner><p>Delta cookies are good for you, said the man who sells them to everybody here.</div>
      <main><h1>Headline</h1><p>${prose.repeat(3)}</p><h2>Part</h2><p>${prose.repeat(2)}</p></main>
      <ul><li><a href=/c>Epsilon story</a><li><a href=/d>Zeta story</a></ul><div role=contentinfo>Eta notice</div><footer><p>Theta ${prose}</footer>`,
    {
      is: { text: expect.stringMatching(`^Headline\n${main}`), links: [{}, {}, {}, {}] },
      has: [/\nPart\n/],
      lacks: [/alpha|gamma|delta|epsilon|eta |theta/i],
    },
  ],
  [
    "the main text includes the paragraphs around links, whatever white space is in the links",
    `<p>Alpha. ${prose.repeat(2)}<a href=/a>${blank}Beta${blank}</a></p><p>Gamma. ${prose.repeat(2)}</p>`,
    { is: { text: expect.stringMatching(/^Alpha/) }, has: [/Beta/] },
  ],
  [
    "the main text is the whole text when a page has little but links",
    "<nav>Menu</nav><ul><li><a href=/a>Alpha</a><li><a href=/b>Beta</a></ul>",
    { is: { text: "Menu\nAlpha\nBeta" } },
  ],
  [
    "the main text is the prose, whatever its class name",
    `<div class="with-sidebar menu"><p>${prose.repeat(4)}</div><p>Little.`,
    { is: { text: expect.stringContaining("nearest of many crawlers") } },
  ],
  [
    "hidden elements are omitted, but not what follows them",
    `<p>${prose.repeat(3)}<span hidden>secret <span>words</span></span> shown</p><div style="color:red; display: none">secret</div><p>${prose}`,
    { has: [/shown/], lacks: [/secret/] },
  ],
  [
    "only the hidden part of a heading is omitted",
    `<h1>Pier <span hidden>secretly</span> closed</h1>${prose3}`,
    { is: { headings: [{ level: 1, text: "Pier closed" }] } },
  ],
  [
    "the words of pictures are searched but not shown",
    `${prose3}<img alt="a lighthouse"></p>`,
    { is: { text: expect.not.stringContaining("lighthouse"), unquoted: "a lighthouse" } },
  ],
  [
    "with nosnippet the text and the description are searched but not shown",
    `<meta name=description content="A lighthouse keeper's diary">${prose3}${json('{"@type":"Article","description":"A lighthouse keeper"}')}`,
    {
      given: { robotsTag: "nosnippet" },
      is: { snippetCharacters: 0, description: "", structured: { description: "" } },
      has: [/A lighthouse keeper's diary/, /crawlers/],
    },
  ],
  [
    "max-snippet limits snippets and the description",
    `<meta name=description content="A lighthouse keeper's diary">${prose3}`,
    {
      given: { robotsTag: "max-snippet:12" },
      is: { snippetCharacters: 12, description: "A lighthouse", unquoted: "A lighthouse keeper's diary" },
    },
  ],
  [
    "a page that only forbids a cached copy is searched and shown",
    `<meta name=robots content="noarchive, nocache">${prose3}`,
    { is: { text: expect.stringContaining("nearest of many crawlers") } },
  ],
  [
    "text within an element with data-nosnippet is searched but not shown",
    `<p>${prose}The price is <span data-nosnippet>seventeen <b>guilders</b></span> today.</p>
       <div data-nosnippet><p>${prose}Not to be quoted.</p></div><p>${prose}</p>`,
    {
      is: { text: expect.stringMatching(/^(?!.*(seventeen|guilders|quoted)).*The price is\ntoday\./s) },
      has: [/seventeen guilders\n.*Not to be quoted/s],
    },
  ],
  [
    "a paragraph ends where the next block begins, and a heading with its parent",
    "<div><h1>Head</div><p>one<p>two<ul><li>three<li>four</ul><table><tr><td>five<td>six</table>",
    { is: { headings: [{ level: 1, text: "Head" }], text: "Head\none\ntwo\nthree\nfour\nfive\nsix" } },
  ],
  [
    "headings of menus and side bars are none of the page",
    `<nav><h2>Menu</h2><a href=/a>A</a> <a href=/b>B</a></nav><main><h1>Ferries</h1><p>${"The ferry sails at noon. ".repeat(9)}</p></main>
     <aside><h2>Elsewhere</h2><a href=/c>C</a></aside>`,
    { is: { headings: [{ level: 1, text: "Ferries" }] } },
  ],
  [
    "XHTML closes self-closing elements",
    xhtml,
    {
      given: { contentType: "application/xhtml+xml; charset=utf-8" },
      is: { text: "seen a<b" },
    },
  ],
  ["HTML does not close self-closing elements", xhtml, { is: { text: "" } }],
  [
    "NUL, lone surrogates and unclosed comments give clean strings",
    "<title>a\0b&#xd800;c</title><p>text<!-- never closed <a href=/x>",
    { is: { title: expect.not.stringMatching(/\0|\p{Surrogate}/u), links: [] } },
  ],
];

it.each(facts)("%s", async (_title, html, { is = {}, has = [], lacks = [], given }) => {
  const page = await extract(html, given);

  expect(page).toMatchObject(is);
  const searched = `${page.text}\n${page.unquoted ?? ""}`;
  for (const pattern of has) expect(searched).toMatch(pattern);
  for (const pattern of lacks) expect(searched).not.toMatch(pattern);
});

it.each([
  ["broken", '{"@type":"Article","headline":'],
  ["deep", `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`],
  ["blank", `{${" ".repeat(400_000)}x`],
  ["wide", `[${'{"@type":"Person"},'.repeat(20_000)}1]`],
  ["strange", '{"@type":{},"headline":["x"],"datePublished":7}'],
])("structured data that is %s is ignored", async (_how, data) => {
  const page = await extract(`${json(data)}<p>text`);

  expect(page.structured).toBeUndefined();
  expect(page.text).toBe("text");
});

/** Each took seconds for 1 MB before limits were added. */
describe("a hostile page of 1 MB", () => {
  const deep = "<div>".repeat(450);

  it.each([
    ["end tags that end nothing", `<ul><li>${deep}`, "</li>"],
    ["paragraphs behind a barrier", `<p><button>${deep}`, "<p></p>"],
    ["a million headings", "", "<h1>x"],
    ["hidden words", "", "<span hidden>"],
    ["properties", "", "<b itemprop=name>x"],
    ["a tag with endless attributes", "<a ", 'b="c" '],
  ])("with %s is read quickly all the same", async (_why, before, part) => {
    const html = before + part.repeat(Math.ceil(1_000_000 / part.length));

    expect((await extract(html)).links).toEqual([]);
  });
});

describe("a moment", () => {
  it.each([
    ["2019-04-28", "2019-04-28"],
    ["2019-04-28T06:01", "2019-04-28T06:01"],
    ["2019-04-28 06:01:07", "2019-04-28T06:01:07"],
    ["2019-04-28T06:01:07.123Z", "2019-04-28T06:01:07Z"],
    ["2019-04-28T06:01:07+0530", "2019-04-28T06:01:07+05:30"],
    ["2019-04-28T06:01+02:00", "2019-04-28T06:01+02:00"],
    ["2019-04-28T06:01:07 UTC", "2019-04-28T06:01:07Z"],
    ["2019/4/8", "2019-04-08"],
    ["20190428", "2019-04-28"],
    ["20190428T060107Z", "2019-04-28T06:01:07Z"],
    ["Sun, 28 Apr 2019 06:01:07 GMT", "2019-04-28T06:01:07Z"],
    ["April 28, 2019 at 6:01 pm", "2019-04-28T18:01"],
    ["Posted on the 3rd of May 2020", "2020-05-03"],
    ["1. Dezember 2021, 09:30 Uhr", "2021-12-01T09:30"],
    ["le 1er août 2018", "2018-08-01"],
    ["5 de enero de 2020", "2020-01-05"],
    ["3 мая 2021 г.", "2021-05-03"],
    ["2020年7月3日", "2020-07-03"],
    ["28.04.2019", "2019-04-28"],
    ["1556431267", "2019-04-28T06:01:07Z"],
    ["1556431267000", "2019-04-28T06:01:07Z"],
  ])("%s is %s", (written, moment) => {
    expect(readMoment(written)).toBe(moment);
  });

  it.each([
    "",
    "yesterday",
    "2019",
    "2019-13-01",
    "2019-02-30",
    "1850-01-01",
    "version 10.2.1",
    "12 elephants 2019",
    "3".repeat(100_000),
  ])("is not found in %.30j", (written) => {
    expect(readMoment(written)).toBeNull();
  });

  it("with slashes is read in the order of the page's language", () => {
    expect(readMoment("03/04/2020", "en-US")).toBe("2020-03-04");
    expect(readMoment("03/04/2020", "en-GB")).toBe("2020-04-03");
    expect(readMoment("03/04/2020", "fr")).toBe("2020-04-03");
    expect(readMoment("28/04/2020", "en")).toBe("2020-04-28");
  });

  it("with an impossible time is a whole day", () => {
    expect(readMoment("2019-04-28T25:61:00Z")).toBe("2019-04-28");
  });
});

/** A site's statements about page uses, from its servers to the shipped result. */
import { existsSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { maySearch } from "#protocol/preferences";
import type { FetchResult } from "#protocol/result";
import { atEnd } from "../../support/at-end.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { html, type Origin, startOrigin } from "../support/origin.ts";
import { sliceRunner } from "../support/slices.ts";

const page = (head: string) =>
  `<!doctype html><html lang="en"><head><title>The heron</title><meta name="description" content="a bird">${head}</head>
<body><h1>Grey heron</h1><p>The heron stands in shallow water and waits for fish, for hours at a time, without a move of its
long neck, which is folded in flight and stretched out when it strikes.</p><a href="/next">where it nests</a></body></html>`;

interface Site {
  readonly robots?: string;
  readonly answer: (path: string, response: ServerResponse) => void;
}

async function siteOf({ robots, answer }: Site): Promise<Origin> {
  const origin = await startOrigin((request, response) => {
    if (request.url !== "/robots.txt") answer(request.url!, response);
    else response.writeHead(robots === undefined ? 404 : 200).end(robots ?? "");
  });
  return origin;
}

const crawler = (home: string = temporaryFolder("nearcrawl-preferences-")) => sliceRunner({ home });

async function crawlOne(site: Origin, path = "/") {
  const { results } = await crawler().crawl([`${site.url}${path}`]);
  return results[0]!;
}

describe("a site that states search=no", () => {
  const signal = { standard: "content-signal", uses: ["search"], answer: "denied" };

  it("in its header: the page is not indexed, and only its links are sent", async () => {
    const site = await siteOf({
      answer: (_path, response) => html(response, page(""), { "content-signal": "search=no" }),
    });

    const { page: shipped, preferences, outcome } = await crawlOne(site);

    expect(outcome.type).toBe("fetched");
    expect(preferences).toEqual([{ ...signal, place: "header", text: "search=no" }]);
    expect(shipped).toMatchObject({
      ...{ title: "", description: "", headings: [], text: "" },
      robots: { noindex: true, nofollow: false },
      links: [{ url: `${site.url}/next`, anchor: "" }],
    });
    expect(JSON.stringify(shipped)).not.toMatch(/heron|nests/i);
  });

  it("in robots.txt for a path: only that path is not indexed, also after a restart", async () => {
    const robots =
      "User-agent: *\nContent-Signal: search=yes, ai-train=no\nContent-Usage: /private/ search=n\n";
    const site = await siteOf({ robots, answer: (_path, response) => html(response, page("")) });
    const home = temporaryFolder("nearcrawl-preferences-");
    const first = sliceRunner({ home });
    const open = await first.crawl([`${site.url}/open`]);
    first.close();

    const kept = await crawler(home).crawl([`${site.url}/private/a`]);

    expect(open.results[0]!.page!.text).toContain("heron");
    expect(open.results[0]!.preferences!.map(({ answer, uses }) => [answer, ...uses])).toEqual([
      ["allowed", "search"],
      ["denied", "ai-train"],
    ]);
    expect(kept.results[0]!.preferences).toContainEqual({
      ...{ standard: "content-usage", place: "robots.txt", uses: ["search"], answer: "denied" },
      text: "/private/ search=n",
    });
    expect(kept.results[0]!.page).toMatchObject({ text: "", title: "", robots: { noindex: true } });
    expect(site.requests.filter((request) => request === "GET /robots.txt")).toHaveLength(1);
  });

  it("for a feed: its URLs are sent without titles", async () => {
    const feed = `<rss><channel><item><title>The heron</title><link>/a</link></item></channel></rss>`;
    const site = await siteOf({
      robots: "Content-Signal: search=no\n",
      answer: (_path, response) =>
        response.writeHead(200, { "content-type": "application/rss+xml" }).end(feed),
    });

    const { page: shipped, preferences } = await crawlOne(site);

    expect(shipped).toMatchObject({ kind: "feed", links: [{ url: `${site.url}/a`, anchor: "" }] });
    expect(preferences).toEqual([{ ...signal, place: "robots.txt", text: "search=no" }]);
  });

  it("in robots.txt later: an unchanged page reports the current statements", async () => {
    const site = await siteOf({
      robots: "Content-Signal: search=no\n",
      answer: (_path, response) => response.writeHead(304).end(),
    });
    const url = `${site.url}/`;

    const { results } = await crawler().crawl([url], { urls: [{ url, etag: '"1"', lastModified: null }] });

    expect(results[0]!.outcome).toEqual({ type: "unchanged", status: 304 });
    expect(maySearch(results[0]!.preferences!)).toBe(false);
  });
});

describe("a page that cannot be fetched", () => {
  const rows: readonly [robots: string, answers: string[]][] = [
    ["Content-Signal: search=no, ai-train=no\n", ["denied"]],
    ["Content-Signal: search=yes, ai-train=no\n", []],
  ];
  for (const [robots, answers] of rows)
    it(`reports ${JSON.stringify(robots)} only when that denies search, without its header`, async () => {
      const site = await siteOf({
        robots,
        answer: (_path, response) => response.writeHead(404, { "content-signal": "search=no, x=1" }).end(),
      });

      const { preferences = [], outcome } = await crawlOne(site);

      expect(outcome).toMatchObject({ type: "http-error", status: 404 });
      expect(preferences.map(({ answer, place }) => [answer, place])).toEqual(
        answers.map((answer) => [answer, "robots.txt"]),
      );
    });
});

describe("the page's own statements", () => {
  it("of metas, links and a license are sent with the header's, each with its place", async () => {
    const head = `<meta name="robots" content="noai, noimageai"><meta name="TDM-Reservation" content="1">
<meta name="tdm-policy" content="https://s.example/p"><link rel="license" type="application/rsl+xml" href="/l.xml">
<script type="application/rsl+xml"><rsl><content url="/"><license><permits type="usage">search</permits></license></content></rsl></script>`;
    const site = await siteOf({
      answer: (_path, response) =>
        response
          .writeHead(200, [
            ...["content-type", "text/html", "tdm-reservation", "0", "x-robots-tag", "noml"],
            ...["content-usage", "train-ai=n", "content-usage", "ai-use=y", "x-robots-tag", "otherbot: noai"],
            ...["link", '</l.xml>; rel="license"; type="application/rsl+xml"'],
          ])
          .end(page(head)),
    });

    const { page: shipped, preferences } = await crawlOne(site);

    expect(preferences!.map(({ standard, place, answer }) => `${standard} ${place} ${answer}`)).toEqual([
      "content-usage header denied",
      "content-usage header allowed",
      "tdm header allowed",
      "robots-words header denied",
      "rsl header licensed",
      "robots-words meta denied",
      "robots-words meta denied",
      "tdm meta licensed",
      "rsl link licensed",
      "rsl meta allowed",
    ]);
    // None of this denies search.
    expect(shipped).toMatchObject({ title: "The heron", robots: { noindex: false } });
  });

  it("prevent indexing when a license prohibits search", async () => {
    const license =
      '<script type="application/rsl+xml"><rsl><content url="/*"><license><prohibits type="usage">' +
      "search</prohibits></license></content></rsl></script>";
    const site = await siteOf({ answer: (_path, response) => html(response, page(license)) });

    const { page: shipped } = await crawlOne(site, "/a");

    expect(shipped).toMatchObject({ text: "", title: "", robots: { noindex: true } });
  });

  it("are absent with noindex alone, and link anchors stay", async () => {
    const site = await siteOf({
      answer: (_path, response) => html(response, page('<meta name="robots" content="noindex">')),
    });

    const result = await crawlOne(site);

    expect(result.preferences).toBeUndefined();
    expect(result.page).toMatchObject({
      ...{ title: "", headings: [], text: "" },
      links: [{ anchor: "where it nests" }],
    });
  });
});

describe("tdmrep.json", () => {
  const file = [
    { location: "/papers/", "tdm-reservation": 1, "tdm-policy": "https://s.example/p" },
    { location: "/open/", "tdm-reservation": 0 },
  ];
  const asked = ({ requests }: Origin) => requests.filter((one) => one.includes("/.well-known/"));

  async function siteWithFile(handle: (path: string, response: ServerResponse) => void, robots?: string) {
    return siteOf({
      ...(robots === undefined ? {} : { robots }),
      answer: (path, response) =>
        path.startsWith("/.well-known/") ? handle(path, response) : html(response, page("")),
    });
  }
  const json = (response: ServerResponse, value: unknown) =>
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
  const urlsOf = (site: Origin, ...paths: string[]) => paths.map((path) => `${site.url}${path}`);
  const tdmOf = ({ results }: { results: readonly FetchResult[] }) =>
    results.map(({ preferences = [] }) => preferences.map(({ answer, text }) => `${answer}: ${text}`));

  it("is requested once, before enough pages are fetched; its rules apply by path, also after a restart", async () => {
    const site = await siteWithFile((_path, response) => json(response, file));
    const home = temporaryFolder("nearcrawl-preferences-");
    const first = sliceRunner({ home, tdmFileFromUrls: 2 });
    const one = await first.crawl(urlsOf(site, "/papers/a"));
    const two = await first.crawl(urlsOf(site, "/papers/b", "/open/c"));
    first.close();
    const later = sliceRunner({ home, tdmFileFromUrls: 2 });

    const three = await later.crawl(urlsOf(site, "/papers/d", "/other"));

    expect(tdmOf(one)).toEqual([[]]);
    const reserved = "licensed: /papers/ tdm-reservation: 1, tdm-policy: https://s.example/p";
    expect(tdmOf(two)).toEqual([[reserved], ["allowed: /open/ tdm-reservation: 0"]]);
    expect(tdmOf(three)).toEqual([[reserved], []]);
    expect(site.requests.slice(0, 4)).toEqual([
      ...["GET /robots.txt", "GET /papers/a", "GET /.well-known/tdmrep.json", "GET /papers/b"],
    ]);
    expect(asked(site)).toHaveLength(1);
    expect(existsSync(join(home, "crawler/tdm-rules.json"))).toBe(true);
    // The file does not concern search.
    expect(two.results[0]!.page!.robots.noindex).toBe(false);
  });

  it("is not requested when robots.txt forbids it or the settings disable it", async () => {
    const closed = await siteWithFile(
      (_path, response) => json(response, file),
      "User-agent: *\nDisallow: /.well-known/\n",
    );
    const open = await siteWithFile((_path, response) => json(response, file));
    const strict = sliceRunner({ tdmFileFromUrls: 1 });
    const never = sliceRunner({ tdmFileFromUrls: 0 });
    atEnd(
      () => strict.close(),
      () => never.close(),
    );

    await strict.crawl(urlsOf(closed, "/papers/a"));
    await never.crawl(urlsOf(open, "/papers/a", "/papers/b"));

    expect([...asked(closed), ...asked(open)]).toEqual([]);
  });

  const rows: readonly [
    name: string,
    handle: (path: string, response: ServerResponse) => void,
    asked: number,
  ][] = [
    ["redirects in a circle", (path, response) => response.writeHead(302, { location: path }).end(), 4],
    [
      "a redirect to another site",
      (_path, response) => response.writeHead(302, { location: "http://127.0.0.2/.well-known/x" }).end(),
      1,
    ],
    [
      "a redirect to nowhere",
      (_path, response) => response.writeHead(302, { location: "http://[" }).end(),
      1,
    ],
    ["a failing server", (_path, response) => response.writeHead(500).end(), 1],
    ["no file", (_path, response) => response.writeHead(404).end(), 1],
    // A kept connection that the site has just closed is opened once more, as for any request.
    ["a connection that is cut", (_path, response) => response.destroy(), 2],
    ["no JSON", (_path, response) => html(response, "<p>welcome"), 1],
  ];
  for (const [name, handle, times] of rows)
    it(`${name}: nothing is reserved, there is no retry within the hour, and the pages are fetched`, async () => {
      const site = await siteWithFile(handle);
      const runner = sliceRunner({ tdmFileFromUrls: 1 });

      const crawled = await runner.crawl(urlsOf(site, "/papers/a", "/papers/b"));
      const now = vi.spyOn(Date, "now").mockReturnValue(Date.now() + 3_600_001);
      const before = asked(site).length;
      await runner.crawl(urlsOf(site, "/papers/c"));
      now.mockRestore();

      expect(crawled.results.map(({ outcome }) => outcome.type)).toEqual(["fetched", "fetched"]);
      expect(tdmOf(crawled)).toEqual([[], []]);
      expect(before).toBe(times);
      expect(asked(site)).toHaveLength(times + Number(/failing|cut/.test(name)));
    });

  it("is read up to a limit when endless, and everything is reserved", async () => {
    const site = await siteWithFile((_path, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const piece = Buffer.alloc(16 * 1024, "[");
      const go = () => {
        while (!response.destroyed && response.write(piece));
      };
      response.on("drain", go);
      go();
    });
    const runner = sliceRunner({ tdmFileFromUrls: 1 });

    const crawled = await runner.crawl(urlsOf(site, "/papers/a"));

    expect(tdmOf(crawled)).toEqual([["denied: / tdm-reservation: 1"]]);
  });
});

describe("402", () => {
  it("reports the price, and the host is crawled on at its pace", async () => {
    const site = await siteOf({
      answer: (path, response) => {
        if (path === "/open") html(response, page(""));
        else response.writeHead(402, { "crawler-price": "USD 0.01" }).end("pay");
      },
    });

    const { results, ending } = await crawler().crawl(
      ["/a", "/b", "/open"].map((path) => `${site.url}${path}`),
    );

    expect(ending).toBeNull();
    const priced = { type: "http-error", status: 402, retryAfterSeconds: null, price: "USD 0.01" };
    expect(results.map(({ outcome }) => outcome)).toEqual([
      priced,
      priced,
      expect.objectContaining({ type: "fetched" }),
    ]);
    // This is no failure of the server, so there is no back-off.
    expect(results[0]!.hostDelayMs).toBeLessThan(1000);
    expect(results[1]!.pace).toBeUndefined();
    expect(site.requests).toEqual(["GET /robots.txt", "GET /a", "GET /b", "GET /open"]);
  });
});

import { describe, expect, it } from "vitest";
import type { PageExtract } from "#protocol/result";
import { fetchOne } from "../support/fetch-one.ts";
import { html, type Origin, startOrigin } from "../support/origin.ts";
import { smallCrawl } from "../support/small-crawl.ts";

/** A crawl that reaches this many pages is endless. */
const endless = 600;

interface Site {
  readonly origin: Origin;
  /** Extracts of the fetched pages. */
  readonly pages: Map<string, PageExtract>;
}

/** Crawls from the front page like coordinator and crawler: shipped links of the host, each once. */
async function crawlSite(pageOf: (path: string, query: URLSearchParams) => string | null): Promise<Site> {
  const origin = await startOrigin((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://site.example");
    const body = pathname === "/robots.txt" ? null : pageOf(pathname, searchParams);
    if (body !== null) return html(response, body);
    response.writeHead(404, { "content-type": "text/html" });
    response.end("<h1>Not found</h1>");
  });
  const crawl = await smallCrawl({
    seed: `${origin.url}/`,
    ...{ mostResults: endless, leaseSeconds: 300 },
    admits: (url) => url.startsWith(`${origin.url}/`),
  });
  expect(crawl.endings).toEqual([]);
  const read = crawl.results.flatMap(({ url, page }) =>
    page ? [[url.slice(origin.url.length), page] as const] : [],
  );
  return { origin, pages: new Map(read) };
}

const link = (href: string) => `<a href="${href}">${href}</a> `;
const random = () => Math.random().toString(36).slice(2);
/** This many words that no other page of the test has. */
const prose = (topic: string, count = 150) =>
  `<p>${Array.from({ length: count }, (_, index) => `${topic}${(index * 7919) % 1009}`).join(" ")}`;

/** Endless sites, and how many of their pages may be requested. */
const traps: Readonly<Record<string, readonly [most: number, pageOf: Parameters<typeof crawlSite>[0]]>> = {
  "of a calendar by number with few words": [
    60,
    (_path, query) => {
      const month = Number(query.get("m") ?? 0);
      return `<p>month ${month}</p>${link(`/?m=${month + 1}`)}${link(`/?m=${month - 1}`)}`;
    },
  ],
  "of a calendar with a menu and the months' names": [
    60,
    (path) => {
      const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
      const number = Number(/-(\d+)$/.exec(path)?.[1] ?? 300);
      const menu = prose("menu", 200);
      return `<h1>${months[number % 12]} ${2000 + Math.floor(number / 12)}</h1>${menu}${link(`/plan-${number + 1}`)}${link(`/plan-${number - 1}`)}`;
    },
  ],
  "of a calendar by date with many words": [
    100,
    (path) => {
      const [, year, month] = /(\d{4})\/(\d\d)/.exec(path) ?? ["", "2026", "06"];
      const next = new Date(Date.UTC(Number(year), Number(month)));
      const following = `/calendar/${next.getUTCFullYear()}/${String(next.getUTCMonth() + 1).padStart(2, "0")}/`;
      return prose(`m${year}${month}x`) + link(following);
    },
  ],
  "of links with new sessions each time": [
    15,
    (path) => {
      const id = () =>
        `${random()}${random()}${random()}`
          .replace(/[^a-z0-9]/g, "")
          .padEnd(32, "0")
          .slice(0, 32);
      const number = /p(\d)/.exec(path)?.[1] ?? "0";
      const links = Array.from({ length: 10 }, (_, to) =>
        link(`/p${to};jsessionid=${id().toUpperCase()}?PHPSESSID=${id()}`),
      );
      return prose(`page${number}x`) + links.join("");
    },
  ],
  "of a relative link that goes deeper": [10, (path) => prose(`at${path.length}x`) + link("a/")],
  "of relative links that go deeper in any order": [
    150,
    (path) => {
      const folder = path.endsWith("/") ? "" : `${path.split("/").at(-1)}/`;
      return prose(`at${path}`) + ["news/", "about/", "shop/"].map((name) => link(folder + name)).join("");
    },
  ],
  "of pages that all say not found": [
    10,
    (path) =>
      path === "/"
        ? link("/a")
        : `<h1>Page not found</h1>${[0, 1, 2, 3, 4].map(() => link(`/${random()}`)).join("")}`,
  ],
  "of missing pages with neutral words": [
    40,
    (path) =>
      path === "/"
        ? link("/a") + link("/b")
        : `<p>Welcome to our site.</p>${[0, 1, 2, 3, 4].map(() => `<a href="/${random()}">more</a>`).join("")}`,
  ],
  "of filters in any combination": [
    450,
    (_path, query) => {
      const more = Array.from({ length: 12 }, (_, filter) => {
        const next = new URLSearchParams(query);
        next.set(`f${filter}`, "1");
        next.sort();
        return link(`/?${next}`);
      });
      return prose(`q${query}`) + more.join("");
    },
  ],
};

describe("a crawl ends", () => {
  it.each(Object.entries(traps))("%s", async (_what, [most, pageOf]) => {
    const { origin } = await crawlSite(pageOf);

    expect(origin.requests.length).toBeLessThanOrEqual(most);
  });
});

it("sessions hide no pages", async () => {
  const id = () => `${random()}${random()}${random()}`.padEnd(32, "7").slice(0, 32);

  const { pages } = await crawlSite((path) => {
    const number = /p(\d)/.exec(path)?.[1] ?? "0";
    return (
      prose(`page${number}x`) +
      Array.from({ length: 10 }, (_, to) => link(`/p${to}?PHPSESSID=${id()}`)).join("")
    );
  });

  expect([...pages.keys()].sort()).toEqual([
    "/",
    ...Array.from({ length: 10 }, (_, number) => `/p${number}`),
  ]);
});

it("an honest site is crawled completely, however deep and uniform", async () => {
  const honest = (path: string): string | null => {
    if (path === "/")
      return prose("home") + [0, 1, 2].map((shelf) => link(`/shop/en/shelf-${shelf}/page/1/`)).join("");
    const [, shelf, page] = /^\/shop\/en\/shelf-(\d)\/page\/(\d+)\/$/.exec(path) ?? [];
    if (shelf !== undefined && Number(page) <= 10) {
      const items = [0, 1, 2, 3].map((item) =>
        link(`/shop/en/item/2024/05/17/s${shelf}p${page}i${item}.html`),
      );
      return (
        prose(`list${shelf}${page}x`) +
        items.join("") +
        link(`/shop/en/shelf-${shelf}/page/${Number(page) + 1}/`)
      );
    }
    const item = /^\/shop\/en\/item\/2024\/05\/17\/(\w+)\.html$/.exec(path)?.[1];
    return item === undefined ? null : prose("menu", 40) + prose(`item${item}x`);
  };

  const { pages, origin } = await crawlSite(honest);

  expect(pages.size).toBe(1 + 30 + 120);
  expect([...pages.values()].filter((page) => page.trappedLinks !== undefined)).toEqual([]);
  expect(origin.requests.filter((request) => request.includes("no-such-page"))).toEqual([]);
});

describe("a page with doubtful wording", () => {
  const doubtful = (known: (path: string) => string | null) => (path: string) =>
    path === "/" ? prose("home") + link("/old-page") + link("/older-page") : known(path);

  it("is not found when the host answers the same for a page that cannot exist, asked once", async () => {
    const { origin, pages } = await crawlSite(doubtful(() => "<title>404</title><p>Please use the search."));

    expect(pages.get("/old-page")).toMatchObject({ softNotFound: true });
    expect(pages.get("/older-page")).toMatchObject({ softNotFound: true });
    expect(origin.requests.filter((request) => request.startsWith("GET /no-such-page-"))).toHaveLength(1);
  });

  it("is a page when the host answers properly", async () => {
    const { pages } = await crawlSite(
      doubtful((path) => (path === "/old-page" ? "<title>404</title><p>A fine car." : null)),
    );

    expect(pages.get("/old-page")?.softNotFound).toBeUndefined();
  });

  it("causes no request that robots.txt forbids", async () => {
    const origin = await startOrigin((request, response) => {
      if (request.url === "/robots.txt") {
        response.writeHead(200, { "content-type": "text/plain" });
        response.end("User-agent: *\nDisallow: /no-such\n");
      } else html(response, "<title>404</title><p>Please use the search.");
    });

    const { page } = await fetchOne({ url: `${origin.url}/old-page` });

    expect(page?.softNotFound).toBeUndefined();
    expect(origin.requests).toEqual(["GET /robots.txt", "GET /old-page"]);
  });
});

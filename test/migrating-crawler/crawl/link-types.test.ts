/** The optional link type check by HEAD: what a site sees and what is reported (Anansi, section 4.2). */
import type { IncomingMessage, ServerResponse } from "node:http";
import { expect, it } from "vitest";
import { html, type Origin, startOrigin } from "../support/origin.ts";
import { sliceRunner } from "../support/slices.ts";

interface Site extends Origin {
  readonly seen: string[];
  readonly mostAtOnce: () => number;
}

const links = ["/next", "/film", "/private/film", "/gone", "http://b.localhost:1/far", "/late"];
/** Each page has unique words, so that none resembles another. */
const pageOf = (path: string) => {
  const words = Array.from({ length: 30 }, (_, index) => `w${path.slice(1)}x${index}`).join(" ");
  return `<p>${words} ${links.map((href) => `<a href="${href}">x</a>`).join(" ")}`;
};

async function site(
  answer: (request: IncomingMessage, response: ServerResponse) => boolean = () => false,
): Promise<Site> {
  const seen: string[] = [];
  let [atOnce, mostAtOnce] = [0, 0];
  const origin = await startOrigin((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    atOnce += 1;
    mostAtOnce = Math.max(mostAtOnce, atOnce);
    response.once("finish", () => {
      atOnce -= 1;
    });
    if (answer(request, response)) return;
    if (request.url === "/robots.txt") response.end("User-agent: *\nDisallow: /private");
    else if (request.url === "/film")
      response.writeHead(200, { "content-type": "video/mp4", "content-length": "9000" }).end();
    else if (request.url === "/gone") response.writeHead(404, { "content-type": "video/mp4" }).end();
    else html(response, pageOf(request.url!));
  });
  return { ...origin, seen, mostAtOnce: () => mostAtOnce };
}

async function crawl(origin: Origin, linkTypeChecks: number | undefined, paths: readonly string[] = ["/"]) {
  const runner = sliceRunner({ politenessFloorMs: 0 });
  const urls = paths.map((path) => `http://a.localhost:${origin.port}${path}`);
  const { results } = await runner.crawl(urls, linkTypeChecks === undefined ? {} : { linkTypeChecks });
  return results.map(({ page: read }) =>
    read?.links.flatMap(({ url, contentType }) =>
      contentType ? [[new URL(url).pathname, contentType]] : [],
    ),
  );
}

it("links are checked only if the lease asks for it", async () => {
  const origin = await site();

  const [typed] = await crawl(origin, undefined);

  expect(typed).toEqual([]);
  expect(origin.seen).toEqual(["GET /robots.txt", "GET /"]);
});

it("a link that is no page is reported with its type, except on other hosts and where robots.txt forbids", async () => {
  const origin = await site();

  const [typed] = await crawl(origin, 50);

  expect(typed).toEqual([["/film", "video/mp4"]]);
  expect(origin.seen).toEqual([
    "GET /robots.txt",
    "GET /",
    "HEAD /next",
    "HEAD /film",
    "HEAD /gone",
    "HEAD /late",
  ]);
  expect(origin.mostAtOnce()).toBe(1);
});

it("a limited number of links per page is checked, none twice in a slice", async () => {
  const origin = await site();

  await crawl(origin, 2, ["/", "/other"]);

  expect(origin.seen.filter((line) => line.startsWith("HEAD"))).toEqual([
    "HEAD /next",
    "HEAD /film",
    "HEAD /gone",
  ]);
});

it("a failing site is not asked for further links, and the page is still reported", async () => {
  const origin = await site((request, response) => {
    if (request.url !== "/next") return false;
    response.writeHead(503).end();
    return true;
  });

  const [typed] = await crawl(origin, 50);

  expect(typed).toEqual([]);
  expect(origin.seen.filter((line) => line.startsWith("HEAD"))).toEqual(["HEAD /next"]);
});

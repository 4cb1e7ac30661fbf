/** Fetching and caching robots.txt. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { html, startOrigin } from "../support/origin.ts";
import { sliceRunner } from "../support/slices.ts";

let home: string;
beforeEach(() => {
  home = temporaryFolder("nearcrawl-robots-");
});

async function siteWith(robots: string, status = 200) {
  const origin = await startOrigin((request, response) => {
    if (request.url === "/robots.txt") response.writeHead(status).end(robots);
    else html(response, `<p>${request.url}`);
  });
  return origin;
}

/** Crawls with fresh memory, like a new process. */
async function crawlAnew(url: string) {
  const crawler = sliceRunner({ home });
  const { results } = await crawler.crawl([url]);
  crawler.close();
  return results[0]!;
}

describe("robots.txt over a restart", () => {
  it("is not requested again within a day, and its rules still apply", async () => {
    const robots =
      "User-agent: *\n\nDisallow: /caf\u00e9\nAllow: /x/index.html\nDisallow: /x\nCrawl-delay: 0.01";
    const site = await siteWith(robots);
    await crawlAnew(`${site.url}/open`);

    const forbidden = await crawlAnew(`${site.url}/caf%C3%A9`);
    // The host's saved pace may be lost, because its robots.txt states it too.
    rmSync(join(home, "host-paces.json"));
    const alsoForbidden = await crawlAnew(`${site.url}/x/y`);
    const allowed = await crawlAnew(`${site.url}/x/`);

    expect(forbidden.outcome).toEqual({ type: "refused-by-robots", rule: "Disallow: /caf\u00e9 (line 3)" });
    expect(alsoForbidden.outcome.type).toBe("refused-by-robots");
    expect(allowed.outcome.type).toBe("fetched");
    expect(allowed.pace).toMatchObject({ crawlDelayMs: 10 });
    expect(site.requests.filter((request) => request === "GET /robots.txt")).toHaveLength(1);
  });

  it("that was absent is not requested again", async () => {
    const site = await siteWith("", 404);

    await crawlAnew(`${site.url}/a`);
    await crawlAnew(`${site.url}/b`);

    expect(site.requests).toEqual(["GET /robots.txt", "GET /a", "GET /b"]);
  });

  it("is requested again when the saved file is invalid", async () => {
    const site = await siteWith("User-agent: *\nDisallow: /a");
    await crawlAnew(`${site.url}/open`);
    writeFileSync(join(home, "robots-rules.json"), '{"version":1,"origins":[{"origin":"x"},7],');

    const result = await crawlAnew(`${site.url}/a`);

    expect(result.outcome.type).toBe("refused-by-robots");
    expect(site.requests.filter((request) => request === "GET /robots.txt")).toHaveLength(2);
  });

  it("is requested again when an earlier release saved it without statements about uses", async () => {
    const site = await siteWith("User-agent: *\nContent-Signal: search=no");
    await crawlAnew(`${site.url}/a`);
    const file = join(home, "robots-rules.json");
    const kept = JSON.parse(readFileSync(file, "utf8"));
    for (const origin of kept.origins) delete origin.uses;
    writeFileSync(file, JSON.stringify({ ...kept, version: 1 }));

    const result = await crawlAnew(`${site.url}/b`);

    expect(result.page?.robots.noindex).toBe(true);
    expect(site.requests.filter((request) => request === "GET /robots.txt")).toHaveLength(2);
  });
});

describe("robots.txt that redirects to another host", () => {
  /** `*.localhost` is one machine, so host and path select the answer. */
  async function sitesWith(answers: Readonly<Record<string, string>>) {
    const requests: string[] = [];
    const site = await startOrigin(({ headers, url }, response) => {
      const host = headers.host!.split(":")[0];
      requests.push(`${host}${url}`);
      const answer = answers[`${host}${url}`] ?? answers[host!.replace(/^[^.]+/, "*") + url];
      if (answer?.startsWith("http"))
        return void response.writeHead(302, { location: answer.replace("PORT", `${site.port}`) }).end();
      if (answer !== undefined) return void response.writeHead(200).end(answer);
      if (url === "/robots.txt") return void response.writeHead(404).end();
      html(response, "<p>page");
    });
    const crawler = sliceRunner({ requestsPerAddress: 64, politenessFloorMs: 0 });
    const crawl = async (host: string) =>
      (await crawler.crawl([`http://${host}:${site.port}/page`])).results[0]!.outcome;
    return { requests, crawl, crawler };
  }

  it("asks the other host's rules first and obeys them", async () => {
    const { requests, crawl } = await sitesWith({
      "a.localhost/robots.txt": "http://b.localhost:PORT/admin/expensive?report=all",
      "b.localhost/robots.txt": "User-agent: *\nDisallow: /admin",
      "c.localhost/robots.txt": "http://b.localhost:PORT/rules/c",
      "b.localhost/rules/c": "User-agent: *\nDisallow: /page",
    });

    const [forbidden, followed] = [await crawl("a.localhost"), await crawl("c.localhost")];

    expect(forbidden).toMatchObject({
      code: "robots-closed",
      reason: expect.stringMatching(
        /leads to http:\/\/b\.localhost:\d+\/admin\/expensive\?report=all, which/,
      ),
    });
    expect(followed).toEqual({ type: "refused-by-robots", rule: "Disallow: /page (line 2)" });
    expect(requests).toEqual([
      ...["a.localhost/robots.txt", "b.localhost/robots.txt"],
      ...["c.localhost/robots.txt", "b.localhost/rules/c"],
    ]);
  });

  it("costs the other host one request for any number of hosts", async () => {
    const { requests, crawl } = await sitesWith({
      "*.a.localhost/robots.txt": "http://b.localhost:PORT/rules",
      "*.c.localhost/robots.txt": "http://b.localhost:PORT/robots.txt",
      "b.localhost/rules": "User-agent: *\nDisallow: /page",
    });

    const hosts = Array.from({ length: 20 }, (_, at) => `h${at}.${at < 10 ? "a" : "c"}.localhost`);
    const outcomes = await Promise.all(hosts.map(crawl));

    expect(outcomes.map(({ type }) => type)).toEqual([
      ...Array<string>(10).fill("refused-by-robots"),
      ...Array<string>(10).fill("fetched"),
    ]);
    const asked = requests.filter((request) => request.startsWith("b."));
    expect(asked.sort()).toEqual(["b.localhost/robots.txt", "b.localhost/rules"]);
  });

  it("may lead to at most 100 URLs of one host a day", async () => {
    const { requests, crawl } = await sitesWith(
      Object.fromEntries(
        Array.from({ length: 110 }, (_, at) => [
          `h${at}.a.localhost/robots.txt`,
          `http://b.localhost:PORT/search?q=${at}`,
        ]),
      ),
    );

    const outcomes: Awaited<ReturnType<typeof crawl>>[] = [];
    for (let from = 0; from < 110; from += 10) {
      const hosts = Array.from({ length: 10 }, (_, at) => `h${from + at}.a.localhost`);
      outcomes.push(...(await Promise.all(hosts.map(crawl))));
    }

    expect(requests.filter((request) => request.startsWith("b.localhost/search"))).toHaveLength(100);
    const refused = outcomes.filter(
      (one) => one.type === "failed" && /as too many others do/.test(one.reason),
    );
    expect(refused).toHaveLength(10);
  });

  it("ends after five redirects without affecting hosts on the way", async () => {
    const chain = (from: string, to: string) => [
      `${from}.localhost/robots.txt`,
      `http://${to}.localhost:PORT/robots.txt`,
    ];
    const { requests, crawl } = await sitesWith({
      ...Object.fromEntries([
        chain("a", "b"),
        chain("b", "c"),
        chain("c", "d"),
        chain("d", "e"),
        chain("e", "f"),
      ]),
      "f.localhost/robots.txt": "http://g.localhost:PORT/robots.txt",
      "g.localhost/robots.txt": "User-agent: *\nDisallow: /",
      "x.localhost/robots.txt": "http://y.localhost:PORT/loop",
      "y.localhost/robots.txt": "http://x.localhost:PORT/robots.txt",
    });

    const outcomes = [await crawl("a.localhost"), await crawl("b.localhost"), await crawl("x.localhost")];

    expect(outcomes.map(({ type }) => type)).toEqual(["fetched", "refused-by-robots", "fetched"]);
    // The page is one of them.
    expect(requests.filter((request) => /^[xy]/.test(request)).length).toBeLessThanOrEqual(12);
  });
});

/** robots.txt as it is asked for and remembered. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { html, startOrigin } from "../support/origin.ts";
import { sliceRunner } from "../support/slices.ts";

const cleanups: (() => unknown)[] = [];
let home: string;
beforeEach(() => {
  home = temporaryFolder("nearcrawl-robots-");
  cleanups.push(() => rmSync(home, { recursive: true, force: true }));
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function siteWith(robots: string, status = 200) {
  const origin = await startOrigin((request, response) => {
    if (request.url === "/robots.txt") response.writeHead(status).end(robots);
    else html(response, `<p>${request.url}`);
  });
  cleanups.push(() => origin.close());
  return origin;
}

/** Crawls with a process of its own, as far as memory goes. */
async function crawlAnew(url: string) {
  const crawler = sliceRunner({ home });
  const { results } = await crawler.crawl([url]);
  crawler.close();
  return results[0]!;
}

describe("robots.txt over a restart", () => {
  it("is not asked for again within its day, and its rules hold as before", async () => {
    const robots =
      "User-agent: *\n\nDisallow: /caf\u00e9\nAllow: /x/index.html\nDisallow: /x\nCrawl-delay: 0.01";
    const site = await siteWith(robots);
    await crawlAnew(`${site.url}/open`);

    const forbidden = await crawlAnew(`${site.url}/caf%C3%A9`);
    // What is known of the host's pace may be lost; its robots.txt says it, too.
    rmSync(join(home, "host-paces.json"));
    const alsoForbidden = await crawlAnew(`${site.url}/x/y`);
    const allowed = await crawlAnew(`${site.url}/x/`);

    expect(forbidden.outcome).toEqual({ type: "refused-by-robots", rule: "Disallow: /caf\u00e9 (line 3)" });
    expect(alsoForbidden.outcome.type).toBe("refused-by-robots");
    expect(allowed.outcome.type).toBe("fetched");
    expect(allowed.pace).toMatchObject({ crawlDelayMs: 10 });
    expect(site.requests.filter((request) => request === "GET /robots.txt")).toHaveLength(1);
  });

  it("that was absent is not asked for again either", async () => {
    const site = await siteWith("", 404);

    await crawlAnew(`${site.url}/a`);
    await crawlAnew(`${site.url}/b`);

    expect(site.requests).toEqual(["GET /robots.txt", "GET /a", "GET /b"]);
  });

  it("is asked for anew where the file on disk is not ours", async () => {
    const site = await siteWith("User-agent: *\nDisallow: /a");
    await crawlAnew(`${site.url}/open`);
    writeFileSync(join(home, "robots-rules.json"), '{"version":1,"origins":[{"origin":"x"},7],');

    const result = await crawlAnew(`${site.url}/a`);

    expect(result.outcome.type).toBe("refused-by-robots");
    expect(site.requests.filter((request) => request === "GET /robots.txt")).toHaveLength(2);
  });

  it("is asked for anew where an earlier release kept its rules, which did not hear what it states of uses", async () => {
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

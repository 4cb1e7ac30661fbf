/** `nearcrawl fetch`, `robots` and `extract`: a site on loopback, exit codes; what is read from a pipe in a process of its own. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { extractCommand } from "#ops/cli/commands/extract";
import { fetchCommand } from "#ops/cli/commands/fetch";
import { robotsCommand } from "#ops/cli/commands/robots";
import { html, type Origin, startOrigin } from "../../migrating-crawler/support/origin.ts";
import { nearcrawl } from "../../support/built-command.ts";
import { inProcess } from "../../support/command-in-process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const folder = temporaryFolder("nearcrawl-page-commands-");
const prose =
  "The ferry leaves the harbour every morning, and comes back in the evening with the day's fish.";
const page = `<html lang="en"><title>Harbour news</title><p>${prose}<a href="/boats">boats</a>`;
const rules =
  "User-agent: *\nDisallow: /private\nAllow: /private/open\nCrawl-delay: 0.1\nSitemap: /map.xml\n";

let site: Origin;
beforeAll(async () => {
  site = await startOrigin((request, response) => {
    if (request.url === "/robots.txt") response.end(rules);
    else if (request.url === "/old") response.writeHead(301, { location: "/new" }).end();
    else if (request.url === "/round") response.writeHead(302, { location: "/round" }).end();
    else if (request.url === "/inside") response.writeHead(302, { location: "http://10.0.0.1/" }).end();
    else if (request.url === "/unsearched") html(response, page, { "content-signal": "search=no" });
    else if (request.url === "/paid") response.writeHead(402, { "crawler-price": "USD 0.01" }).end();
    else if (request.url === "/gone") response.writeHead(410).end("gone");
    else html(response, page);
  });
});
afterAll(async () => {
  await site.close();
  rmSync(folder, { recursive: true, force: true });
});

const commands = { extract: extractCommand, fetch: fetchCommand, robots: robotsCommand };
const inHand = ([name, ...args]: readonly [keyof typeof commands, ...string[]]) =>
  inProcess(commands[name](), args);

const ours = ["--allow-range", "127.0.0.0/8"];

describe("nearcrawl fetch", { timeout: 120_000 }, () => {
  it("prints the hops of a redirect with what robots.txt says, the timings, the page and what would be shipped", async () => {
    const { code, out } = await inHand(["fetch", `${site.url}/old`, ...ours]);

    expect(code).toBe(0);
    expect(out).toMatch(/\/old\n +robots +allowed, Crawl-delay 0.1 s, 1 sitemap/);
    expect(out).toContain(`outcome   301, redirected to ${site.url}/new`);
    expect(out).toMatch(/\/new\n.*\n +address +127\.0\.0\.1, HTTP\/1\.1, without TLS/);
    expect(out).toMatch(/time +connect .* ms, first byte .* ms, request .* ms/);
    expect(out).toMatch(/title +Harbour news/);
    expect(out).toMatch(/would ship \d+ bytes/);
  });

  it("and its sisters take a URL without its user and password", async () => {
    const url = `${site.url.replace("//", "//user:secret@")}/new`;
    const file = join(folder, "harbour.html");
    writeFileSync(file, page);

    const answers = await Promise.all([
      inHand(["fetch", url, ...ours, "--json"]),
      inHand(["robots", url, ...ours, "--json"]),
      inHand(["extract", url, ...ours, "--json"]),
      inHand(["extract", file, "--url", url, "--json"]),
    ]);

    expect(answers.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    for (const { out } of answers) expect(out).not.toContain("secret");
  });

  it("gives programs the results as they would be shipped", async () => {
    const { code, out } = await inHand(["fetch", `${site.url}/new`, ...ours, "--json"]);

    const answer = JSON.parse(out);
    expect(code).toBe(0);
    expect(answer.hops).toHaveLength(1);
    expect(answer.hops[0].result.page.links).toEqual([
      { url: `${site.url}/boats`, anchor: "boats", nofollow: false },
    ]);
    expect(answer.shipped.shippedBytes).toBeGreaterThan(100);
  });

  it("does not request what robots.txt forbids, and names the line", async () => {
    const { code, out } = await inHand(["fetch", `${site.url}/private/x`, ...ours]);

    expect(code).toBe(1);
    expect(out).toContain("FORBIDDEN by Disallow: /private (line 2)");
    expect(site.requests).not.toContain("GET /private/x");
  });

  it("prints the site's statements on a page's uses, and ships no text that may not be searched", async () => {
    const fetched = await inHand(["fetch", `${site.url}/unsearched`, ...ours]);
    const extracted = await inHand(["extract", `${site.url}/unsearched`, ...ours]);
    const file = join(folder, "unsearched.html");
    writeFileSync(file, `<meta name="robots" content="noindex, noai">${page}`);
    const ofFile = await inHand(["extract", file, "--json"]);
    const paid = await inHand(["fetch", `${site.url}/paid`, ...ours]);

    const words = "Content-Signal in a header: search=no (search denied)\n";
    expect(fetched.out).toContain(`states    ${words}`);
    expect(fetched.out).toContain("for us    search: denied (the page is not indexed");
    expect(extracted.out).toContain(`states      ${words}`);
    for (const { out } of [fetched, extracted, ofFile]) expect(out).not.toContain("Harbour");
    expect(JSON.parse(ofFile.out)).toMatchObject({
      stated: [{ standard: "robots-words", text: "noai" }],
      page: { title: "", links: [{ anchor: "boats" }] },
    });
    expect(paid.out).toMatch(/price +USD 0\.01 for the page/);
  });

  it("contacts no private address, also after a redirect", async () => {
    const first = await inHand(["fetch", `${site.url}/new`]);
    const second = await inHand(["fetch", `${site.url}/inside`, ...ours]);

    expect(first.code).toBe(1);
    expect(first.out).toContain("not contacted: 127.0.0.1 is");
    expect(second.code).toBe(1);
    expect(second.out).toContain("not contacted: 10.0.0.1 is");
  });

  it("ends a loop of redirects, and names it", async () => {
    const { code, out } = await inHand(["fetch", `${site.url}/round`, ...ours]);

    expect(code).toBe(1);
    expect(out).toContain("failed (redirect-loop, blame: target)");
  });

  it("obeys the settings file of the crawler's host", async () => {
    const file = join(folder, "crawler.json");
    writeFileSync(file, JSON.stringify({ name: "athens", denyDomains: ["localhost"], resolvers: [] }));

    const { code, out } = await inHand([
      "fetch",
      `http://localhost:${site.port}/`,
      "--config",
      file,
      ...ours,
    ]);

    expect(code).toBe(1);
    expect(out).toContain("the partner's deny-list holds localhost");
  });

  it("reports a wrong URL or setting, with exit code 2", async () => {
    const url = await inHand(["fetch", "ftp://site.example/"]);
    const range = await inHand(["fetch", site.url, "--allow-range", "everything"]);

    expect(url).toMatchObject({ code: 2, err: expect.stringContaining("must be an http(s) URL") });
    expect(range).toMatchObject({ code: 2, err: expect.stringContaining("allowRanges.0") });
  });
});

describe("nearcrawl robots", { timeout: 120_000 }, () => {
  it("judges paths by a file, with the deciding line", async () => {
    const file = join(folder, "robots.txt");
    writeFileSync(file, rules);

    const { code, out } = await inHand(["robots", file, "--path", "/private/x", "/private/open/y", "/"]);

    expect(code).toBe(0);
    expect(out).toMatch(/FORBIDDEN \/private\/x +by Disallow: \/private \(line 2\)/);
    expect(out).toMatch(/allowed +\/private\/open\/y +by Allow: \/private\/open \(line 3\)/);
    expect(out).toMatch(/allowed +\/$/m);
  });

  it("judges for other agents", async () => {
    const file = join(folder, "robots-of-foo.txt");
    writeFileSync(file, "User-agent: FooBot\nDisallow: /\n");

    const foo = await inHand(["robots", file, "--agent", "FooBot", "--json"]);
    const other = await inHand(["robots", file, "--json"]);
    const whole = await inHand(["robots", file, "--agent", "FooBot/1.2 (+https://foo.example)", "--json"]);

    expect(JSON.parse(foo.out)).toMatchObject({
      agent: "foobot",
      verdicts: [{ path: "/", allowed: false, line: 2 }],
    });
    expect(whole.out).toBe(foo.out);
    writeFileSync(file, `User-agent: FooBot\nCrawl-delay: 1\nUser-agent: Nearcrawl\nDisallow: /\n`);
    const twoMinds = await inHand(["robots", file, "--agent", "FooBot"]);
    expect(twoMinds.out).toContain("FORBIDDEN /  by Disallow: / (line 4)  (robots-parser allows it)");
    expect(JSON.parse(other.out)).toMatchObject({
      agent: "nearcrawl",
      group: [],
      verdicts: [{ allowed: true }],
    });
  });

  it("prints what the file states of each path's uses, with the line, and what that comes to for us", async () => {
    const file = join(folder, "robots-uses.txt");
    writeFileSync(
      file,
      "User-agent: *\nDisallow: /no\nContent-Signal: search=yes, ai-train=no\nContent-Usage: /a search=n\n",
    );

    const { code, out } = await inHand(["robots", file, "--path", "/a", "/b", "/no"]);
    const json = JSON.parse((await inHand(["robots", file, "--path", "/a", "/no", "--json"])).out);

    expect(code).toBe(0);
    expect(out).toContain(`allowed   /a
  states   Content-Signal in robots.txt: search=yes, ai-train=no (search allowed, ai-train denied), line 3
  states   Content-Usage in robots.txt: /a search=n (search denied), line 4
  for us   search: denied; ai-train: denied (the page is not indexed; its links are followed)
allowed   /b
`);
    expect(out).toContain("  for us   search: allowed; ai-train: denied\n");
    expect(out).toMatch(/FORBIDDEN \/no {2}by .*\n?$/);
    expect(json.verdicts).toMatchObject([
      { search: "denied", uses: { search: "denied", "ai-train": "denied" }, stated: { length: 3 } },
      { search: "not stated", uses: {}, stated: [] },
    ]);
  });

  it("fetches it as the crawler does, and judges the URL that was given", async () => {
    const { code, out } = await inHand(["robots", `${site.url}/private/x?y`, ...ours, "--json"]);

    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      crawlDelaySeconds: 0.1,
      sitemaps: [`${site.url}/map.xml`],
      verdicts: [{ path: "/private/x?y", allowed: false, line: 2 }],
    });
  });

  it("forbids everything with exit code 1 without an answer", async () => {
    const { code, out } = await inHand(["robots", "http://10.0.0.1/"]);

    expect(code).toBe(1);
    expect(out).toContain("robots.txt could not be had, which forbids everything");
    expect(out).toContain("FORBIDDEN /");
  });
});

describe("nearcrawl extract", { timeout: 120_000 }, () => {
  it("reads a file as if it came from its URL", async () => {
    const file = join(folder, "page.html");
    writeFileSync(file, page);

    const from = ["--url", "https://harbour.example/news/"];
    const { code, out } = await inHand(["extract", file, ...from]);
    const same = await inHand(["extract", file, ...from, "--second-opinion"]);
    writeFileSync(file, `${page}<textarea><a href=/x>x</a></textarea>`);
    const other = await inHand(["extract", file, ...from, "--second-opinion"]);

    expect(code).toBe(0);
    expect(out).toMatch(/title +Harbour news/);
    expect(out).toMatch(/declared language +en/);
    expect(out).toContain("https://harbour.example/boats");
    expect(same.out).toContain("both parsers find the same links");
    expect(other.out).toContain("only theirs  https://harbour.example/x");
  });

  it("reads standard input, and gives programs everything", async () => {
    const { code, out } = await nearcrawl(["extract", "-", "--json"], { input: page });

    expect(code).toBe(0);
    expect(JSON.parse(out).page.text).toMatch(/harbour/i);
  });

  it("reads a page of the web, or reports why there is none", async () => {
    const there = await inHand(["extract", `${site.url}/new`, ...ours]);
    const gone = await inHand(["extract", `${site.url}/gone`, ...ours]);

    expect(there).toMatchObject({ code: 0, out: expect.stringContaining("Harbour news") });
    expect(gone).toMatchObject({ code: 1, err: expect.stringContaining("gives no page: 410") });
  });

  it("names the file that cannot be read, with exit code 2", async () => {
    const { code, err } = await inHand(["extract", join(folder, "absent.html")]);

    expect(code).toBe(2);
    expect(err).toContain("absent.html");
  });
});

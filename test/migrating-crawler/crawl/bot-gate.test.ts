/** What the crawler reports and avoids at a site behind a bot gate, and what is not a gate. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { gateInBody } from "#crawler/fetch/bot-gate";
import { sharedData } from "../../support/shared-data.ts";
import { challenges, type GatedSite, shell, startGatedSite } from "../support/gated-site.ts";
import { type SliceRunner, sliceRunner } from "../support/slices.ts";

async function siteAndCrawler(): Promise<{ site: GatedSite; crawler: SliceRunner }> {
  const site = await startGatedSite();
  const crawler = sliceRunner();
  return { site, crawler };
}

const isPage = (path: string) => path !== "/robots.txt";
const askedPages = (site: GatedSite) => site.requests.filter((line) => line !== "GET /robots.txt");

describe("a page behind a bot gate", () => {
  for (const [name, answer] of Object.entries(challenges))
    it(`is a challenge of ${name}`, async () => {
      const { site, crawler } = await siteAndCrawler();
      site.gate = (path) => (isPage(path) ? answer : null);

      const { results, ending } = await crawler.crawl([`${site.url}/p1`, `${site.url}/p2`]);

      const provider = name.split(",")[0];
      expect(results).toHaveLength(1);
      expect(results[0]).toMatchObject({
        outcome: {
          ...{ type: "failed", blame: "target", code: "challenged" },
          challenge: { provider, of: "page", status: answer.status },
        },
        ...{ page: null, etag: null, lastModified: null },
      });
      expect(ending).toMatch(/^the host is left alone: a bot gate/);
      expect(askedPages(site)).toEqual(["GET /p1"]);
    });

  it("is recognised by its shape when the index has another body and a page that cannot exist looks the same", async () => {
    const { site, crawler } = await siteAndCrawler();
    site.gate = (path) => (isPage(path) ? { status: 200, body: shell() } : null);
    const url = `${site.url}/p1`;
    const digest = "0".repeat(64);

    const fresh = await crawler.crawl([url]);
    const known = await crawler.crawl([url], { urls: [{ url, etag: null, lastModified: null, digest }] });

    expect(fresh.results[0]!.outcome.type).toBe("fetched");
    expect(known.results[0]!.outcome).toMatchObject({
      code: "challenged",
      challenge: { provider: "unknown" },
    });
  });

  it("does not end the slice when other pages of the host arrive", async () => {
    const { site, crawler } = await siteAndCrawler();
    site.gate = (path) => (path === "/p2" ? challenges.cloudflare : null);

    const { results, ending } = await crawler.crawl(["/p1", "/p2", "/p3"].map((path) => site.url + path));

    expect(results.map(({ outcome }) => outcome.type)).toEqual(["fetched", "failed", "fetched"]);
    expect(ending).toBeNull();
  });

  it("ends the slice after one more when the gate appears in between", async () => {
    const { site, crawler } = await siteAndCrawler();
    site.gate = (path) => (isPage(path) && path !== "/p1" ? challenges.anubis : null);

    const { results } = await crawler.crawl(["/p1", "/p2", "/p3", "/p4"].map((path) => site.url + path));

    expect(results.map(({ outcome }) => outcome.type)).toEqual(["fetched", "failed", "failed"]);
  });

  it("does not affect the host's pace", async () => {
    const { site, crawler } = await siteAndCrawler();
    site.gate = (path) => (isPage(path) ? challenges["cloudflare, as it was with 503"] : null);
    const host = "127.0.0.1";

    await crawler.crawl([`${site.url}/p1`]);

    expect(crawler.tools.gates.report(host)).toBeNull();
  });
});

describe("robots.txt behind a bot gate", () => {
  for (const [name, answer] of Object.entries(challenges))
    it(`is unreachable, and nothing is fetched: ${name}`, async () => {
      const { site, crawler } = await siteAndCrawler();
      site.gate = (path) => (isPage(path) ? null : answer);

      const { results, ending } = await crawler.crawl([`${site.url}/p1`, `${site.url}/secret/p2`]);

      expect(results).toHaveLength(1);
      expect(results[0]).toMatchObject({
        outcome: { code: "challenged", challenge: { provider: name.split(",")[0], of: "robots" } },
        robots: { state: "unreachable" },
      });
      expect(ending).toMatch(/^robots.txt cannot be had/);
      expect(askedPages(site)).toEqual([]);
    });

  it("is unreachable by its shape: a script without words", async () => {
    const { site, crawler } = await siteAndCrawler();
    site.gate = (path) => (isPage(path) ? null : { status: 200, body: shell() });

    const { results } = await crawler.crawl([`${site.url}/p1`]);

    expect(results[0]!.outcome).toMatchObject({ code: "challenged", challenge: { provider: "unknown" } });
    expect(askedPages(site)).toEqual([]);
  });

  it("keeps applying as cached", async () => {
    const { site, crawler } = await siteAndCrawler();
    await crawler.crawl([`${site.url}/p1`]);
    site.gate = (path) => (isPage(path) ? null : challenges.cloudflare);

    const { results } = await crawler.crawl([`${site.url}/p2`, `${site.url}/secret/p3`]);

    expect(results.map(({ outcome }) => outcome.type)).toEqual(["fetched", "refused-by-robots"]);
  });
});

const filled = (body: string) =>
  `<!doctype html><html lang="en"><head><title>Ferries</title></head><body>${body}</body></html>`;
const links = Array.from({ length: 12 }, (_, n) => `<a href="/p${n}">Ferry ${n}</a>`).join(" ");
const article =
  "The gate asks every visitor to prove to be a person before it lets them read the page. ".repeat(30);

/** Answers that only mention a gate, have one in a form, or are short for other reasons. */
const ownAnswers: Readonly<Record<string, string | readonly [body: string, status: number]>> = {
  "a comment form with Turnstile": filled(
    `${links}<form><textarea name="comment"></textarea><div class="cf-turnstile"></div></form><script ` +
      'src="https://challenges.cloudflare.com/turnstile/v0/api.js"></script>',
  ),
  "a sign-up form with reCAPTCHA and few words": filled(
    '<h1>Sign up</h1><p>Please prove you are human.</p><form><input type="email"><div class="g-recaptcha">' +
      '</div></form><script src="https://www.google.com/recaptcha/api.js"></script>',
  ),
  "an article about Cloudflare's challenge, with its code": filled(
    `<h1>Are you human?</h1><p>${article}</p><pre>&lt;script>window._cf_chl_opt={}&lt;/script> id="anubis_version"</pre>`,
  ),
  "a short note that quotes a mark": filled(
    '<h1>How to tell Anubis</h1><p>Look for id="anubis_version" or /.within.website/x/ in the source.</p>',
  ),
  "Cloudflare's detection script on a page of few words": filled(
    "<h1>Ferries</h1><p>None today.</p><script>window.__CF$cv$params={r:'1'};</script><script " +
      'src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>',
  ),
  "an application behind Imperva":
    '<html><head><title>Ferries</title></head><body><div id="root"></div><script src="/_Incapsula_Resource?SWJIYLWA=1"></script></body></html>',
  "an application that calls AWS WAF itself":
    '<html><title>Ferries</title><div id="app"></div><script src="https://a.edge.sdk.awswaf.com/1/2/challenge.js"></script></html>',
  "a real 403": [
    filled("<h1>403 Forbidden</h1><p>You do not have permission to access this resource.</p>"),
    403,
  ],
  "a block page": [
    "<html><head><title>Access Denied</title></head><body><h1>Access Denied</h1>Reference #18.2d351ab8</body></html>",
    403,
  ],
  "a real 429": [
    filled("<h1>Too many requests</h1><p>Please wait a moment.</p><script>count()</script>"),
    429,
  ],
  maintenance: [
    filled('<h1>Back soon</h1><p>We are checking our servers.</p><meta http-equiv="refresh" content="60">'),
    503,
  ],
  "a login wall":
    `<html><head><title>Log in</title><meta name="robots" content="noindex"></head><body><p>I'm not a ` +
    'robot</p><form><input type="text"><input type="password"></form><script>a()</script></body></html>',
  "a wall of cookies": filled(
    "<h1>Your privacy</h1><p>We and our partners store cookies on your device.</p><button>Accept</button><script>document.cookie='consent=1'</script>",
  ),
  "a frame for another site":
    '<html><head><title>ferry.example</title></head><frameset><frame src="https://ferry.example.net/"></frameset></html>',
  "a page that says not found with a script":
    '<html><head><title>404 Not Found</title><meta name="robots" content="noindex"></head><body><script>count()</script></body></html>',
  "a choice of language stored in a cookie":
    '<html><body><script>document.cookie="l=en";location.href="/en/"</script></body></html>',
};

describe("what is not a gate", () => {
  for (const [name, answer] of Object.entries(ownAnswers))
    it(name, () => {
      const [body, status] = typeof answer === "string" ? [answer, 200] : answer;
      const { provider } = gateInBody(Buffer.from(body), { status, headers: {} });

      expect(provider).toBeNull();
    });

  it("a robots.txt that is a start page, an error or empty forbids nothing", () => {
    const start = filled(`<div id="root"></div><script src="/app.js"></script>${links}`);
    const none: readonly (readonly [string, number])[] = [
      [start, 200],
      ['<html><title>App</title><div id="root"></div><script src="/main.1.js"></script></html>', 200],
      ["", 200],
      [filled("<h1>Not found</h1><script>count()</script>"), 200],
      [filled("<h1>403 Forbidden</h1>"), 403],
    ];

    const found = none.map(
      ([body, status]) => gateInBody(Buffer.from(body), { status, headers: {} }, "robots").provider,
    );

    expect(found).toEqual(none.map(() => null));
  });

  const manifest = sharedData("suites/pages/manifest.json");
  it.skipIf(manifest === null)("253 of 254 real pages; one is an archived challenge of Imperva", () => {
    const real = JSON.parse(readFileSync(manifest!, "utf8")) as { name: string; file: string }[];

    const found = real.flatMap(({ name, file }) =>
      [200, 403, 503].flatMap((status) => {
        const bytes = readFileSync(sharedData(`suites/pages/${file}`)!);
        const { provider } = gateInBody(bytes, { status, headers: {} });
        return provider === null ? [] : [`${provider} ${name}`];
      }),
    );

    expect(real).toHaveLength(254);
    expect([...new Set(found)]).toEqual(["imperva htmldate/1566929327"]);
  });
});

describe("a page drawn by scripts", () => {
  const app = '<!doctype html><title>App</title><div id="root"></div><script src="/app.js"></script>';

  it("is a page, marked as empty without scripts, under each URL", async () => {
    const { site, crawler } = await siteAndCrawler();
    site.gate = (path) => (isPage(path) ? { status: 200, body: app } : null);

    const { results, ending } = await crawler.crawl(["/p1", "/p2", "/p3"].map((path) => site.url + path));

    expect(ending).toBeNull();
    for (const { outcome, page } of results) {
      expect(outcome.type).toBe("fetched");
      expect(page).toMatchObject({ title: "App", needsScripts: true });
      expect(page!.softNotFound).toBeUndefined();
    }
  });

  const empty = {
    "an element to draw into": app,
    "a message for visitors without scripts":
      "<html><body><noscript>Please enable JavaScript.</noscript><script>a()</script></body></html>",
    "an application of Flutter":
      '<html><body><script src="flutter_bootstrap.js" async></script></body></html>',
  };
  const full = {
    "an element that was drawn on the server": `<div id="root"><h1>Ferries</h1><p>${article}</p></div><script src="/app.js"></script>`,
    "a picture and a counter":
      '<html><body><img src="/a.jpg" alt="Ferry"><script>count()</script></body></html>',
    "a page with hardly a word and no script": '<html><body><div id="root">Soon.</div></body></html>',
    "a counting script on a page with one word": "<html><body>Soon.<script>count()</script></body></html>",
    "a login":
      '<html><body><div id="app"><form><input type="password"></form></div><script>a()</script></body></html>',
  };
  it.each([
    ...Object.entries(empty).map((row) => [...row, true] as const),
    ...Object.entries(full).map((row) => [...row, false] as const),
  ])("with %s is marked or not", (_words, body, isMarked) => {
    const { needsScripts, provider } = gateInBody(Buffer.from(body), { status: 200, headers: {} });

    expect({ needsScripts, provider }).toEqual({ needsScripts: isMarked, provider: null });
  });
});

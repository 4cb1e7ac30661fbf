/** What a site sees of the crawler: simultaneous requests and the pauses between them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { extractPage, type FetchedBody } from "#crawler/extract/extract-page";
import { makeGate } from "../../support/gate.ts";
import { html, type Origin, startOrigin, startRawOrigin } from "../support/origin.ts";
import { type SliceRunner, sliceRunner } from "../support/slices.ts";

const runner = (changes: Parameters<typeof sliceRunner>[0] = {}): SliceRunner => sliceRunner(changes);

interface Seen {
  readonly host: string;
  readonly path: string;
  readonly beganMs: number;
  endedMs: number;
}

/** Records when each request began and ended, and how many were open. */
async function watchedSite(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Origin & { readonly seen: Seen[]; readonly mostAtOnce: () => number }> {
  const seen: Seen[] = [];
  let atOnce = 0;
  let mostAtOnce = 0;
  const origin = await startOrigin((request, response) => {
    const [host] = (request.headers.host ?? "").split(":");
    const one = { host: host!, path: request.url!, beganMs: Date.now(), endedMs: 0 };
    seen.push(one);
    atOnce += 1;
    mostAtOnce = Math.max(mostAtOnce, atOnce);
    response.once("finish", () => {
      one.endedMs = Date.now();
      atOnce -= 1;
    });
    answer(request, response);
  });
  return { ...origin, seen, mostAtOnce: () => mostAtOnce };
}

/** Each page has unique words, so that none resembles another. */
const pageOf = ({ url, headers }: IncomingMessage) =>
  `<p>${Array.from({ length: 30 }, (_, index) => `w${headers.host!.length}${url!.slice(1)}x${index}`).join(" ")}`;

const afterAWhile = (request: IncomingMessage, response: ServerResponse) => {
  if (request.url === "/robots.txt") return void response.writeHead(404).end();
  setTimeout(() => html(response, pageOf(request)), 20);
};

const urlsOf = (origin: Origin, host: string, ...paths: string[]) =>
  paths.map((path) => `http://${host}:${origin.port}${path}`);

const gapsBetween = (seen: readonly Seen[]) =>
  seen.slice(1).map((one, index) => one.beganMs - seen[index]!.endedMs);

describe("one host", () => {
  it("gets one request at a time with the minimum pause in between, including robots.txt", async () => {
    const site = await watchedSite(afterAWhile);
    const crawler = runner({ politenessFloorMs: 100 });

    const { results } = await crawler.crawl(urlsOf(site, "a.localhost", "/a", "/b", "/c"));

    expect(results.map(({ outcome }) => outcome.type)).toEqual(["fetched", "fetched", "fetched"]);
    expect(site.mostAtOnce()).toBe(1);
    expect(site.seen.map(({ path }) => path)).toEqual(["/robots.txt", "/a", "/b", "/c"]);
    // Rounding may lose a millisecond of each clock reading.
    expect(Math.min(...gapsBetween(site.seen))).toBeGreaterThanOrEqual(98);
  });

  it("gets its Crawl-delay from the request for robots.txt on", async () => {
    const site = await watchedSite((request, response) => {
      if (request.url === "/robots.txt") return void response.end("User-agent: *\nCrawl-delay: 0.2");
      html(response, pageOf(request));
    });
    const crawler = runner();

    await crawler.crawl(urlsOf(site, "a.localhost", "/a", "/b"));

    expect(Math.min(...gapsBetween(site.seen))).toBeGreaterThanOrEqual(198);
  });

  it("has no delay for what its robots.txt forbids", async () => {
    const site = await watchedSite(
      (_request, response) => void response.end("User-agent: *\nDisallow: /\nSitemap: /s.xml"),
    );
    const crawler = runner({ politenessFloorMs: 3_600_000 });

    const { results, ending } = await crawler.crawl(urlsOf(site, "a.localhost", "/a", "/b", "/c"));

    expect(ending).toBeNull();
    expect(results.map(({ outcome }) => outcome.type)).toEqual(Array(3).fill("refused-by-robots"));
    expect(results.map(({ robots }) => robots)).toEqual([
      { state: "rules", crawlDelaySeconds: null, sitemaps: [`${new URL(results[0]!.url).origin}/s.xml`] },
      undefined,
      undefined,
    ]);
    expect(site.requests).toEqual(["GET /robots.txt"]);
  });

  it("that asks for a longer pause than the lease ends the slice", async () => {
    const site = await watchedSite((request, response) => {
      if (request.url === "/robots.txt") return void response.writeHead(404).end();
      response.writeHead(429, { "retry-after": "3600" }).end();
    });
    const crawler = runner();

    const { results, ending } = await crawler.crawl(urlsOf(site, "a.localhost", "/a", "/b"));

    expect(results).toHaveLength(1);
    expect(results[0]!.hostDelayMs).toBeGreaterThan(3_599_000);
    expect(results[0]!.pace).toMatchObject({ backOffMs: 60_000 });
    expect(ending).toBe("the lease ends before the host may be asked again");
    expect(site.requests).toEqual(["GET /robots.txt", "GET /a"]);
  });

  it("gets no request before the wait in the lease", async () => {
    const site = await watchedSite(afterAWhile);
    const crawler = runner();

    const later = await crawler.crawl(urlsOf(site, "a.localhost", "/a"), { waitMs: 400_000 });
    const startedMs = Date.now();
    await crawler.crawl(urlsOf(site, "b.localhost", "/a"), { waitMs: 150 });

    expect(later).toEqual({ results: [], ending: "the lease ends before the host may be asked again" });
    expect(site.seen[0]!.beganMs - startedMs).toBeGreaterThanOrEqual(149);
  });

  it("continues another crawler's back-off", async () => {
    const site = await watchedSite((request, response) => {
      response.writeHead(request.url === "/robots.txt" ? 404 : 503).end();
    });
    const crawler = runner();
    const pace = { crawlDelayMs: 0, backOffMs: 240_000, backedOffMsAgo: 250_000, usualMs: 0 };

    const { results } = await crawler.crawl(urlsOf(site, "a.localhost", "/a"), { pace });

    expect(results[0]!.hostDelayMs).toBeGreaterThanOrEqual(479_000);
    expect(results[0]!.pace).toMatchObject({ backOffMs: 480_000 });
  });
});

it("a host that another one's robots.txt redirects to gets its own turn", async () => {
  let redirected = () => {};
  const site = await watchedSite((request, response) => {
    if (request.headers.host!.startsWith("a.") && request.url === "/robots.txt") {
      response.writeHead(302, { location: `http://b.localhost:${site.port}/rules` }).end();
      return redirected();
    }
    if (request.url !== "/x") return void response.end("");
    // Answers well after the other slice wants its rules from this host.
    redirected = () => setTimeout(() => html(response, pageOf(request)), 100);
    other = crawler.crawl(urlsOf(site, "a.localhost", "/y"));
  });
  const crawler = runner({ requestsPerAddress: 8 });
  let other: Promise<unknown> = Promise.resolve();

  await crawler.crawl(urlsOf(site, "b.localhost", "/x"));
  await other;

  const [page] = site.seen.filter(({ path }) => path === "/x");
  const [rules] = site.seen.filter(({ path }) => path === "/rules");
  expect(rules!.beganMs).toBeGreaterThanOrEqual(page!.endedMs);
});

describe("hosts on one address", () => {
  it("share its turn, and the address rests in between", async () => {
    const site = await watchedSite(afterAWhile);
    const crawler = runner({ politenessFloorMs: 100 });
    const hosts = ["a.localhost", "b.localhost", "c.localhost", "127.0.0.1"];

    await Promise.all(hosts.map((host) => crawler.crawl(urlsOf(site, host, "/x", "/y"))));

    expect(site.seen).toHaveLength(hosts.length * 3);
    expect(site.mostAtOnce()).toBe(1);
    expect(Math.min(...gapsBetween(site.seen))).toBeGreaterThanOrEqual(23);
  });

  it("get as many simultaneous requests as the partner allows", async () => {
    const held: (() => void)[] = [];
    const site = await watchedSite((request, response) => {
      if (request.url === "/robots.txt") return void response.writeHead(404).end();
      held.push(() => html(response, pageOf(request)));
      if (held.length === 2) for (const answer of held.splice(0)) answer();
    });
    const crawler = runner({ requestsPerAddress: 2 });

    const slices = await Promise.all(
      ["a.localhost", "b.localhost"].map((host) => crawler.crawl(urlsOf(site, host, "/x"))),
    );

    expect(slices.map(({ results }) => results[0]!.outcome.type)).toEqual(["fetched", "fetched"]);
    expect(site.mostAtOnce()).toBe(2);
  });

  it("do not wait for the extraction of each other's pages", async () => {
    const site = await watchedSite(afterAWhile);
    const crawler = runner();
    const arrived = makeGate();
    const goOn = makeGate();
    const extract = async (body: FetchedBody) => {
      arrived.open();
      await goOn.opened;
      return await extractPage(body);
    };

    const first = crawler.crawl(urlsOf(site, "a.localhost", "/x"), {}, { extract });
    await arrived.opened;
    // Ends before the first one's request would count as endless.
    const second = await crawler.crawl(urlsOf(site, "b.localhost", "/y"), { expiresInSeconds: 9 });
    goOn.open();

    expect(second.results.map(({ outcome }) => outcome.type)).toEqual(["fetched"]);
    expect((await first).results.map(({ outcome }) => outcome.type)).toEqual(["fetched"]);
  });
});

describe("a host that does not answer", () => {
  const impatient = { timeouts: { connectMs: 200, firstByteMs: 200, idleMs: 200, totalMs: 1000 } };

  it("ends its slice after an unreachable robots.txt, and rests", async () => {
    const site = await startRawOrigin(() => {});
    const crawler = runner(impatient);

    const { results, ending } = await crawler.crawl(["/a", "/b", "/c"].map((path) => site.url + path));

    expect(results).toHaveLength(1);
    expect(results[0]).toMatchObject({
      outcome: { type: "failed", code: "first-byte-timeout" },
      robots: { state: "unreachable", crawlDelaySeconds: null, sitemaps: [] },
    });
    expect(results[0]!.hostDelayMs).toBeGreaterThan(50_000);
    expect(ending).toContain("robots.txt cannot be had, so nothing of the host is fetched for now");
  });

  it("twice in a row ends its slice, and rests", async () => {
    const site = await watchedSite((request, response) => {
      if (request.url === "/robots.txt") response.writeHead(404).end();
      else request.socket.destroy();
    });
    const crawler = runner(impatient);

    const { results, ending } = await crawler.crawl(urlsOf(site, "127.0.0.1", "/a", "/b", "/c"));

    expect(results.map(({ outcome }) => outcome.type)).toEqual(["failed", "failed"]);
    expect(results[1]!.hostDelayMs).toBeGreaterThanOrEqual(59_000);
    expect(ending).toContain("the host did not answer 2 times in a row");
  });

  it("because its name or address is refused gives each URL that outcome at once", async () => {
    const crawler = runner({ allowRanges: [], politenessFloorMs: 3_600_000 });

    const { results, ending } = await crawler.crawl(["http://127.0.0.1:1/a", "http://127.0.0.1:1/b"]);

    expect(ending).toBeNull();
    expect(results.map(({ outcome }) => outcome.type)).toEqual(["refused-address", "refused-address"]);
    expect(results.map(({ hostDelayMs }) => hostDelayMs)).toEqual([0, 0]);
  });
});

/** RFC 9309 section 2.3.1.4 */
it("a robots.txt answered with 5xx closes the host after one result", async () => {
  const site = await watchedSite(
    (_request, response) => void response.writeHead(500, { "retry-after": "600" }).end(),
  );
  const crawler = runner();

  const { results, ending } = await crawler.crawl(urlsOf(site, "a.localhost", "/a", "/b"));

  const closed = { outcome: { code: "robots-closed" }, robots: { state: "closed" } };
  expect(results).toMatchObject([{ ...closed, pace: { backOffMs: 60_000 } }]);
  expect(results[0]!.hostDelayMs).toBeGreaterThan(590_000);
  expect(ending).toContain("robots.txt was answered with 500, which forbids everything");
  expect(site.requests).toEqual(["GET /robots.txt"]);
});

/** Search and the facts of a page over HTTP: filters, reasons, lists, and what must not be shown. */
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeApi } from "#coordinator/open-api";
import { urlKeyOf } from "#core/url-key";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { addLinks } from "../support/links.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { levelEngine } from "../support/search-engine.ts";
import { seedHost, seedPage, seedUrl, seedWorld } from "../support/seed-world.ts";
import { webServer } from "../support/web-server.ts";

const database = await forThisFile(testDatabase());
let app: FastifyInstance;
const harbour = "https://www.example.org/harbour";
const old = "https://old.example.org/";

beforeAll(async () => {
  const { pool } = database;
  await seedWorld(pool);
  await seedUrl(pool, { url: harbour });
  await seedPage(pool, {
    url: harbour,
    title: "The harbour",
    text: "The ferry leaves the harbour at seven.",
  });
  await seedPage(pool, { url: old, title: "Old port", text: "An older harbour.", crawler: "berlin" });
  await seedPage(pool, { url: "https://www.example.org/hidden", title: "Harbour", text: "x", noindex: true });
  await pool.query("update page set published_at = '2026-01-15T08:00:00Z' where url = $1", [old]);
  for (let at = 0; at < 30; at++) await link(harbour, `https://elsewhere.example.net/${at}`, `Link ${at}`);
  await link(harbour, old, "<b>the old port</b>");
  await link(old, harbour, "the new one");
  await link("https://www.example.org/hidden", harbour, "from a hidden page");
  app = webServer(database);
});
afterAll(async () => await app?.close());

async function link(from: string, to: string, anchor: string): Promise<void> {
  const [a, b] = [from, to].map((url) => urlKeyOf(url));
  if (typeof a !== "object" || typeof b !== "object") throw new Error(`${from}, ${to}`);
  await addLinks(database.pool, [{ from: a, to: b, anchor }]);
}

const { schemas } = describeApi().components as { schemas: Record<string, JsonSchema> };
const get = async (path: string) => await app.inject(path);
const urls = async (query: string) =>
  (await get(`/api/search?q=harbour&${query}`)).json().pages.map(({ url }: { url: string }) => url);

describe("filters of the search", () => {
  it("are a host with all below it, the country of its address, its crawler, and days", async () => {
    expect(await urls("host=example.org")).toEqual([harbour, old]);
    expect(await urls("host=old.example.org")).toEqual([old]);
    expect(await urls("host=xample.org")).toEqual([]);
    expect((await urls("country=gr")).sort()).toEqual([old, harbour]);
    expect(await urls("country=DE")).toEqual([]);
    expect(await urls("crawler=berlin")).toEqual([old]);
    expect(await urls("to=2026-01-15")).toEqual([old]);
    expect(await urls("from=2026-01-16")).toEqual([harbour]);
    expect(await urls("from=2026-01-15&to=2026-01-15&language=en&crawler=berlin")).toEqual([old]);
  });

  it("are excluded hosts, words in the title and the type, as parameters and among the words", async () => {
    await database.pool.query("update page set content_type = 'text/plain' where url = $1", [old]);
    await levelEngine(database.pool);
    const typed = async (words: string) =>
      (await get(`/api/search?q=${encodeURIComponent(words)}`))
        .json()
        .pages.map((page: { url: string }) => page.url);

    expect(await urls("excludeHost=old.example.org")).toEqual([harbour]);
    expect(await urls("excludeHost=example.org,example.net")).toEqual([]);
    expect(await urls("excludeHost=xample.org")).toEqual([harbour, old]);
    expect(await urls("title=harbour")).toEqual([harbour]);
    expect(await urls("title=ports")).toEqual([old]);
    expect(await urls("type=text")).toEqual([old]);
    expect(await urls("type=html")).toEqual([harbour]);
    for (const [words, found] of [
      ["harbour -site:old.example.org", [harbour]],
      ["harbour site:old.example.org", [old]],
      ["harbour before:2026-01-16", [old]],
      ["harbour after:2026-01-16", [harbour]],
      ["title:port", [old]],
      ["harbour type:text", [old]],
      ["harbour crawler:berlin lang:en country:GR", [old]],
    ] as const)
      expect([words, await typed(words)]).toEqual([words, found]);
    expect((await get("/api/search?q=harbour%20after:never")).statusCode).toBe(400);
  });

  it("among the words become chips, and the other words remain", async () => {
    const page = (await get("/search?q=harbour+site:example.org+-site:a.example+-site:b.example")).body;

    expect(page).toContain('value="harbour"');
    expect(page).toContain("Host: <strong><bdi>example.org</bdi></strong>");
    expect(page).toContain('href="/search?q=harbour&amp;host=example.org&amp;excludeHost=b.example"');
    expect(page).toContain('href="/search?q=harbour&amp;excludeHost=a.example%2Cb.example"');
  });

  it("have counts by value, over the matches looked at", async () => {
    const { facets } = (await get("/api/search?q=harbour")).json();

    expect(facets).toEqual({
      language: [{ value: "en", pages: 2 }],
      country: [{ value: "GR", pages: 2 }],
      crawler: [
        { value: "athens", pages: 1 },
        { value: "berlin", pages: 1 },
      ],
      host: [
        { value: "old.example.org", pages: 1 },
        { value: "www.example.org", pages: 1 },
      ],
      preference: [],
      pages: 2,
    });
  });

  it("that are invalid are refused with the reason", async () => {
    const answers = await Promise.all(
      ["country=Greece", "from=yesterday", "from=2026-13-01", "host=a/b", "sort=size", "language=en-GB"].map(
        async (query) => await get(`/api/search?q=harbour&${query}`),
      ),
    );

    expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(6).fill(400));
    expect(answers[0]?.json().error.message).toBe(
      "The filter country Greece: must be a code of two letters, such as DE.",
    );
  });

  it("offer wider searches where nothing is found", async () => {
    const page = await get("/search?q=harbour&country=DE&language=en");

    expect(page.body).toContain("without “Country: Germany”");
    expect(page.body).toContain('href="/search?q=harbour&amp;language=en"');
  });
});

describe("the order", () => {
  it("can be newest first", async () => {
    expect(await urls("sort=date")).toEqual([harbour, old]);
    await database.pool.query("update page set published_at = '2026-04-01T00:00:00Z' where url = $1", [old]);
    await levelEngine(database.pool);

    expect(await urls("sort=date&limit=5&from=2026-01-01")).toEqual([old, harbour]);
    await database.pool.query("update page set published_at = '2026-01-15T08:00:00Z' where url = $1", [old]);
    await levelEngine(database.pool);
  });

  it("is explained in points and words on demand, and the points make the rank", async () => {
    const answer = (await get("/api/search?q=harbour&explain=1")).json();

    const [first] = answer.pages;
    const sum = first.reasons.reduce((total: number, { points }: { points: number }) => total + points, 0);
    expect(first.reasons.map(({ part }: { part: string }) => part)).toEqual(["words", "links"]);
    expect(sum).toBeCloseTo(first.rank, 0);
    expect(faultsOf(answer, { $ref: "#/components/schemas/SearchAnswer" }, schemas)).toEqual([]);
    expect((await get("/search?q=harbour&explain=1")).body).toContain("fit the words best");
  });
});

describe("the facts of a page", () => {
  it("include what was fetched by whom, as the API describes it", async () => {
    const answer = (await get(`/api/pages?url=${encodeURIComponent(harbour)}`)).json();

    expect(faultsOf(answer, { $ref: "#/components/schemas/PageAnswer" }, schemas)).toEqual([]);
    expect(answer.page).toMatchObject({ title: "The harbour", crawler: "athens", country: "GR", words: 100 });
    expect(answer.page.fetches.items).toMatchObject([{ crawler: "athens", status: 200, totalMs: 40 }]);
  });

  it("list links one part at a time, and none from a page that must not be shown", async () => {
    const path = `/api/pages?url=${encodeURIComponent(harbour)}`;
    const [first, second] = await Promise.all([get(path), get(`${path}&out=25`)]);

    const [start, rest] = [first.json().page.outLinks, second.json().page.outLinks];
    const all = [...start.items, ...rest.items];
    expect([start.total, start.items.length, rest.items.length]).toEqual([31, 25, 6]);
    expect(new Set(all.map(({ anchor }) => anchor)).size).toBe(31);
    expect(all.find(({ state }) => state === "indexed")).toMatchObject({ url: old });
    expect(all.filter(({ state }) => state === "unknown").length).toBe(30);
    expect(first.json().page.inLinks.items).toEqual([
      { url: old, title: "Old port", anchor: "the new one", nofollow: false },
    ]);
  });

  it("can be looked up by hashes", async () => {
    const key = urlKeyOf(harbour);
    if (typeof key === "string") throw new Error(key);

    const answer = await get(`/api/pages?host_hash=${key.hostHash}&url_hash=${key.urlHash}`);

    expect(answer.json().asked).toBe(harbour);
    expect((await get("/api/pages?host_hash=99999999999999999999&url_hash=1")).statusCode).toBe(400);
    expect((await get("/api/pages?url=ftp://www.example.org/")).json().error.message).toContain("not-http");
  });

  it("escape markup on their page", async () => {
    const page = await get(`/pages?url=${encodeURIComponent(harbour)}`);

    expect(page.statusCode).toBe(200);
    expect(page.body).toContain("Links to this page");
    expect(page.body).toContain("&lt;b&gt;the old port&lt;/b&gt;");
  });

  it("are not shown for pages that ask not to be indexed, of sites that opted out, or that do not exist", async () => {
    await seedHost(database.pool, { host: "gone.example.org" });
    await seedPage(database.pool, { url: "https://gone.example.org/", title: "Secret", text: "secret" });
    await database.pool.query(`
      insert into opt_out (site, source, token, created_at, in_force_at)
      values ('gone.example.org', 'operator', 't', now(), now())`);
    await database.pool.query(
      "update frontier_host set opt_out_id = (select max(opt_out_id) from opt_out) where host = 'gone.example.org'",
    );

    const answers = await Promise.all(
      ["www.example.org/hidden", "gone.example.org", "nobody.example.com", "empty.example.net"].map(
        async (url) => await get(`/api/pages?url=${url}`),
      ),
    );

    expect(answers.map(({ statusCode }) => statusCode)).toEqual([404, 404, 404, 404]);
    expect(answers.map((answer) => answer.json().page)).toEqual([null, null, null, null]);
    expect(answers.map((answer) => answer.json().words)).toEqual([
      "This page asks not to be indexed (noindex), so nothing of it is shown.",
      "An opt-out covers it, so nothing of it is shown.",
      "The index has no page at this address, and the crawl does not know it.",
      "This address is known and was not fetched yet.",
    ]);
  });
});

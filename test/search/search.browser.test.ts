/** Search and the page about a page in a real browser: by keyboard, narrow and wide, light and dark, accessible. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { urlKeyOf } from "#core/url-key";
import type { Database } from "#db/server-database";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite, looksRight } from "../support/browser-page.ts";
import { testDatabase } from "../support/database.ts";
import { addLinks } from "../support/links.ts";
import { seedPage, seedUrl, seedWorld } from "../support/seed-world.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();
const harbour = "https://www.example.org/islands/harbour/timetable";
const views = {
  start: "/search",
  results: "/search?q=harbour&explain=1&language=en",
  nothing: "/search?q=hrabour&country=DE",
  page: `/pages?url=${encodeURIComponent(harbour)}`,
  "page-start": "/pages",
  "no-page": "/pages?url=https://nobody.example.com/",
} as const;

describe.skipIf(executable === null)("search in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let site: BrowserSite;

  beforeAll(async () => {
    database = await testDatabase();
    await seedWorld(database.pool);
    await seedHarbour(database);
    site = await browserSite(webServer(database), executable!);
  });
  afterAll(async () => {
    await site?.close();
    await database?.close();
  });

  it("every view fits desktop and phone, and axe finds nothing serious, in light and dark", async () => {
    await site.withPage({ bypassCSP: true }, async (page) => {
      for (const [name, path] of Object.entries(views)) {
        await page.goto(path);

        await looksRight(page, `search-${name}`);
      }
    });
  });

  it("is searched, narrowed and widened by keyboard without scripts", async () => {
    await site.withPage({ javaScriptEnabled: false }, async (page) => {
      await page.goto("/search");
      await page.locator("#q").focus();
      await page.keyboard.type("harbour");
      await page.keyboard.press("Enter");
      await page.waitForURL("**/search?q=harbour");
      const all = await page.locator(".results > li").count();

      await page.locator(".facet a", { hasText: "berlin" }).press("Enter");
      await page.waitForURL("**crawler=berlin**");
      const some = await page.locator(".results > li").count();
      await page.getByRole("link", { name: "remove this filter" }).press("Enter");
      await page.waitForURL("**/search?q=harbour");

      expect([all, some]).toEqual([6, 1]);
    });
  });

  it("leads from a slip to the right word, and from a result to its page and its links", async () => {
    await site.withPage({}, async (page) => {
      await page.goto("/search?q=hrabour");
      await page.locator(".did-you-mean a").click();
      await page.waitForURL("**/search?q=harbour");
      await page.getByRole("link", { name: "facts and links" }).first().click();
      await page.waitForURL("**/pages?url=**");

      expect(await page.locator("h1").textContent()).toBe("Harbour timetable");
      await page.locator("section#in").getByRole("link", { name: "Old port" }).click();
      expect(await page.locator("h1").textContent()).toBe("Old port");
    });
  });
});

/** A page with everything, five others that match, and links between them. */
async function seedHarbour({ pool }: Database): Promise<void> {
  const text =
    "The ferry leaves the harbour every morning at seven and reaches the islands before noon. Tickets are sold at the " +
    "quay; dogs travel free, bicycles cost extra. When the wind blows the ferry stays in the harbour until it calms " +
    "down again.";
  await seedUrl(pool, { url: harbour });
  await seedPage(pool, { url: harbour, title: "Harbour timetable", text });
  await pool.query(
    `with described as (
       update document
       set description = 'Ferries from the old harbour to the islands.',
         headings = '[{"level":1,"text":"Harbour timetable"},{"level":2,"text":"Mornings"},{"level":2,"text":"Tickets"}]',
         structured = '{"type":"Article","name":"Timetable","description":""}'
       where (host_hash, url_hash) = (select host_hash, url_hash from page where url = $1)
     )
     update page set published_at = '2026-02-20T08:00:00Z' where url = $1`,
    [harbour],
  );
  await seedPage(pool, {
    url: "https://old.example.org/",
    title: "Old port",
    text: "A harbour as it was.",
    crawler: "berlin",
  });
  const titles = ["Walks by the harbour", "Harbour master", "Where to eat", "Weather for sailors"];
  for (const [at, title] of titles.entries()) {
    await seedPage(pool, {
      url: `https://www.example.org/guide/${at}`,
      title,
      text: `${title}. From the harbour it is a short way.`,
    });
    if (at > 0) await seedUrl(pool, { url: `https://www.example.org/guide/${at}` });
    await link(pool, `https://www.example.org/guide/${at}`, harbour, title);
    await link(pool, harbour, `https://www.example.org/guide/${at}`, title);
  }
  await link(pool, "https://old.example.org/", harbour, "the timetable");
  await link(pool, harbour, "https://elsewhere.example.net/", "elsewhere");
}

async function link(pool: Database["pool"], from: string, to: string, anchor: string): Promise<void> {
  const [a, b] = [urlKeyOf(from), urlKeyOf(to)];
  if (typeof a === "string" || typeof b === "string") throw new Error(`${from}, ${to}`);
  await addLinks(pool, [{ from: a, to: b, anchor }]);
}

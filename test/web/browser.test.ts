/**
 * The pages in a real browser, over real sockets and a real database. NEARCRAWL_SCREENSHOTS names a folder
 * for pictures of every page; look at them after a change of the looks.
 */
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "#db/connect";
import { browserPath, startBrowser } from "../support/browser.ts";
import { testDatabase } from "../support/database.ts";
import { seedPage, seedUrl, seedWorld } from "../support/seed-world.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();
const screenshots = process.env.NEARCRAWL_SCREENSHOTS ?? null;

const pages = {
  overview: "/",
  "who-start": "/who",
  "who-url": "/who?q=https://www.example.org/",
  "who-range": "/who?q=1.2.0.0/16",
  "who-organisation": "/who?q=ORG-EX1-AP",
  "who-unknown": "/who?q=Exampel+Netwroks",
  crawler: "/crawlers/berlin",
  search: "/search?q=ferry",
  about: "/about-crawler",
  missing: "/no-such-page",
} as const;

describe.skipIf(executable === null)("in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let app: FastifyInstance;
  let browser: Browser;
  let base: string;

  beforeAll(async () => {
    database = await testDatabase();
    await seedWorld(database.pool);
    const url = `https://www.example.org/${"a-very-long-path/".repeat(20)}`;
    await seedUrl(database.pool, { url });
    await seedPage(database.pool, {
      url,
      title: "<script>document.title = 'taken over'</script>",
      text: "The ferry <b>leaves</b>.",
    });
    app = webServer(database);
    await app.listen({ host: "127.0.0.1", port: 0 });
    base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
    browser = await startBrowser(executable!);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
    await database?.close();
  });

  async function withPage(
    options: BrowserContextOptions,
    look: (page: Page, faults: string[]) => Promise<void>,
  ) {
    const context = await browser.newContext({ baseURL: base, ...options });
    const page = await context.newPage();
    const faults: string[] = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !message.text().includes("404")) faults.push(message.text());
    });
    await look(page, faults);
    await context.close();
  }

  const views = [
    { width: 1400, colorScheme: "light" },
    { width: 1400, colorScheme: "dark" },
    { width: 400, colorScheme: "light" },
    { width: 400, colorScheme: "dark" },
  ] as const;

  it.each(views)(
    "every page fits $width pixels in $colorScheme, without a fault",
    async ({ width, colorScheme }) => {
      await withPage({ viewport: { width, height: 900 }, colorScheme }, async (page, faults) => {
        for (const [name, path] of Object.entries(pages)) {
          await page.goto(path);
          const tooWide = await page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth",
          );
          if (screenshots)
            await page.screenshot({
              path: join(screenshots, `${name}-${width}-${colorScheme}.png`),
              fullPage: true,
            });

          expect([name, tooWide]).toEqual([name, 0]);
          expect(await page.locator("h1").count()).toBe(1);
        }
        expect(faults).toEqual([]);
      });
    },
  );

  it("a question typed on the overview is answered, by keyboard alone", async () => {
    await withPage({}, async (page) => {
      await page.goto("/");
      await page.getByLabel("Who crawls it, and why?").focus();
      await page.keyboard.type("1.2.4.4");
      await page.keyboard.press("Enter");

      await page.waitForURL("**/who?q=1.2.4.4");
      expect((await page.locator(".answer").textContent())?.trim()).toBe("athens crawls this");
      expect(await page.locator(".probe-chosen .value").textContent()).toContain("12.5 ms");
    });
  });

  it("hostile titles stay text and run nothing", async () => {
    await withPage({}, async (page, faults) => {
      await page.goto("/search?q=ferry");

      expect(await page.title()).toBe("ferry · Search · Nearcrawl");
      expect(await page.locator(".results h2").first().textContent()).toContain("<script>");
      expect(faults).toEqual([]);
    });
  });

  it("the overview is live: what changes in the database appears without a reload", async () => {
    await withPage({}, async (page, faults) => {
      await page.goto("/");
      await page.locator("#live[data-state=on]").waitFor();
      await database.pool.query("update crawler set state = 'draining' where name = 'tokyo'");

      await page.locator(".state-draining").waitFor();
      expect(faults).toEqual([]);
    });
  });

  it("times are shown in the reader's zone", async () => {
    await withPage({ timezoneId: "Asia/Tokyo", locale: "en-GB" }, async (page) => {
      await page.goto("/who?q=1.2.4.4");

      const since = page.locator("time[datetime='2026-03-01T11:10:01.000Z']").first();
      expect(await since.textContent()).toContain("20:10:01");
      expect(await since.getAttribute("title")).toBe("2026-03-01 11:10:01 UTC");
    });
  });

  it("without JavaScript everything is there", async () => {
    await withPage({ javaScriptEnabled: false }, async (page) => {
      await page.goto("/");
      expect(await page.locator("tbody tr").count()).toBeGreaterThanOrEqual(3);
      expect(await page.locator("#live").isVisible()).toBe(false);

      await page.goto("/who?q=1.2.4.4");
      expect(await page.locator("time").first().textContent()).toBe("2026-03-01 11:10:01 UTC");
    });
  });
});

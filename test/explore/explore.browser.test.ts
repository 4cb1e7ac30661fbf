/** The explorer in a real browser: with scripts and without, and accessible. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { readState } from "#coordinator/load-state";
import { explorePart } from "#coordinator/tell/explore/start";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite, looksRight } from "../support/browser-page.ts";
import { testDatabase } from "../support/database.ts";
import { seedWorld } from "../support/seed-world.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();

const pages = {
  "explore-map": "/explore",
  "explore-block": "/explore?at=1.0.0.0/8",
  "explore-countries": "/explore?view=countries",
  "explore-tree": "/explore?view=tree&at=1.2.0.0/16",
  "explore-list": "/explore?view=list",
  "explore-empty": "/explore?country=ZZ",
} as const;

describe.skipIf(executable === null)("the explorer in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let site: BrowserSite;

  beforeAll(async () => {
    database = await testDatabase();
    await seedWorld(database.pool);
    const part = explorePart({
      patientPool: database.pool,
      pool: database.pool,
      state: await readState(database),
      config: { recrawl: { intervalHours: 24 } as never },
      log: silentLog,
    });
    site = await browserSite(webServer(database, { parts: [part] }), executable!);
  });
  afterEach(() => expect(site.takeFaults()).toEqual([]));
  afterAll(async () => {
    await site?.close();
    await database?.close();
  });

  it("every view fits desktop and phone, and axe finds nothing serious, in light and dark", async () => {
    await site.withPage({ bypassCSP: true }, async (page) => {
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(path, { waitUntil: "networkidle" });

        await looksRight(page, name);
      }
    });
  });

  it("without scripts a block of the map opens and shows who crawls what in it", async () => {
    await site.withPage({ javaScriptEnabled: false }, async (page) => {
      await page.goto("/explore");
      await page.locator(".space-map a", { hasText: "0.0.0.0/4" }).first().click();
      await page.locator(".space-map a[href*='0.0.0.0%2F8']").first().click();
      expect(await page.locator("h1").textContent()).toBe("Explore 0.0.0.0/8");
      await page.goto("/explore?at=1.0.0.0/8");
      expect(await page.locator(".map-key").textContent()).toMatch(
        /athens.*berlin.*registered, not crawled/s,
      );

      await page.goto("/explore?view=tree&at=1.0.0.0/8");
      const row = page.locator("tbody tr", { hasText: "1.2.0.0/16" });
      expect(await row.locator(".share-bar title").textContent()).toBe("athens: 3; berlin: 1");
    });
  });

  it("a country leads to its subnets at 400 px", async () => {
    await site.withPage({ viewport: { width: 400, height: 800 } }, async (page) => {
      await page.goto("/explore?view=countries");
      expect(await page.locator("tr", { hasText: "Greece" }).first().textContent()).toContain(
        "under 30 samples",
      );
      await page.getByRole("link", { name: "Greece", exact: true }).click();

      expect(await page.locator("tbody th").first().textContent()).toContain("1.2.0.0/16");
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(400);
    });
  });

  it("a waiting subnet is found by the link from other pages", async () => {
    await site.withPage({}, async (page) => {
      await page.goto("/explore?state=waiting");

      expect(await page.locator("tbody th").allTextContents()).toEqual([
        expect.stringContaining("1.2.3.0/24"),
        expect.stringContaining("5.6.0.0/16"),
      ]);
    });
  });
});

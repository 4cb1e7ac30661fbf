/**
 * The explorer in a real browser: with scripts and without, by keyboard, and for people who see little.
 */
import { setTimeout } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { explorePart } from "#coordinator/explore/start";
import { readState } from "#coordinator/load-state";
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
  "explore-rtt": "/explore?at=1.0.0.0/8&colour=rtt",
  "explore-ipv6": "/explore?at=ipv6",
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
    const { pool } = database;
    const part = explorePart({
      database,
      pool,
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

  it("every view fits a desk and a telephone, and axe finds nothing serious, in light and dark", async () => {
    await site.withPage({ bypassCSP: true }, async (page) => {
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(path, { waitUntil: "networkidle" });

        await looksRight(page, name);
      }
    });
  });

  it("without scripts the map is a picture whose blocks are links, down to a subnet in the tree", async () => {
    await site.withPage({ javaScriptEnabled: false }, async (page) => {
      await page.goto("/explore");
      await page.locator(".map-links a", { hasText: "0.0.0.0/4" }).first().click();
      await page.locator(".map-links a[href*='1.0.0.0']").first().click();
      expect(await page.locator("h1").textContent()).toBe("Explore 1.0.0.0/8");
      expect(
        await page.locator(".map-tile").evaluate((image: { naturalWidth: number }) => image.naturalWidth),
      ).toBe(256);

      await page.getByRole("link", { name: "Tree" }).click();
      await page.locator("tbody").getByRole("link", { name: "1.2.0.0/16" }).click();
      expect(await page.locator("h2").first().textContent()).toBe("1.2.0.0/16");
      expect(await page.locator(".way").textContent()).toContain("athens");
    });
  });

  it("with scripts the map is zoomed by keyboard, and the figures and the address follow, on slow lines too", async () => {
    await site.withPage({}, async (page) => {
      await page.route("**/api/explore/point*", async (route) => {
        await setTimeout(600);
        await route.continue().catch(() => "it was asked anew");
      });
      await page.goto("/explore", { waitUntil: "networkidle" });
      await page.locator("#explore-map canvas").focus();
      await page.keyboard.press("+");
      await page.keyboard.press("+");

      await page.waitForURL(/at=[\d.]+%2F4/);
      await page.waitForFunction("document.querySelector('h1').textContent.endsWith('/4')");
      await page.locator(".map-read strong").waitFor();
    });
  });

  it("a waiting subnet is found by the link that others point here with", async () => {
    await site.withPage({}, async (page) => {
      await page.goto("/explore?state=waiting");

      expect(await page.locator("tbody th").allTextContents()).toEqual([
        expect.stringContaining("1.2.3.0/24"),
        expect.stringContaining("5.6.0.0/16"),
      ]);
    });
  });
});

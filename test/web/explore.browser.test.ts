/**
 * The explorer in a real browser: with scripts and without, by keyboard, and for people who see little. Pictures of
 * it go to the folder that NEARCRAWL_SCREENSHOTS names.
 */
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { explorePart } from "#coordinator/explore-part";
import { silentLog } from "#coordinator/log";
import { readState } from "#coordinator/read-state";
import type { Database } from "#db/connect";
import { browserPath, startBrowser } from "../support/browser.ts";
import { testDatabase } from "../support/database.ts";
import { seedWorld } from "../support/seed-world.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();
const screenshots = process.env.NEARCRAWL_SCREENSHOTS ?? null;

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
  let app: FastifyInstance;
  let browser: Browser;
  let base: string;

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
    app = webServer(database, { parts: [part] });
    await app.listen({ host: "127.0.0.1", port: 0 });
    base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
    browser = await startBrowser(executable!);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
    await database?.close();
  });

  async function withPage(options: BrowserContextOptions, look: (page: Page) => Promise<void>) {
    const context = await browser.newContext({ baseURL: base, bypassCSP: true, ...options });
    const page = await context.newPage();
    const faults: string[] = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error") faults.push(message.text());
    });
    await look(page);
    await context.close();
    expect(faults).toEqual([]);
  }

  it.each([
    { width: 1400, colorScheme: "light" },
    { width: 400, colorScheme: "dark" },
  ] as const)(
    "every view fits $width pixels, and axe finds nothing serious in $colorScheme",
    async (look) => {
      const viewport = { width: look.width, height: 900 };
      await withPage({ viewport, colorScheme: look.colorScheme }, async (page) => {
        for (const [name, path] of Object.entries(pages)) {
          await page.goto(path, { waitUntil: "networkidle" });
          if (screenshots)
            await page.screenshot({
              path: join(screenshots, `${name}-${look.width}-${look.colorScheme}.png`),
              fullPage: true,
            });

          expect([name, await tooWide(page), await seriousFaults(page)]).toEqual([name, 0, []]);
        }
      });
    },
  );

  it("without scripts the map is a picture whose blocks are links, down to a subnet in the tree", async () => {
    await withPage({ javaScriptEnabled: false }, async (page) => {
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

  it("with scripts the map is zoomed by keyboard, and the figures and the address follow", async () => {
    await withPage({}, async (page) => {
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
    await withPage({}, async (page) => {
      await page.goto("/explore?state=waiting");

      expect(await page.locator("tbody th").allTextContents()).toEqual([
        expect.stringContaining("1.2.3.0/24"),
        expect.stringContaining("5.6.0.0/16"),
      ]);
    });
  });
});

async function tooWide(page: Page): Promise<unknown> {
  return await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
}

async function seriousFaults(page: Page): Promise<unknown> {
  await page.addScriptTag({ path: "node_modules/axe-core/axe.min.js" });
  return await page.evaluate(`axe.run().then(({ violations }) => violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).slice(0, 3).join(" ")))`);
}

/**
 * The explorer in a real browser: with scripts and without, by keyboard, and for people who see little.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { OccupiedAnswer } from "#coordinator/explore/answer";
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
  "explore-map": "/explore?pick=1.2.3.4",
  "explore-countries": "/explore/map?country=GR",
  "explore-whole": "/explore?layout=whole&at=1.0.0.0/8&colour=rtt",
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

  it("every view fits a desk and a telephone, and axe finds nothing serious, in light and dark", async () => {
    await site.withPage({ bypassCSP: true }, async (page) => {
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(path, { waitUntil: "networkidle" });

        await looksRight(page, name);
      }
    });
  });

  it("without scripts a subnet of the map opens its panel, and the whole space its blocks", async () => {
    await site.withPage({ javaScriptEnabled: false }, async (page) => {
      await page.goto("/explore");
      await page.locator(".treemap a[data-range='1.2.3.0/24']").click();
      expect(await page.locator(".pick h2").textContent()).toBe("1.2.3.0/24");
      expect(await page.locator(".pick").textContent()).toMatch(/Example Web Ltd.*apnic.*athens.*12\.5 ms/s);

      await page.goto("/explore?layout=whole");
      await page.locator(".map-links a", { hasText: "0.0.0.0/4" }).first().click();
      await page.locator(".map-links a[href*='1.0.0.0']").first().click();
      expect(await page.locator("h1").textContent()).toBe("Explore 1.0.0.0/8");
      expect(
        await page.locator(".map-tile").evaluate((image: { naturalWidth: number }) => image.naturalWidth),
      ).toBe(256);

      await page.goto("/explore?view=tree&at=1.0.0.0/8");
      const row = page.locator("tbody tr", { hasText: "1.2.0.0/16" });
      expect(await row.locator(".share-bar title").textContent()).toBe("athens: 3; berlin: 1");
    });
  });

  it("what is hit is what is drawn: any point of the map is in the link of the rectangle there", async () => {
    await site.withPage({ viewport: { width: 1400, height: 2000 } }, async (page) => {
      await page.goto("/explore");
      const { groups } = (await (await page.request.get("/api/explore")).json()) as OccupiedAnswer;
      const box = (await page.locator(".treemap").boundingBox())!;
      for (let point = 0; point < 40; point += 1) {
        const [x, y] = [720 * (0.01 + 0.98 * Math.random()), 720 * (0.01 + 0.98 * Math.random())];
        const scale = box.width / 720;
        const hit = await page.evaluate(
          `document.elementFromPoint(${box.x + x * scale}, ${box.y + y * scale}).closest("a")?.dataset.range`,
        );
        // On an edge either neighbour may be hit.
        const near = groups.filter(
          (one) =>
            x >= one.x - 1 && x <= one.x + one.width + 1 && y >= one.y - 1 && y <= one.y + one.height + 1,
        );
        expect([x, y, near.map(({ range }) => range)]).toEqual([x, y, expect.arrayContaining([hit])]);
      }
    });
  });

  it("by keyboard arrows go from one rectangle to the next, Enter opens the panel, Escape closes it", async () => {
    await site.withPage({}, async (page) => {
      await page.goto("/explore", { waitUntil: "networkidle" });
      await page.locator(".treemap a[tabindex='0']").focus();
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowDown");
      const range = String(await page.evaluate("document.activeElement.dataset.range"));
      await page.keyboard.press("Enter");
      await page.locator(".pick h2", { hasText: range }).waitFor();
      expect(await page.evaluate("document.activeElement.id")).toBe("panel");
      expect(new URL(page.url()).searchParams.get("pick")).toBe(range);

      await page.keyboard.press("Escape");
      await page.locator(".pick").waitFor({ state: "detached" });
    });
  });

  it("the map of countries says in tables what it shows, and a country opens at 400 px", async () => {
    await site.withPage({ viewport: { width: 400, height: 800 } }, async (page) => {
      await page.goto("/explore/map");
      expect(await page.locator("tr", { hasText: "Greece" }).first().textContent()).toContain("too few yet");
      await page.locator("tbody").getByRole("link", { name: "Greece", exact: true }).click();

      expect(await page.locator(".pick h2").textContent()).toBe("Greece");
      expect(await page.locator(".pick-links a").first().getAttribute("href")).toContain("country=GR");
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(400);
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

/**
 * The pages in a real browser, over real sockets and a real database.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { everyOperation } from "#coordinator/room-operations";
import { navigationOf } from "#coordinator/web/navigation";
import type { Database } from "#db/server-database";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite } from "../support/browser-page.ts";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { seedHost, seedPage, seedUrl, seedWorld } from "../support/seed-world.ts";
import { signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();

describe.skipIf(executable === null)("in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let site: BrowserSite;

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
    site = await browserSite(webServer(database, { parts: await everyPart(database) }), executable!);
  });
  afterAll(async () => {
    await site?.close();
    await database?.close();
  });

  it("every page fits names of 2,000 characters from right to left, zoomed to 400 %, without scripts", async () => {
    const long = "\u05d0\u0628".repeat(1000);
    await database.pool.query("update crawler set place = $1 where name = 'athens'", [long]);
    await seedHost(database.pool, { host: "long.example.org", state: "refused", stateReason: long });
    await seedUrl(database.pool, { url: "https://www.example.org/long" });
    await seedPage(database.pool, {
      url: "https://www.example.org/long",
      title: long,
      text: "A ferry, too.",
    });
    const operator = await signIn(database, "operator", { now: new Date() });
    const storageState = operator.storageState(site.base);
    const viewport = { width: 350, height: 250 };
    await site.withPage({ storageState, viewport, javaScriptEnabled: false }, async (page) => {
      const bad: unknown[] = [];
      const paths = navigationOf(await everyOperation()).flatMap(({ entries }) =>
        entries.flatMap((entry) => entry.tabs ?? [entry]),
      );
      for (const path of [...paths.map((tab) => tab.path), "/search?q=ferry", "/who?q=long.example.org"]) {
        const status = (await page.goto(path))?.status();
        const tooWide = await page.evaluate(
          "document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        if (status !== 200 || tooWide !== 0) bad.push([path, status, tooWide]);
      }
      expect(bad).toEqual([]);
    });
  });

  it("another group is opened and entered by keyboard alone", async () => {
    await site.withPage({ javaScriptEnabled: false }, async (page) => {
      await page.goto("/who");
      await page.locator("summary", { hasText: "Fleet" }).focus();
      await page.keyboard.press("Enter");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");

      await page.waitForURL("**/alerts");
      expect(await page.locator(".groups [aria-current=page]").textContent()).toBe("Alerts");
    });
  });

  it("hostile titles stay text and run nothing", async () => {
    await site.withPage({}, async (page) => {
      await page.goto("/search?q=ferry");

      expect(await page.title()).toBe("ferry · Search · Nearcrawl");
      expect((await page.locator(".results h2").allTextContents()).join()).toContain("<script>");
      expect(site.takeFaults()).toEqual([]);
    });
  });

  it("the overview is live: what changes in the database appears without a reload", async () => {
    await site.withPage({}, async (page) => {
      await page.goto("/");
      await page.locator("#live[data-state=on]").waitFor();
      await database.pool.query("update crawler set state = 'draining' where name = 'tokyo'");

      await page.locator(".state-draining").waitFor();
      expect(site.takeFaults()).toEqual([]);
    });
  });

  it("times are shown in the reader's zone", async () => {
    await site.withPage({ timezoneId: "Asia/Tokyo", locale: "en-GB" }, async (page) => {
      await page.goto("/who?q=1.2.4.4");

      const since = page.locator("time[datetime='2026-03-01T11:10:01.000Z']").first();
      expect(await since.textContent()).toContain("20:10:01");
      expect(await since.getAttribute("title")).toBe("2026-03-01 11:10:01 UTC");
    });
  });

  it("everything is there without JavaScript", async () => {
    await site.withPage({ javaScriptEnabled: false }, async (page) => {
      await page.goto("/");
      expect(await page.locator("tbody tr").count()).toBeGreaterThanOrEqual(3);
      expect(await page.locator("#live").isVisible()).toBe(false);

      await page.goto("/who?q=1.2.4.4");
      expect(await page.locator("time").first().textContent()).toBe("2026-03-01 11:10:01 UTC");
    });
  });
});

/** The overview and the pages behind its numbers in a real browser. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite, picture } from "../support/browser-page.ts";
import { testDatabase } from "../support/database.ts";
import { seedOperation } from "../support/seed-operation.ts";
import { seedWorld } from "../support/seed-world.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();

describe.skipIf(executable === null)("the overview in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let site: BrowserSite;

  beforeAll(async () => {
    database = await testDatabase();
    await seedWorld(database.pool);
    await seedOperation(database.pool);
    site = await browserSite(webServer(database), executable!);
  });
  afterAll(async () => {
    await site?.close();
    await database?.close();
  });

  it("an alert that begins appears without a reload, and every figure leads somewhere", async () => {
    const page = await site.open();
    await page.goto("/?range=24h");
    await page.locator("#live[data-state=on]").waitFor();
    await database.pool.query(
      "update crawler set state = 'draining', draining_since = '2026-02-27T00:00:00Z' where name = 'tokyo'",
    );

    await page.locator(".alert", { hasText: "tokyo" }).waitFor();
    await picture(page, "overview-alert");
    const figures = await page
      .locator("a.figure")
      .evaluateAll((links) => links.map((link) => link.getAttribute("href")));
    const loose = await page.evaluate(
      `[...document.querySelectorAll("main a[href^='#']")]
        .map((link) => link.getAttribute("href")).filter((href) => !document.querySelector(href))`,
    );
    await page.context().close();

    expect(figures).toEqual([
      "/search",
      "#history",
      "/explore?state=delegated",
      "/explore?view=list&sort=rtt",
      "#recent",
      "#fleet",
      "/accuracy",
      "/fleet/queue",
    ]);
    expect(loose).toEqual([]);
  });
});

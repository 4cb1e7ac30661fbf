/** The change feed's page in a real browser without scripts. How it looks is test/web/every-page. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { changeKinds } from "#coordinator/crawl/changes/changes-api";
import { changePart } from "#coordinator/crawl/changes/start";
import type { Database } from "#db/server-database";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite } from "../support/browser-page.ts";
import { testDatabase } from "../support/database.ts";
import { seedChange, seenAt } from "../support/seed-changes.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();

describe.skipIf(executable === null)("changes in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let site: BrowserSite;

  beforeAll(async () => {
    database = await testDatabase();
    const { pool } = database;
    for (const kind of changeKinds) await seedChange(pool, { url: `https://a.example/${kind}`, kind });
    await numberChanges(pool, seenAt);
    site = await browserSite(webServer(database, { parts: [changePart({ pool })] }), executable!);
  });
  afterAll(async () => {
    await site?.close();
    await database?.close();
  });

  it("its filters work without scripts", async () => {
    await site.withPage({ javaScriptEnabled: false }, async (page) => {
      await page.goto("/changes");
      await page.getByRole("combobox", { name: "Change" }).selectOption("came-back");
      await page.getByRole("button", { name: "Show" }).click();

      expect(await page.locator("tbody tr").count()).toBe(1);
      expect(new URL(page.url()).searchParams.get("kind")).toBe("came-back");
    });
  });
});

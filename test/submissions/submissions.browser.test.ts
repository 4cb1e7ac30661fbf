/** Handing in URLs in a real browser: the form, the receipt, and "Fetch again now" on a URL's page. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { submissionPart } from "#coordinator/crawl/submissions/start";
import type { Database } from "#db/server-database";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite, looksRight } from "../support/browser-page.ts";
import { testDatabase } from "../support/database.ts";
import { seedWorld } from "../support/seed-world.ts";
import { signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();

describe.skipIf(executable === null)("handing in URLs in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let site: BrowserSite;

  beforeAll(async () => {
    database = await testDatabase();
    await seedWorld(database.pool);
    const parts = [submissionPart({ pool: database.pool, config: readCoordinatorConfig({}) })];
    site = await browserSite(webServer(database, { parts }), executable!);
  });
  afterAll(async () => {
    await site?.close();
    await database?.close();
  });

  it("staff hand in a list, follow it, and have one of it fetched again; every page fits and axe minds nothing", async () => {
    const { storageState } = await signIn(database, "staff");
    await site.withPage({ bypassCSP: true, storageState: storageState(site.base) }, async (page) => {
      await page.goto("/submit");
      const long = `https://www.example.org/${"long-".repeat(60)}`;
      await page.getByLabel("URLs, one per line").fill(`${long}\nhttps://new.example.net/\nnonsense`);
      await page.getByRole("button", { name: "Submit" }).click();
      await page.getByRole("heading", { name: /^Submission \d+$/ }).waitFor();
      await looksRight(page, "submission");
      const answers = await page.locator("tbody td .kind").allTextContents();
      await page.getByRole("link", { name: "Submit URLs" }).click();
      await looksRight(page, "submit");

      await page.goto(`/who?q=${encodeURIComponent(long)}`);
      await page.getByRole("button", { name: "Fetch again now" }).click();
      await page.getByText("1 known").first().waitFor();

      expect(answers).toEqual(["new", "new", "refused"]);
      expect(site.takeFaults()).toEqual([]);
    });
  });
});

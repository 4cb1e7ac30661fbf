/** The fleet as operators and partners steer it, in a real browser over a real database. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stateCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import type { Role } from "#core/actor";
import type { Database } from "#db/server-database";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite, looksRight } from "../support/browser-page.ts";
import { testDatabase } from "../support/database.ts";
import { publishedRelease } from "../support/releases.ts";
import { seedFleet } from "../support/seed-fleet.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();

describe.skipIf(executable === null)("the fleet in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let site: BrowserSite;
  let page: Page;

  beforeAll(async () => {
    database = await testDatabase();
    await seedWorld(database.pool);
    await seedFleet(database.pool);
    await publishedRelease(database.pool, { version: "1.4.0", stage: "percent" });
    const place = { webUrl: "https://search.example", certificatePin: "A".repeat(43) };
    await stateCoordinatorPlace(database.pool, place, worldNow);
    site = await browserSite(webServer(database), executable!);
    page = await pageOf("operator");
  });
  afterAll(async () => {
    await site?.close();
    await database?.close();
  });

  async function pageOf(role: Role): Promise<Page> {
    const storageState = (await signIn(database, role)).storageState(site.base);
    return await site.open({ storageState, bypassCSP: true });
  }

  it("an operator adds a partner, sees the command once, and finds the invitation in the fleet", async () => {
    await page.goto("/fleet");
    await page.getByRole("link", { name: "Add a partner" }).click();
    await page.getByLabel("Crawler name").fill("oslo");
    await page.getByLabel("Maximum pages per day").fill("5000");
    await page.getByRole("button", { name: "Invite" }).click();

    expect(await page.locator("h1").textContent()).toBe("oslo is invited");
    const letter = await page.getByLabel("The letter with the command").inputValue();
    expect(letter).toContain("node nearcrawl-crawler.mjs join -");
    expect(letter).toContain(await page.locator("#token").textContent());
    await looksRight(page, "fleet-invited");
    await page.goto("/fleet");
    await page
      .getByRole("button", { name: /^Withdraw/ })
      .first()
      .click();
    expect(await page.locator(".said").textContent()).toContain("Withdrawn: 1 invitation");
  });

  it("an operator drains a crawler, sees that, and resumes it", async () => {
    await page.goto("/crawlers/athens");
    await page.getByRole("button", { name: "Drain" }).click();

    expect(await page.locator(".said").textContent()).toContain("its subnets go to others");
    expect(await page.locator(".verdict").textContent()).toContain("as an operator asked");
    await page.getByRole("button", { name: "Resume" }).click();
    expect(await page.locator(".said").textContent()).toContain("is back and gets");
    expect(await page.locator("#log td").allTextContents()).toContain("anna");
  });

  it("a partner sees and controls its own crawler, without links to others", async () => {
    const own = await pageOf("partner");
    await own.goto("/crawlers/athens");
    const buttons = await own.getByRole("button").allTextContents();
    await own.getByRole("button", { name: "Drain" }).click();

    expect(buttons).toEqual(["Drain"]);
    const links = await own.locator("main a").evaluateAll((all) => all.map((a) => a.getAttribute("href")));
    expect(
      links.filter((href) => !/^(mailto:|\/crawlers\/athens|\/who\?q=1\.2\.200\.1)/.test(href ?? "")),
    ).toEqual([]);
    expect(await own.locator(".verdict").textContent()).toContain("as its partner asked");
    await own.getByRole("button", { name: "Resume" }).click();
    expect((await own.goto("/crawlers/berlin"))?.status()).toBe(403);
    expect((await own.goto("/fleet"))?.status()).toBe(403);
    await own.context().close();
  });
});

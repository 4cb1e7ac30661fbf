/** Policies in a real browser over a real database: previewed, saved, refused, undone. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { policyPart } from "#coordinator/run/settings/start";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite, looksRight } from "../support/browser-page.ts";
import { testDatabase } from "../support/database.ts";
import { seedWorld } from "../support/seed-world.ts";
import { signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();

describe.skipIf(executable === null)("policies in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let site: BrowserSite;
  let page: Page;

  beforeAll(async () => {
    database = await testDatabase();
    await seedWorld(database.pool);
    await database.pool.query("update probe_round set method = 'head' where round_id = 1");
    const app = webServer(database, {
      parts: [policyPart({ pool: database.pool, log: silentLog })],
    });
    site = await browserSite(app, executable!);
    const session = await signIn(database, "operator");
    page = await site.open({ storageState: session.storageState(site.base), bypassCSP: true });
  });
  afterAll(async () => {
    await site?.close();
    await database?.close();
  });

  const preview = () => page.getByRole("button", { name: "Preview" });
  const lambda = () => page.getByRole("textbox", { name: "Probe threshold (λ)" });
  const shortest = () => page.getByRole("textbox", { name: "Shortest interval" });
  const text = async (selector: string) => (await page.locator(selector).first().textContent())?.trim();

  it("shows the effect of a change before it is saved, then keeps it, and reverts it", async () => {
    await page.goto("/policies");
    await lambda().fill("0.5");
    const effect = page.locator("[id='delegation.lambdaMs'] .policy-effect");
    await effect.locator("table").waitFor();
    expect(await effect.textContent()).toContain("1 decided round (the latest) and 3 crawlers");
    await preview().click();

    expect(await text("h1")).toBe("What would change");
    expect(await text("main table tbody tr")).toMatch(/2 ms\s*0\.5 ms/);
    expect(await text(".effect")).toContain("1 decided round (the latest) and 3 crawlers");
    await looksRight(page, "policies-preview");
    await page.getByLabel(/^Why/).fill("news sites");
    await page.getByRole("button", { name: "Save" }).click();
    expect(await text(".said")).toContain("Saved as version 1: delegation.lambdaMs: 2 ms → 0.5 ms");
    expect(await lambda().inputValue()).toBe("0.5");
    expect(await text("table tbody tr")).toContain("news sites");
    await looksRight(page, "policies-changed");

    await page.getByRole("button", { name: "Revert version 1" }).click();
    expect(await text("h1")).toBe("Revert version 1");
    await page.getByRole("button", { name: "Save" }).click();
    expect(await lambda().inputValue()).toBe("2");
    expect(await page.locator("table tbody tr").count()).toBe(2);
    expect(site.takeFaults()).toEqual([]);
  });

  it("refuses an impossible value beside the form, which keeps what was typed", async () => {
    await page.goto("/policies?show=all");
    await page.locator("#recrawl").click();
    await shortest().fill("2000");
    await preview().click();

    expect(await text('[role="alert"]')).toContain(
      "no page may be fetched again within 2000 h are over, and each has to be after 1440 h",
    );
    expect(await shortest().inputValue()).toBe("2000");
  });

  it("a slider changes its number by keys, and announces the value", async () => {
    await page.goto("/policies");
    const slider = page.getByRole("slider", { name: "Pages per host" });
    const field = page.getByRole("textbox", { name: "Pages per host" });
    const before = Number(await field.inputValue());
    await slider.press("ArrowRight");
    const after = Number(await field.inputValue());

    expect(after).toBeGreaterThan(before);
    expect(after).toBeLessThan(2 * before);
    expect(await slider.getAttribute("aria-valuetext")).toBe(`${after} URLs`);
    expect(await text("#policy-count")).toContain("1 change.");
  });

  it("returns to the file's value by one button, and reports that somebody else was faster", async () => {
    const policy = "('scope.maxDepth', '3', '2026-03-01T11:00:00Z', 'ben')";
    await database.pool.query(`insert into setting (name, value, changed_at, changed_by) values ${policy}`);
    await page.goto("/policies?show=changed");
    await page.getByRole("button", { name: "Back to 8 links" }).click();
    expect(await text("main table tbody tr")).toMatch(/3 links\s*8 links/);
    await database.pool.query(
      `insert into policy_version (version, changed_at, changed_by, changes)
       values (3, '2026-03-01T11:30:00Z', 'ben', '[{"name": "trust.share", "before": null, "after": 0.1}]')`,
    );

    await page.getByRole("button", { name: "Save" }).click();

    expect(await text('[role="alert"]')).toContain("ben has changed trust.share in the meantime (version 3)");
  });
});

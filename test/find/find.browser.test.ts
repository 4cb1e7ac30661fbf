/** The search box in a real browser, by keyboard alone. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite, looksRight } from "../support/browser-page.ts";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { signIn } from "../support/signed-in.ts";
import { until } from "../support/until.ts";
import { testAccess, webServer } from "../support/web-server.ts";

const executable = browserPath();

describe.skipIf(executable === null)("the box, in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let site: BrowserSite;
  let page: Page;

  beforeAll(async () => {
    database = await testDatabase();
    await seedWorld(database.pool);
    const access = testAccess(database, () => worldNow, false);
    site = await browserSite(webServer(database, { parts: await everyPart(database), access }), executable!);
    const operator = await signIn(database, "operator");
    page = await site.open({ bypassCSP: true, storageState: operator.storageState(site.base) });
    await page.goto("/find?q=a");
  });
  afterAll(async () => {
    await site?.close();
    await database?.close();
  });

  const box = () => page.locator("form.find input");
  const options = () => page.locator('.find-list [role="option"]');
  const isInBox = async () => (await page.evaluate("document.activeElement?.id")) === "find";

  it("opens on / and Ctrl-K, and / is a character in fields", async () => {
    await page.keyboard.press("/");
    expect(await isInBox()).toBe(true);
    expect(await box().inputValue()).toBe("");

    await page.locator("#find-page").focus();
    await page.keyboard.press("/");
    expect(await isInBox()).toBe(false);
    expect(await page.locator("#find-page").inputValue()).toContain("/");

    await page.keyboard.press("Control+k");
    expect(await isInBox()).toBe(true);
  });

  it("lists results, announces the selected one, and goes there", async () => {
    await box().fill("");
    await page.keyboard.type("athens");
    // The answer to the first letters lists it too, below others.
    const first = page.getByRole("option").first();
    await until(async () => (await first.textContent())?.startsWith("athens") === true, 30_000);

    expect(await box().getAttribute("aria-expanded")).toBe("true");
    expect(await page.locator("form.find [role=status]").textContent()).toMatch(/^\d+ results/);
    await page.keyboard.press("ArrowDown");
    const active = await box().getAttribute("aria-activedescendant");
    expect(await page.locator(`#${active}`).getAttribute("aria-selected")).toBe("true");
    expect(await page.locator(`#${active}`).textContent()).toContain("athens");
    await page.keyboard.press("ArrowUp");
    expect(await box().getAttribute("aria-activedescendant")).toBeNull();
    await looksRight(page, "find-open");

    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/crawlers/athens");
  });

  it("closes on Escape, keeps the text, and Enter alone opens its page", async () => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type("nothing of that name");
    await options().first().waitFor();
    await page.keyboard.press("Escape");

    expect(await page.locator(".find-list").isVisible()).toBe(false);
    expect(await box().inputValue()).toBe("nothing of that name");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/find?q=nothing+of+that+name");
    expect(await page.locator("main h1").textContent()).toContain("nothing of that name");
  });

  it("shows the answer to the latest question, even if an earlier one comes later", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route("**/api/find?q=berlin", async (route) => {
      await held;
      await route.continue().catch(() => {});
    });
    const asked = page.waitForRequest("**/api/find?q=berlin");
    await page.keyboard.press("Control+k");
    await box().fill("berlin");
    await asked;
    await box().fill("tokyo");
    await page.getByRole("option", { name: /^tokyo/ }).waitFor();
    release();
    await page.unrouteAll({ behavior: "wait" });

    expect(await page.getByRole("option", { name: /^berlin/ }).count()).toBe(0);
    expect(site.takeFaults()).toEqual([]);
  });
});

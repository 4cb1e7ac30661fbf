/**
 * Five tasks by keyboard alone: no pointer, and focus moves only by keys that people have. Each begins on the
 * overview and checks that the focus is visible.
 */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stateCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import type { Database } from "#db/server-database";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite } from "../support/browser-page.ts";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { publishedRelease } from "../support/releases.ts";
import { seedOperation } from "../support/seed-operation.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();
/** After this many Tab keys the page has no such element. */
const mostTabs = 120;

describe.skipIf(executable === null)("by keyboard alone", { timeout: 90_000 }, () => {
  let database: Database;
  let site: BrowserSite;
  let page: Page;

  beforeAll(async () => {
    database = await testDatabase();
    await seedWorld(database.pool);
    await seedOperation(database.pool);
    await database.pool.query(
      "update crawler set last_seen_at = last_seen_at - interval '2 hours' where name = 'berlin'",
    );
    await publishedRelease(database.pool, { version: "1.4.0", stage: "all" });
    const place = { webUrl: "https://search.example", certificatePin: "A".repeat(43) };
    await stateCoordinatorPlace(database.pool, place, worldNow);
    site = await browserSite(webServer(database, { parts: await everyPart(database) }), executable!);
    const { storageState } = await signIn(database, "operator");
    page = await site.open({ storageState: storageState(site.base) });
  });
  afterAll(async () => {
    await site?.close();
    await database?.close();
  });

  /**
   * The focused element as a screen reader would begin to name it; it must be on the screen, with a ring around it.
   */
  async function focused(): Promise<string> {
    return await page.evaluate(`(() => {
      const one = document.activeElement;
      const box = one.getBoundingClientRect();
      const seen = box.width > 0 && box.bottom > 0 && box.top < innerHeight && getComputedStyle(one).outlineStyle !== "none";
      const label = one.labels?.[0]?.textContent ?? one.getAttribute("aria-label") ?? one.textContent;
      return (seen ? "" : "not seen: ") + label.replace(/\\s+/g, " ").trim();
    })()`);
  }

  async function tabTo(name: RegExp): Promise<void> {
    const passed: string[] = [];
    for (let tab = 0; tab < mostTabs; tab++) {
      await page.keyboard.press("Tab");
      const one = await focused();
      if (name.test(one)) return;
      passed.push(one.slice(0, 40));
    }
    throw new Error(`${name} was not reached: ${passed.join(" | ")}`);
  }

  /** Through the search box: the first result for these words. */
  async function goTo(words: string, found: RegExp): Promise<void> {
    await page.goto("/");
    await page.keyboard.press("Control+k");
    await page.keyboard.type(words);
    await page.getByRole("option", { name: found }).first().waitFor();
    for (let down = 0; down < 10; down++) {
      await page.keyboard.press("ArrowDown");
      const active = await page.locator(".find-list [aria-selected=true]").textContent();
      if (found.test(active ?? "")) break;
    }
    const here = page.url();
    await page.keyboard.press("Enter");
    await page.waitForURL((url) => url.href !== here);
  }

  it("a question is asked and its answer read", async () => {
    await page.goto("/");
    await tabTo(/^Who crawls this/);
    await page.keyboard.type("1.2.4.4");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/who?**");

    expect(await page.locator(".answer").textContent()).toContain("athens crawls this");
    expect(await page.locator(".probe-chosen .value").textContent()).toContain("12.5 ms");
  });

  it("a host and its pages are opened", async () => {
    await goTo("www.example.org", /^www\.example\.org/);
    await tabTo(/^Pages$/);
    await page.keyboard.press("Enter");
    await page.waitForURL("**/sites/www.example.org?part=pages");

    expect(await page.locator("main table").first().textContent()).toContain("https://www.example.org/");
  });

  it("an alert is muted for a time", async () => {
    await goTo("mute", /^Alerts/);
    await tabTo(/^Mute…/);
    await page.keyboard.press("Enter");
    await tabTo(/^Reason/);
    await page.keyboard.type("the power is out");
    await tabTo(/^Mute$/);
    await page.keyboard.press("Enter");
    await page.locator(".said").waitFor();

    expect(await page.locator("main").textContent()).toContain("the power is out");
  });

  it("a policy is previewed and saved", async () => {
    await goTo("pages per host", /^Pages per host/);
    await tabTo(/^Pages per host$/);
    const isSlider = (await page.evaluate("document.activeElement.type")) === "range";
    if (isSlider) await page.keyboard.press("Tab");
    await page.keyboard.press("Control+a");
    await page.keyboard.type("250");
    await tabTo(/^Preview$/);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "What would change" }).waitFor();
    await tabTo(/^Why/);
    await page.keyboard.type("larger sites");
    await tabTo(/^Save$/);
    await page.keyboard.press("Enter");
    await page.locator(".said").waitFor();

    expect(await page.locator(".said").textContent()).toContain("scope.pagesPerHost: 100 URLs → 250 URLs");
  });

  it("a partner is invited", async () => {
    await goTo("invite", /^Invitations/);
    await tabTo(/^Add a partner/);
    await page.keyboard.press("Enter");
    await page.waitForURL("**/fleet/invite");
    await tabTo(/^Crawler name/);
    await page.keyboard.type("oslo");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "oslo is invited" }).waitFor();

    expect(site.takeFaults()).toEqual([]);
  });
});

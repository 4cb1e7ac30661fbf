/** The fleet as operators and partners steer it, in a real browser over a real database. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stateCoordinatorPlace } from "#coordinator/postgres/coordinator-place";
import type { Role } from "#core/access/actor";
import type { Database } from "#db/connect";
import { browserPath, startBrowser } from "../support/browser.ts";
import { testDatabase } from "../support/database.ts";
import { publishedRelease } from "../support/releases.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";
import { seedFleet } from "./seed-fleet.ts";

const executable = browserPath();
const screenshots = process.env.NEARCRAWL_SCREENSHOTS ?? null;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const pages = {
  fleet: "/fleet",
  invitations: "/fleet/invitations",
  invite: "/fleet/invite",
  incidents: "/fleet/incidents",
  trust: "/fleet/trust",
  versions: "/fleet/versions",
  failures: "/fleet/failures",
  moves: "/fleet/moves",
  "opt-outs": "/fleet/opt-outs",
  complaints: "/fleet/complaints",
  crawler: "/crawlers/athens",
  away: "/crawlers/berlin",
  "shut-out": "/crawlers/athens/kill",
} as const;

describe.skipIf(executable === null)("the fleet in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let app: FastifyInstance;
  let browser: Browser;
  let baseURL: string;
  let page: Page;
  const faults: string[] = [];

  beforeAll(async () => {
    database = await testDatabase();
    await seedWorld(database.pool);
    await seedFleet(database.pool);
    await publishedRelease(database.pool, { version: "1.4.0", stage: "percent" });
    const place = { webUrl: "https://search.example", certificatePin: "A".repeat(43) };
    await stateCoordinatorPlace(database.pool, place, worldNow);
    app = webServer(database);
    await app.listen({ host: "127.0.0.1", port: 0 });
    baseURL = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
    browser = await startBrowser(executable!);
    page = await (await contextOf("operator")).newPage();
    page.on("pageerror", (error) => faults.push(error.message));
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
    await database?.close();
  });

  async function contextOf(role: Role): Promise<BrowserContext> {
    const storageState = (await signIn(database, role)).storageState(baseURL);
    const viewport = { width: 1400, height: 900 };
    return await browser.newContext({ baseURL, storageState, bypassCSP: true, viewport });
  }

  /** Light in full; dark is a second set of colours, so its contrast is what can differ. */
  async function looksRight(name: string): Promise<void> {
    await page.addScriptTag({ content: axe });
    for (const [width, colorScheme] of [
      [1400, "light"],
      [1400, "dark"],
      [400, "dark"],
      [400, "light"],
    ] as const) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      const path = screenshots && join(screenshots, `fleet-${name}-${width}-${colorScheme}.png`);
      if (path) await page.screenshot({ path, fullPage: true });
      if (width === 1400) expect([name, await serious(colorScheme === "dark")]).toEqual([name, []]);
      const tooWide = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth",
      );
      expect([name, width, tooWide]).toEqual([name, width, 0]);
    }
    await page.setViewportSize({ width: 1400, height: 900 });
  }

  async function serious(coloursOnly: boolean): Promise<readonly string[]> {
    const options = coloursOnly ? `{ runOnly: ["color-contrast"] }` : `{ resultTypes: ["violations"] }`;
    return await page.evaluate(
      `axe.run(${options}).then(({ violations }) => violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html.slice(0, 200)).join(" | ")))`,
    );
  }

  it("every page fits a desk and a telephone, and axe finds nothing serious, in light and dark", async () => {
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(path);

      expect([name, await page.locator("h1").count()]).toEqual([name, 1]);
      await looksRight(name);
    }
    expect(faults).toEqual([]);
  });

  it("an operator adds a partner, sees the line this once, and finds the invitation in the fleet", async () => {
    await page.goto("/fleet");
    await page.getByRole("link", { name: "Add a partner" }).click();
    await page.getByLabel("Name of the crawler").fill("oslo");
    await page.getByLabel("Pages a day at most").fill("5000");
    await page.getByRole("button", { name: "Invite" }).click();

    expect(await page.locator("h1").textContent()).toBe("oslo is invited");
    const letter = await page.getByLabel("The letter with the line").inputValue();
    expect(letter).toContain("node nearcrawl-crawler.mjs join -");
    expect(letter).toContain(await page.locator("#token").textContent());
    await looksRight("invited");
    await page.goto("/fleet");
    await page
      .getByRole("button", { name: /^Withdraw/ })
      .first()
      .click();
    expect(await page.locator(".said").textContent()).toContain("Withdrawn: 1 invitation");
  });

  it("an operator drains a crawler, sees so, and takes it back", async () => {
    await page.goto("/crawlers/athens");
    await page.getByRole("button", { name: "Drain" }).click();

    expect(await page.locator(".said").textContent()).toContain("its subnets go to others");
    expect(await page.locator(".verdict").textContent()).toContain("as an operator asked");
    await page.getByRole("button", { name: "Resume" }).click();
    expect(await page.locator(".said").textContent()).toContain("is taken back");
    expect(await page.locator("#log td").allTextContents()).toContain("anna");
  });

  it("a partner sees and steers its own crawler, and is led nowhere else", async () => {
    const context = await contextOf("partner");
    const own = await context.newPage();
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
    await context.close();
  });
});

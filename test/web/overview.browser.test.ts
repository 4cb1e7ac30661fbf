/** The overview and the pages behind its numbers in a real browser; NEARCRAWL_SCREENSHOTS names a folder for pictures. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "#db/connect";
import { browserPath, startBrowser } from "../support/browser.ts";
import { testDatabase } from "../support/database.ts";
import { seedOperation } from "../support/seed-operation.ts";
import { seedWorld } from "../support/seed-world.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();
const screenshots = process.env.NEARCRAWL_SCREENSHOTS ?? null;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const pages = {
  overview: "/",
  alerts: "/alerts",
  queue: "/fleet/queue",
  accuracy: "/accuracy",
} as const;

describe.skipIf(executable === null)("the overview in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let app: FastifyInstance;
  let browser: Browser;
  let base: string;

  beforeAll(async () => {
    database = await testDatabase();
    await seedWorld(database.pool);
    await seedOperation(database.pool);
    app = webServer(database);
    await app.listen({ host: "127.0.0.1", port: 0 });
    base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
    browser = await startBrowser(executable!);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
    await database?.close();
  });

  it.each(["light", "dark"] as const)(
    "every page fits, has no fault and nothing axe minds, in %s",
    async (colorScheme) => {
      const context = await browser.newContext({ baseURL: base, colorScheme, bypassCSP: true });
      const page = await context.newPage();
      const faults: string[] = [];
      page.on("pageerror", (error) => faults.push(error.message));
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(path);
        for (const width of [1400, 400]) {
          await page.setViewportSize({ width, height: 900 });
          await picture(page, `${name}-${width}-${colorScheme}`);

          expect([name, width, await overflowOf(page)]).toEqual([name, width, 0]);
        }
        expect([name, await violationsOf(page, colorScheme)]).toEqual([name, []]);
      }
      await context.close();
      expect(faults).toEqual([]);
    },
  );

  it("an alert that begins appears without a reload, and every figure leads somewhere", async () => {
    const page = await browser.newPage({ baseURL: base });
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
    await page.close();

    expect(figures).toEqual([
      "/search",
      "#history",
      "/explore?state=delegated",
      "/explore?colour=rtt",
      "#recent",
      "#fleet",
      "/accuracy",
      "/fleet/queue",
    ]);
    expect(loose).toEqual([]);
  });
});

async function picture(page: Page, name: string): Promise<void> {
  if (screenshots) await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
}

async function overflowOf(page: Page): Promise<unknown> {
  return await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
}

/** Serious and critical ones, by rule and element; the second set of colours differs in its contrasts alone. */
async function violationsOf(page: Page, colorScheme: "light" | "dark"): Promise<unknown> {
  const options = colorScheme === "dark" ? { runOnly: ["color-contrast"] } : {};
  await page.evaluate(axe);
  return await page.evaluate(`axe.run(${JSON.stringify(options)}).then(({ violations }) => violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => id + ": " + nodes[0].html.slice(0, 160)))`);
}

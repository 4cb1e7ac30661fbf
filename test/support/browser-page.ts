/**
 * A web server's pages in headless Chromium, and the requirements that every page must meet. All files of a process share one
 * browser. NEARCRAWL_SCREENSHOTS names a folder for screenshots.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { expect } from "vitest";
import { sharedBrowser } from "./browser.ts";
import { isLong } from "./long.ts";

const screenshots = process.env.NEARCRAWL_SCREENSHOTS ?? null;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export interface BrowserSite {
  /** `http://127.0.0.1:PORT` */
  readonly base: string;
  /** Opens a page in a new context, which closes with the page or the site. */
  open(options?: BrowserContextOptions): Promise<Page>;
  /** The same for one callback; the context closes after it. */
  withPage(
    options: BrowserContextOptions,
    look: (page: Page, context: BrowserContext) => Promise<void>,
  ): Promise<void>;
  /** Returns and forgets the script and console errors of all pages so far. */
  takeFaults(): string[];
  close(): Promise<void>;
}

/** Listens on a free port of loopback; `executable` is of `browserPath` (browser.ts). */
export async function browserSite(app: FastifyInstance, executable: string): Promise<BrowserSite> {
  await app.listen({ host: "127.0.0.1", port: 0 });
  const base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  const browser = await sharedBrowser(executable);
  const opened: BrowserContext[] = [];
  const faults: string[] = [];
  const open = async (options: BrowserContextOptions = {}): Promise<Page> => {
    const page = await newPage(browser, { baseURL: base, ...options });
    opened.push(page.context());
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !isAnswer.test(message.text())) faults.push(message.text());
    });
    return page;
  };
  return {
    base,
    open,
    withPage: async (options, look) => {
      const page = await open(options);
      try {
        await look(page, page.context());
      } finally {
        await page.context().close();
      }
    },
    takeFaults: () => faults.splice(0),
    close: async () => {
      for (const context of opened) await context.close();
      await app.close();
    },
  };
}

/** The console reports pages that were not found or refused, which tests provoke. */
const isAnswer = /the server responded with a status of 4\d\d/;

async function newPage(browser: Browser, options: BrowserContextOptions): Promise<Page> {
  const viewport = { width: 1400, height: 900 };
  return await (await browser.newContext({ viewport, ...options })).newPage();
}

/**
 * Dark mode changes only colours and a telephone only the width, so both are checked on one load. The overview and the policies
 * show nearly all colours; the other pages are checked in dark mode nightly (npm run test:long).
 */
const looks = [
  { width: 1400, colorScheme: "light", rules: null },
  {
    width: 400,
    colorScheme: "dark",
    rules: ["color-contrast", "scrollable-region-focusable", "target-size"],
  },
] as const;

/**
 * Checks that the page fits a desktop and a telephone and that axe finds no fault in light and dark mode. Its context needs
 * `bypassCSP`. `except`: selectors that axe skips, such as rows that repeat those before them.
 */
export async function looksRight(page: Page, name: string, except: readonly string[] = []): Promise<void> {
  await page.addScriptTag({ content: axe });
  for (const look of looks) {
    const { width, colorScheme, rules } = look;
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await picture(page, `${name}-${width}-${colorScheme}`);
    const tooWide = await page.evaluate(
      "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    );
    const looksFurther = rules === null || isLong || name === "overview" || name === "policies";
    const faults = looksFurther ? await faultsByAxe(page, rules, except) : [];
    expect([name, width, tooWide, faults]).toEqual([name, width, 0, []]);
  }
  await page.setViewportSize({ width: 1400, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
}

export async function picture(page: Page, name: string): Promise<void> {
  if (screenshots) await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
}

/** Faults of any severity, each with its first elements. `rules`: null for all. */
async function faultsByAxe(
  page: Page,
  rules: readonly string[] | null,
  except: readonly string[],
): Promise<readonly string[]> {
  const context = JSON.stringify({ exclude: except.map((selector) => [selector]) });
  const options = JSON.stringify({ resultTypes: ["violations"], ...(rules && { runOnly: rules }) });
  return await page.evaluate(`axe.run(${except.length > 0 ? context : "document"}, ${options})
    .then(({ violations }) => violations
      .map(({ id, nodes }) => id + ": " + nodes.slice(0, 3).map(({ html }) => html.slice(0, 200)).join(" | ")))`);
}

/** The page of differences, as an operator opens it: a real import, a real browser, hostile names. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { writePlanPage } from "#ops/cli/rir/plan-page";
import { applyImport } from "#rir-import/apply";
import { planImport } from "#rir-import/plan";
import { type SourceFolder, sourceFolder } from "../../rir-import/source-folder.ts";
import { browserPath, startBrowser } from "../../support/browser.ts";
import { testDatabase } from "../../support/database.ts";

const path = browserPath();
const hostile = "</script><script>document.title='taken'</script><b>&amp;";
const net = (range: string, country: string, name = "EX") =>
  `inetnum: ${range}\nnetname: ${name}\ncountry: ${country}\ndescr: Exemplary Networks\nsource: RIPE\n\n`;
const many = Array.from({ length: 250 }, (_, n) => net(`46.10.${n}.0/24`, "SE", `NET-${n}`)).join("");

let database: Database;
let folder: SourceFolder;
let file: string;
beforeAll(async () => {
  database = await testDatabase();
  folder = sourceFolder();
  const before = folder.write("before.db", net("45.10.0.0/16", "NL") + net("45.11.0.0/16", "NL"));
  await applyImport(database, [before]);
  const after = folder.write("after.db", net("45.10.0.0/16", "DE", hostile) + many);
  file = join(folder.path, "differences.html");
  await planImport(database, [after], {
    onDifferences: (plan, differences) => writePlanPage(file, plan, differences),
  });
});
afterAll(async () => {
  folder.remove();
  await database.close();
});

it("loads nothing and cannot be broken out of by a name", () => {
  const html = readFileSync(file, "utf8");

  expect(html).toContain("default-src 'none'");
  expect(html).not.toMatch(/(src|href)\s*=/);
  expect(html).not.toContain("</script><script>document.title");
});

describe.skipIf(path === null)("in a browser", () => {
  let browser: Browser;
  let page: Page;
  const faults: string[] = [];
  beforeAll(async () => {
    browser = await startBrowser(path!);
    page = await browser.newPage();
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error") faults.push(message.text());
    });
    await page.goto(pathToFileURL(file).href);
  });
  afterAll(() => browser?.close());

  const texts = (selector: string) => page.locator(selector).allInnerTexts();

  it("says the counts, shows a hundred rows, and turns the pages", async () => {
    expect(await texts("#kinds button")).toEqual([
      "added 250",
      "removed 1",
      "changed 1",
      "moved 0",
      "returned 0",
    ]);
    expect(await page.locator("#rows tbody tr").count()).toBe(100);
    expect(await page.locator("#shown").textContent()).toBe("1 to 100 of 250");

    await page.locator("#later").click();
    await page.locator("#later").click();

    expect(await page.locator("#shown").textContent()).toBe("201 to 250 of 250");
    expect(await page.locator("#later").isDisabled()).toBe(true);
  });

  it("finds by any word, and shows what a change was and is, names as plain text", async () => {
    await page.locator("#filter").fill("net-77");
    expect(await texts("#rows tbody td:first-child")).toEqual(["46.10.77.0/24"]);

    await page.locator("#filter").fill("");
    await page.locator("#kinds button", { hasText: "changed" }).click();

    const [row] = await texts("#rows tbody tr");
    expect(row).toContain("NL → DE");
    expect(row).toContain(`EX → ${hostile}`);
    expect(await page.title()).toBe("Registry import: differences");
    expect(faults).toEqual([]);
  });
});

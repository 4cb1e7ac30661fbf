/**
 * A quarterly refresh as an operator does it on the pages: plan, preview, apply, rollback. The jobs are real processes of the
 * command, over a real database with generated registries; only the fetch is controlled by the test.
 */
import { appendFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RegistryCommands } from "#coordinator/run/registry/jobs";
import { registryPart } from "#coordinator/run/registry/start";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import { registryHost } from "#ops/cli/registry/run-command";
import { generateRegistry } from "../lab/generate/generate-registry.ts";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite, looksRight } from "../support/browser-page.ts";
import { builtProgram } from "../support/built-command.ts";
import { CommandInHand } from "../support/command-in-hand.ts";
import { testDatabase } from "../support/database.ts";
import { signIn } from "../support/signed-in.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();
/** Rows after the third are like the first three and take seconds. */
const alike = ["tbody tr:nth-child(n+4)", "details li:nth-child(n+4)"];
const fetching = new CommandInHand();

describe.skipIf(executable === null)("the registry's pages in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let site: BrowserSite;
  let page: Page;
  let home: string;

  beforeAll(async () => {
    home = temporaryFolder("registry-pages-");
    const files = join(home, "files");
    mkdirSync(files);
    const generated = { objects: 150, changedShare: 0.1 };
    await generateRegistry({ ...generated, folder: join(files, "2026-q1") }, () => {});
    const refused = "inetnum:        forty-five\nnetname:        BROKEN\nsource:         AFRINIC\n\n";
    appendFileSync(join(files, "2026-q1", "afrinic.db.gz"), gzipSync(refused));
    await generateRegistry({ ...generated, generation: 1, folder: join(files, "2026-q2") }, () => {});
    database = await testDatabase();
    const now = new Date();
    const own = { entry: await builtProgram("ops/cli/main"), execArgv: [] };
    const real = registryHost({
      ...{ own, home, schema: database.schema, databaseUrl: database.url, filesFolder: files },
      bounds: { minutes: 2, megabytes: 1024 },
    });
    const commands: RegistryCommands = {
      start: (order, asker, onStep) =>
        (order.type === "fetch" ? fetching : real.commands).start(order, asker, onStep),
    };
    const host = { ...real, commands };
    const part = registryPart({
      ...{ database, pool: database.pool, log: silentLog, registryHost: host },
      config: { registry: { shrinkageWarningShare: 0.1 } },
    });
    site = await browserSite(webServer(database, { now: () => now, parts: [part] }), executable!);
    const session = await signIn(database, "operator", { now });
    page = await site.open({ storageState: session.storageState(site.base), bypassCSP: true });
  });
  afterAll(async () => {
    await site?.close();
    await database?.close();
    rmSync(home, { recursive: true, force: true });
  });

  const press = async (name: string) => await page.getByRole("button", { name }).click();

  it("before the first import it says what to do", async () => {
    await page.goto("/registry");

    expect(await page.locator(".empty").first().textContent()).toContain("No registry has been imported yet");
  });

  it("a job shows its progress by itself, can be cancelled, and is shown without scripts, too", async () => {
    await press("Fetch");
    await page.locator(".job").waitFor();
    fetching.onStep({
      text: "9 of 19 · ripencc-inetnum 43 %",
      share: 9 / 19,
      done: "arin-statistics: fetched",
    });
    await page.getByText("9 of 19").waitFor({ timeout: 30_000 });
    await looksRight(page, "registry-job-running", alike);
    const storageState = await page.context().storageState();
    const still = await site.open({ javaScriptEnabled: false, storageState });
    await still.goto("/registry");

    expect(await page.locator(".job-lines li").allInnerTexts()).toEqual(["arin-statistics: fetched"]);
    expect(await still.getByRole("link", { name: "Reload" }).count()).toBe(1);
    await still.getByRole("button", { name: "Cancel" }).click();
    expect(await still.getByRole("status").first().textContent()).toBe("Job 1 is asked to end.");
    await page.getByText("cancelled by anna").waitFor({ timeout: 30_000 });
    await still.context().close();
    await page.goto("/registry");
  });

  it("plans a folder that the settings allow, and shows what would change and what was refused", async () => {
    await page.getByLabel("Files", { exact: true }).selectOption("2026-q1");
    await press("Plan");
    await page.getByRole("link", { name: "Look at the plan" }).click({ timeout: 30_000 });

    expect(await page.locator("h1").textContent()).toBe("Plan 2");
    expect(await page.locator(".lead").textContent()).toContain("an empty tree");
    const refused = page.locator("details.listed", { hasText: "refused" }).locator(".mono");
    expect(await refused.first().textContent()).toMatch(/:\d+$/);
    await looksRight(page, "registry-plan", alike);
  });

  it("applies exactly that plan, and the next quarter's after it; a plan that was overtaken is refused", async () => {
    await press("Apply this plan");
    await page.getByText("Generation 1", { exact: true }).waitFor({ timeout: 30_000 });
    await page.goto("/registry/plans/2");
    expect(await page.getByRole("button", { name: "Apply this plan" }).count()).toBe(0);

    await page.goto("/registry");
    await page.getByLabel("Files", { exact: true }).selectOption("2026-q2");
    await press("Plan");
    await page.getByRole("link", { name: "Look at the plan" }).click({ timeout: 30_000 });
    await page.getByRole("link", { name: /^changed/ }).click();
    expect(await page.locator("#differences tbody tr").count()).toBeGreaterThan(0);
    await press("Apply this plan");
    await page.getByText("Generation 2", { exact: true }).waitFor({ timeout: 30_000 });
    await looksRight(page, "registry-applied", alike);

    expect(site.takeFaults()).toEqual([]);
  });

  it("shows the effect of a rollback, does it, and names who did what", async () => {
    await page.goto("/registry");
    await looksRight(page, "registry", alike);
    await page.getByLabel("Type roll back 2 to confirm").fill("roll back 2");
    await press("Roll back generation 2");
    await page.getByText("generation 1 is in force again").waitFor({ timeout: 30_000 });

    await page.goto("/registry");
    const history = await page
      .getByRole("region", { name: "Generations" })
      .locator("tbody tr")
      .allInnerTexts();
    expect(history[0]).toMatch(/2\s+rolled back by anna/);
    expect(history[1]).toMatch(/1\s+applied\s.*anna/s);
    await page.goto("/registry/jobs");
    expect(await page.locator("tbody tr").count()).toBe(6);
    await looksRight(page, "registry-jobs", alike);
    expect(site.takeFaults()).toEqual([]);
  });
});

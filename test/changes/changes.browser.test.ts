/** The change feed's page in a real browser: with everything it shows. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { numberChanges } from "#coordinator/changes/change-writes";
import { changeKinds } from "#coordinator/changes/changes-api";
import { changePart } from "#coordinator/changes/start";
import { readChannel } from "#coordinator/channels/channel";
import { createChannelStore } from "#coordinator/channels/channel-store";
import { channelPart } from "#coordinator/channels/start";
import type { Database } from "#db/server-database";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite, looksRight } from "../support/browser-page.ts";
import { testDatabase } from "../support/database.ts";
import { seedChange, seenAt } from "../support/seed-changes.ts";
import { signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();

describe.skipIf(executable === null)("changes in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let site: BrowserSite;

  beforeAll(async () => {
    database = await testDatabase();
    const { pool } = database;
    for (const kind of changeKinds)
      await seedChange(pool, { url: `https://a.example/docs/${"long-".repeat(30)}${kind}`, kind });
    await numberChanges(pool, seenAt);
    const docs = { prefixes: ["a.example/docs/", "a.example/news/"], seeds: ["https://a.example/docs/"] };
    const filters = { include: ["/docs/*.html$"], exclude: ["/docs/old/"], maxDepth: 4 };
    await createChannelStore(pool).add(readChannel({ ...docs, ...filters }), seenAt);
    const parts = [changePart({ pool }), channelPart({ pool, config: { scope: { maxDepth: 5 } } })];
    site = await browserSite(webServer(database, { parts }), executable!);
  });
  afterAll(async () => {
    await site?.close();
    await database?.close();
  });

  it("fits, has no fault and nothing axe minds, in light and dark", async () => {
    await site.withPage({ bypassCSP: true }, async (page) => {
      await page.goto("/changes");

      await looksRight(page, "changes");
      expect(await page.locator("tbody tr").count()).toBe(changeKinds.length);
      expect(site.takeFaults()).toEqual([]);
    });
  });

  it("channels fit, with the form of an operator, and axe minds nothing", async () => {
    const { storageState } = await signIn(database, "operator");
    await site.withPage({ bypassCSP: true, storageState: storageState(site.base) }, async (page) => {
      await page.goto("/channels");

      await looksRight(page, "channels");
      expect(site.takeFaults()).toEqual([]);
    });
  });

  it("without scripts its filters work", async () => {
    await site.withPage({ javaScriptEnabled: false }, async (page) => {
      await page.goto("/changes");
      await page.getByLabel("Change", { exact: true }).selectOption("came-back");
      await page.getByRole("button", { name: "Show" }).click();

      expect(await page.locator("tbody tr").count()).toBe(1);
      expect(new URL(page.url()).searchParams.get("kind")).toBe("came-back");
    });
  });
});

/** The invitation's page at each step, in a real browser; NEARCRAWL_SCREENSHOTS keeps the pictures. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite, looksRight } from "../support/browser-page.ts";
import { testDatabase } from "../support/database.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { signIn } from "../support/signed-in.ts";
import { webServer } from "../support/web-server.ts";

const executable = browserPath();

describe.skipIf(executable === null)("an invitation, watched", { timeout: 120_000 }, () => {
  let database: Database;
  let site: BrowserSite;

  beforeAll(async () => {
    database = await testDatabase();
    await seedWorld(database.pool);
    site = await browserSite(webServer(database), executable!);
  });
  afterAll(async () => {
    await site?.close();
    await database?.close();
  });

  it("goes step by step by itself, fits, and axe minds nothing", async () => {
    const { pool } = database;
    const { rows } = await pool.query<{ invitation_id: number }>(
      `insert into invitation (secret_hash, name, created_by, created_at, expires_at)
       values ('watched', 'athens', 'anna', $1, $1::timestamptz + interval '1 day') returning invitation_id`,
      [worldNow],
    );
    const number = rows[0]!.invitation_id;
    const { storageState } = await signIn(database, "operator");
    await pool.query("delete from crawler_figures");
    await pool.query(
      "update crawler set state = 'offline', release_version = null, revoked_at = null where name = 'athens'",
    );
    const steps: readonly (readonly [name: string, sql: string, done: number])[] = [
      ["invited", "select 1", 0],
      ["downloaded", `update invitation set downloaded_at = now() where invitation_id = ${number}`, 1],
      [
        "joined",
        `update invitation set redeemed_at = now(), kept_at = now(), crawler_id = (select crawler_id from crawler where name = 'athens')
         where invitation_id = ${number}`,
        3,
      ],
      [
        "running",
        "update crawler set state = 'online', release_version = '0.1.0', connected_at = now() where name = 'athens'",
        4,
      ],
      [
        "crawling",
        `insert into crawler_figures (crawler_id, quarter, fetches) select crawler_id, date_trunc('hour', now()), 1 from crawler where name = 'athens'`,
        5,
      ],
    ];
    await site.withPage({ bypassCSP: true, storageState: storageState(site.base) }, async (page) => {
      await page.goto(`/fleet/invitations/${number}`);
      for (const [name, sql, done] of steps) {
        await pool.query(sql);
        // It looks again by itself.
        await page.waitForFunction(`document.querySelectorAll(".steps .done").length === ${done}`, null, {
          timeout: 15_000,
        });
        await looksRight(page, `invitation-${name}`);
      }

      const times = await page
        .locator(".steps time")
        .evaluateAll((found) => found.map((one) => one.getAttribute("datetime") ?? ""));
      expect(times.length).toBe(5);
      expect(times).toEqual(times.toSorted());
      expect(await page.locator("h1").textContent()).toBe("athens is crawling");
      expect(site.takeFaults()).toEqual([]);
    });
  });
});

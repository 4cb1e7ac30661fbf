/** Signing in, accounts, tokens and the audit log in a real browser, over real sockets and a real database. */

import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAuditLog } from "#coordinator/database/audit-log";
import { stateCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import { createOperatorTokenStore, createSignInLinkStore } from "#coordinator/run/access/session-store";
import { issueSignInLink, type LinkRequest } from "#coordinator/run/access/sign-in";
import { accessParts } from "#coordinator/run/access/start";
import { fleetPart } from "#coordinator/tell/fleet/start";
import { createChartReads } from "#coordinator/tell/overview/chart-reads";
import { randomSecrets } from "#coordinator/web/secrets";
import type { Database } from "#db/server-database";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite, looksRight } from "../support/browser-page.ts";
import { testDatabase } from "../support/database.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { signIn } from "../support/signed-in.ts";
import { testAccess, webServer } from "../support/web-server.ts";

const executable = browserPath();
const now = () => worldNow;

describe.skipIf(executable === null)("access, in a browser", { timeout: 90_000 }, () => {
  let database: Database;
  let site: BrowserSite;

  beforeAll(async () => {
    database = await testDatabase();
    await seedWorld(database.pool);
    await seedAudit();
    const access = testAccess(database, now, false);
    const app = webServer(database, {
      access,
      parts: [
        fleetPart(
          { pool: database.pool, past: createChartReads(database.pool), succession: async () => [] },
          now,
        ),
        ...accessParts(database.pool, { access, version: "0.1.0", now }),
      ],
    });
    site = await browserSite(app, executable!);
    await stateCoordinatorPlace(database.pool, { webUrl: site.base, certificatePin: null }, worldNow);
  });
  afterAll(async () => {
    await site?.close();
    await database?.close();
  });

  async function seedAudit(): Promise<void> {
    const audit = createAuditLog(database.pool);
    const by = { actor: "coordinator", via: "coordinator", remoteAddress: null, at: worldNow } as const;
    await audit.record({
      ...by,
      action: "crawler-distrusted",
      target: "berlin",
      words: "berlin is not trusted any more: <b>on 3 hosts</b>",
    });
    await audit.record({
      ...by,
      actor: "anna",
      via: "page",
      remoteAddress: "2001:db8::7",
      action: "policy-changed",
      target: "delegation.lambdaMs",
      words: "λ is 3 ms.",
      before: { lambdaMs: 2, probe: { tries: 6 } },
      after: { lambdaMs: 3, probe: { tries: 6 } },
    });
    await createOperatorTokenStore(database.pool).create({
      name: "prometheus",
      scopes: ["metrics-read", "read"],
      tokenHash: "none",
      createdAt: worldNow,
      expiresAt: new Date(worldNow.getTime() + 864e5),
    });
  }

  async function linkFor(asked: Partial<LinkRequest> = {}): Promise<string> {
    const ports = { links: createSignInLinkStore(database.pool), secrets: randomSecrets, webUrl: site.base };
    const anna = {
      name: "anna",
      role: "operator",
      crawlers: [],
      minutes: 15,
      issuedBy: "root on db1",
    } as const;
    return (await issueSignInLink({ ...anna, ...asked }, ports, worldNow)).url;
  }

  const headings = async (page: Page) => (await page.locator("h1").textContent())?.trim();

  it("a link signs in once and leads to the requested page, and signing out ends the session", async () => {
    const link = await linkFor();
    await site.withPage({}, async (page) => {
      await page.goto("/audit?actor=coordinator");
      expect(page.url()).toContain("/sign-in?to=");
      await page.goto(link);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.waitForURL("**/audit?actor=coordinator");
      expect(await page.locator("tbody tr").count()).toBe(1);
      expect(await page.locator(".audit-words").textContent()).toContain("<b>on 3 hosts</b>");

      await page.goto(link);
      expect(await headings(page)).toBe("This link was already used");
      await page.goto("/account");
      await page.getByRole("button", { name: "Sign out" }).click();
      expect(await headings(page)).toBe("You are signed out");
      await page.goto("/audit");
      expect(page.url()).toContain("/sign-in");
    });
  });

  it("an operator makes a token and a link, and the next page confirms it", async () => {
    const operator = await signIn(database, "operator");
    await site.withPage(
      { storageState: operator.storageState(site.base), javaScriptEnabled: false },
      async (page) => {
        await page.goto("/tokens");
        await page.getByLabel("Name", { exact: true }).fill("Not A Name");
        await page.getByLabel("fleet-read").check();
        await page.getByRole("button", { name: "Create a token" }).click();
        expect(await page.getByRole("alert").textContent()).toContain("lower-case");
        expect(await page.getByLabel("fleet-read").isChecked()).toBe(true);
        await page.getByLabel("Name", { exact: true }).fill("dashboard");
        await page.getByRole("button", { name: "Create a token" }).click();
        expect(await page.locator("pre").textContent()).toMatch(/^nco_[\w-]{43}$/);
        await page.goto("/tokens");
        await page.getByRole("button", { name: "Revoke dashboard" }).click();
        expect(await page.getByRole("status").textContent()).toContain("no longer works");

        await page.goto("/access");
        await page.getByLabel("Name", { exact: true }).fill("ben");
        await page.getByLabel("Role").selectOption("partner");
        await page.getByLabel("The partner's crawlers").fill("athens");
        await page.getByRole("button", { name: "Create link" }).click();
        expect(await page.locator("pre").textContent()).toContain(`${site.base}/sign-in/ncl_`);
      },
    );
  });

  it("a form without its token is refused and changes nothing", async () => {
    const operator = await signIn(database, "operator");
    await site.withPage({ storageState: operator.storageState(site.base) }, async (page) => {
      await page.goto("/tokens");
      await page.evaluate(
        "document.querySelectorAll('[name=form-token]').forEach((field) => field.remove())",
      );
      await page.getByRole("button", { name: "Revoke prometheus" }).click();
      expect(await headings(page)).toBe("Send it again");
      await page.goto("/tokens");
      expect(await page.getByRole("button", { name: "Revoke prometheus" }).count()).toBe(1);
    });
  });

  it("a partner lands on its own crawler, and sees nothing else", async () => {
    const link = await linkFor({ name: "chris", role: "partner", crawlers: ["athens"] });
    await site.withPage({}, async (page) => {
      await page.goto(link);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.waitForURL("**/crawlers/athens");
      const sections = page.getByRole("navigation", { name: "Sections" }).locator("a");
      expect(await sections.allTextContents()).toEqual(["athens", "About this crawler"]);
      for (const path of ["/crawlers/berlin", "/fleet", "/audit", "/access"]) {
        const status = (await page.goto(path))?.status();
        expect([path, status === 403 || status === 404]).toEqual([path, true]);
      }
      await page.goto("/");
      expect(page.url()).toBe(`${site.base}/crawlers/athens`);
    });
  });

  const pages = {
    "sign-in": "/sign-in",
    account: "/account",
    access: "/access",
    tokens: "/tokens",
    audit: "/audit",
    "audit-none": "/audit?actor=nobody",
    over: "/sign-in/over",
  } as const;
  it("every page fits a desk and a telephone, and axe finds nothing, in light and dark", async () => {
    const { storageState } = await signIn(database, "operator");
    const link = new URL(await linkFor({ minutes: 60 })).pathname;
    await site.withPage({ storageState: storageState(site.base), bypassCSP: true }, async (page) => {
      for (const [name, path] of Object.entries({ ...pages, link })) {
        await page.goto(path);
        if (name === "audit") await page.locator("summary").first().click();
        await looksRight(page, name);
      }
    });
  });
});

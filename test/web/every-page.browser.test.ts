/**
 * Every page of the server in a real browser: it fits desktop, phone and a screen zoomed to 400 %, has no errors, and
 * axe finds nothing on it, in light and dark. New pages must be listed here.
 */
import type { FastifyInstance } from "fastify";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { numberChanges } from "#coordinator/crawl/changes/change-writes";
import { changeKinds } from "#coordinator/crawl/changes/changes-api";
import { createChannelStore } from "#coordinator/crawl/channels/channel-store";
import { readChannel } from "#coordinator/crawl/frontier/channel";
import type { Database } from "#db/server-database";
import { browserPath } from "../support/browser.ts";
import { type BrowserSite, browserSite, looksRight } from "../support/browser-page.ts";
import { testDatabase } from "../support/database.ts";
import { everyPart } from "../support/every-part.ts";
import { publishedRelease } from "../support/releases.ts";
import { seedChange, seenAt } from "../support/seed-changes.ts";
import { seedFleet } from "../support/seed-fleet.ts";
import { seedOperation } from "../support/seed-operation.ts";
import { seedPage, seedUrl, seedWorld } from "../support/seed-world.ts";
import { signIn } from "../support/signed-in.ts";
import { routesOf, webServer } from "../support/web-server.ts";

const executable = browserPath();
const host = "www.example.org";
const url = encodeURIComponent(`https://${host}/`);

/** The addresses to visit of each page; several where it differs between them. */
const pages: Readonly<Record<string, readonly string[]>> = {
  "/": ["/"],
  "/about-crawler": ["/about-crawler"],
  "/account": ["/account"],
  "/accuracy": ["/accuracy"],
  "/alerts": ["/alerts"],
  "/api": ["/api", "/api?operation=search"],
  "/changes": ["/changes"],
  "/channels": ["/channels"],
  "/coordinators": ["/coordinators"],
  "/coverage": ["/coverage"],
  "/crawlers/:name": ["/crawlers/athens", "/crawlers/berlin"],
  "/crawlers/:name/kill": ["/crawlers/athens/kill"],
  "/crawlers/:name/log": ["/crawlers/athens/log"],
  "/explore": [
    "/explore",
    "/explore?view=tree&at=1.2.0.0/16",
    "/explore?view=list",
    "/explore?view=countries",
  ],
  "/find": ["/find?q=a"],
  "/fleet": ["/fleet"],
  "/fleet/complaints": ["/fleet/complaints"],
  "/fleet/failures": ["/fleet/failures"],
  "/fleet/in-hand": ["/fleet/in-hand"],
  "/fleet/incidents": ["/fleet/incidents"],
  "/fleet/invitations": ["/fleet/invitations"],
  "/fleet/invite": ["/fleet/invite"],
  "/fleet/moves": ["/fleet/moves"],
  "/fleet/opt-outs": ["/fleet/opt-outs"],
  "/fleet/opt-outs/preview": ["/fleet/opt-outs/preview?target=www.example.org"],
  "/fleet/queue": ["/fleet/queue"],
  "/fleet/recrawl": ["/fleet/recrawl"],
  "/fleet/site-caps": ["/fleet/site-caps"],
  "/fleet/trust": ["/fleet/trust"],
  "/fleet/versions": ["/fleet/versions"],
  "/graph": ["/graph"],
  "/pages": [`/pages?url=${url}ferry`, "/pages"],
  "/policies": ["/policies?show=all"],
  "/reports/coverage": ["/reports/coverage"],
  "/reports/crawlers": ["/reports/crawlers"],
  "/reports/organisations": ["/reports/organisations"],
  "/reports/placement": ["/reports/placement"],
  "/reports/subnets": ["/reports/subnets"],
  "/search": ["/search?q=ferry&explain=1"],
  "/sites": ["/sites"],
  "/sites/:host": [`/sites/${host}`, `/sites/${host}?part=pages`, `/sites/${host}?part=changes`],
  "/storage": ["/storage"],
  "/submit": ["/submit"],
  "/who": ["/who", `/who?q=${url}`, "/who?q=1.2.0.0/16", "/who?q=country:GR"],
};

/** Their states need preparation: tested in their own folders. */
const elsewhere = [
  ...["/access", "/audit", "/sign-in", "/sign-in/:link", "/tokens"],
  ...["/registry", "/registry/jobs", "/registry/jobs/:jobId", "/registry/plans/:jobId"],
  ...["/fleet/invitations/:number", "/submissions/:number"],
];
/** Not visited by people. */
const noPages = ["/assets/:name", "/releases/:digest", "/events", "/health", "/ready", "/metrics"];

describe.skipIf(executable === null)("in a browser", { timeout: 180_000 }, () => {
  let database: Database;
  let app: FastifyInstance;
  let shown: BrowserSite;
  let page: Page;

  beforeAll(async () => {
    database = await testDatabase();
    const { pool } = database;
    await seedWorld(pool);
    await seedOperation(pool);
    await seedFleet(pool);
    await seedUrl(pool, { url: `https://${host}/ferry` });
    await seedPage(pool, {
      url: `https://${host}/ferry`,
      title: "Ferry",
      text: "The ferry leaves at seven.",
    });
    await seedChange(pool, { url: `https://${host}/ferry`, title: "Ferry" });
    for (const kind of changeKinds)
      await seedChange(pool, { url: `https://a.example/docs/${"long-".repeat(30)}${kind}`, kind });
    await numberChanges(pool, seenAt);
    const docs = { prefixes: ["a.example/docs/", "a.example/news/"], seeds: ["https://a.example/docs/"] };
    const filters = { include: ["/docs/*.html$"], exclude: ["/docs/old/"], maxDepth: 4 };
    await createChannelStore(pool).add(readChannel({ ...docs, ...filters }), seenAt);
    await publishedRelease(pool, { version: "1.4.0", stage: "percent" });
    app = webServer(database, { parts: await everyPart(database) });
    shown = await browserSite(app, executable!);
    const { storageState } = await signIn(database, "operator");
    page = await shown.open({ storageState: storageState(shown.base), bypassCSP: true });
  });
  afterAll(async () => {
    await shown?.close();
    await database?.close();
  });

  it("covers every page of the server", () => {
    const paths = routesOf(app)
      .filter(({ methods }) => methods.includes("GET"))
      .map(({ path }) => path);
    const known = [...Object.keys(pages), ...elsewhere, ...noPages].sort();

    expect(paths.filter((path) => !/\.\w+$|^\/api\/.|^\/\.well-known/.test(path)).sort()).toEqual(known);
  });

  it.each(["/no-such-page", "/who?q=Exampel+Netwroks", "/sites/nobody.example"])(
    "%s, which is not there, is told of as well",
    async (address) => {
      expect((await page.goto(address))?.status()).toBe(404);
      await looksRight(page, "not-there");
    },
  );

  it.each(Object.entries(pages))(
    "%s fits, has no fault, and axe finds nothing on it",
    async (path, addresses) => {
      for (const [number, address] of addresses.entries()) {
        const status = (await page.goto(address))?.status();

        expect([status, await page.locator("h1").count()]).toEqual([200, 1]);
        await looksRight(page, `${path.slice(1).replace(/\W+/g, "-") || "overview"}${number || ""}`);
      }
      expect(shown.takeFaults()).toEqual([]);
    },
  );
});

/** What people do about alerts, by the page, over HTTP and by the command: acknowledge, reopen, test a channel. */
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createAlertStore } from "#coordinator/alerts/alert-store";
import { alertPart } from "#coordinator/alerts/start";
import { noteAlerts } from "#coordinator/alerts/tell-alerts";
import { readCoordinatorConfig } from "#coordinator/config";
import { createAuditLog } from "#coordinator/database/audit-log";
import { createReports } from "#coordinator/who/reads";
import { createNameResolver } from "#core/name-resolver";
import type { Database } from "#db/server-database";
import { alertsCommand } from "#ops/cli/commands/alerts";
import { inProcess } from "../support/command-in-process.ts";
import { testDatabase } from "../support/database.ts";
import { seedWorld, worldNow } from "../support/seed-world.ts";
import { bearerOf, formBy, signIn } from "../support/signed-in.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { mainOf, webServer } from "../support/web-server.ts";

let database: Database;
let app: ReturnType<typeof webServer>;
let headers: { readonly authorization: string };
let file = "";
let received = 0;
const receiver = createServer((request, response) => {
  received += 1;
  request.resume().on("end", () => response.writeHead(204).end());
});

beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
  await database.pool.query(
    "update crawler set state = 'offline', last_seen_at = now() - interval '3 hours'",
  );
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const { port } = receiver.address() as AddressInfo;
  const alerts = {
    webhooks: [
      {
        ...{ name: "pager", url: `http://127.0.0.1:${port}/secret-path`, allowSpecialPurpose: true },
        secret: `whsec_${Buffer.alloc(32, 7).toString("base64")}`,
      },
    ],
  };
  file = join(temporaryFolder("alerts-"), "coordinator.json");
  writeFileSync(file, JSON.stringify({ alerts }));
  const config = readCoordinatorConfig({ alerts });
  const resolver = createNameResolver({ servers: [] });
  app = webServer(database, { parts: [alertPart({ pool: database.pool, config, resolver })] });
  headers = await bearerOf(database, ["read", "fleet-write"]);
  const reads = createReports(database.pool, () => performance.now());
  await noteAlerts(
    {
      ...{ store: createAlertStore(database.pool), channels: [], newId: () => "msg", chance: () => 0 },
      facts: async (now) => await reads.alertFacts(now),
      now: () => worldNow,
    },
    { digestMs: 0, againMs: 0 },
  );
});
afterAll(async () => {
  await app?.close();
  await new Promise((resolve) => receiver.close(resolve));
  await database?.close();
});

const run = async (...words: string[]) =>
  await inProcess(await alertsCommand(), [
    ...[...words, "--database-url", database.url, "--schema", database.schema, "--home", "/nonexistent"],
  ]);
const list = async () => (await app.inject({ url: "/api/alerts", headers })).json();
const namesOf = async () => (await list()).alerts.map(({ name }: { name: string }) => name);

it("what is acknowledged is listed apart, counts no more, and is reopened", async () => {
  const before = await namesOf();
  const acknowledged = await run("ack", "no-crawler-connected", "--note", "calling them");
  const during = await list();
  const text = await run();
  const reopened = await app.inject({
    method: "POST",
    url: "/api/alerts/no-crawler-connected/reopen",
    headers,
    payload: {},
  });
  const twice = await run("reopen", "no-crawler-connected");
  const [none, unknown] = [await run("ack", "disk-full"), await run("ack", "no-such-alert")];

  expect(before).toContain("no-crawler-connected");
  expect(acknowledged).toMatchObject({
    code: 0,
    out: expect.stringContaining("is acknowledged: calling them"),
  });
  expect(during.alerts.map(({ name }: { name: string }) => name)).not.toContain("no-crawler-connected");
  expect(during.acknowledged).toMatchObject([{ name: "no-crawler-connected", note: "calling them" }]);
  expect(text.out).toMatch(
    /acknowledged\n[\s\S]*no-crawler-connected +None of \d+ registered crawlers.*calling them/,
  );
  expect(reopened.statusCode).toBe(200);
  expect(await namesOf()).toEqual(before);
  expect([twice.code, none.code, unknown.code]).toEqual([3, 3, 3]);
  const { entries } = await createAuditLog(database.pool).list({ limit: 5 });
  expect(entries.map(({ action }) => action)).toEqual(["alert-reopened", "alert-acknowledged"]);
});

it("the page shows the runbook's paragraph, since when, and forms to operators; notes are escaped", async () => {
  const operator = await signIn(database, "operator");
  const staff = await signIn(database, "staff");
  const page = async (by: typeof operator) =>
    (await app.inject({ url: "/alerts", headers: by.headers })).body;
  const before = await page(operator);
  const sent = await app.inject(
    formBy(operator, "/alerts/no-crawler-connected/acknowledge", { note: "<b>\u202eme" }),
  );
  const [shown, seen] = [await page(operator), await page(staff)];
  await run("reopen", "no-crawler-connected");

  expect(sent.statusCode).toBe(303);
  expect(shown).toContain("<bdi>&lt;b&gt;\u202eme</bdi>");
  expect(shown).toContain("Reopen no-crawler-connected");
  expect(shown).toContain("Nothing is crawled. Can partners reach the coordinator");
  expect(before).toContain('action="/alerts/no-crawler-connected/acknowledge"');
  expect(seen).toContain("Acknowledged by");
  expect(mainOf(seen)).not.toContain("<form");
});

it("a channel is tested by page, API and command, once in half a minute; its secrets are shown nowhere", async () => {
  const test = async () =>
    await app.inject({ method: "POST", url: "/api/alerts/channels/pager/test", headers, payload: {} });
  const [first, second] = [await test(), await test()];
  await database.pool.query("update alert_channel set tested_at = now() - interval '31 seconds'");
  const typed = await run("test", "pager", "--config", file);
  const unknown = await run("test", "other", "--config", file);
  const operator = await signIn(database, "operator");
  const page = await app.inject({ url: "/alerts", headers: operator.headers });

  expect(first.json()).toEqual({ channel: "pager", delivered: true, words: "" });
  expect(second.statusCode).toBe(429);
  expect(typed).toMatchObject({ code: 0, out: expect.stringContaining("A test was delivered to pager.") });
  expect(unknown).toMatchObject({ code: 3, err: expect.stringContaining("no channel other") });
  expect(received).toBe(2);
  expect(page.body).toContain('action="/alerts/channels/pager/test"');
  expect(page.body).not.toMatch(/secret-path|whsec/);
  expect(JSON.stringify(await list())).not.toMatch(/secret-path|whsec/);
});

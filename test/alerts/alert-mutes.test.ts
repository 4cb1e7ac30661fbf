/** Alerts are muted and told again: by the command, over HTTP and by the page; and what the new rules read of the database. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { alertPart } from "#coordinator/alerts/start";
import { readCoordinatorConfig } from "#coordinator/config";
import { createAuditLog } from "#coordinator/database/audit-log";
import { describeApi } from "#coordinator/open-api";
import { createReports } from "#coordinator/who/reads";
import { createNameResolver } from "#core/name-resolver";
import type { Database } from "#db/server-database";
import { alertsCommand } from "#ops/cli/commands/alerts";
import { inProcess } from "../support/command-in-process.ts";
import { testDatabase } from "../support/database.ts";
import { faultsOf, type JsonSchema } from "../support/schema-check.ts";
import { seedWorld } from "../support/seed-world.ts";
import { bearerOf, formBy, signIn } from "../support/signed-in.ts";
import { mainOf, webServer } from "../support/web-server.ts";

let database: Database;
let app: ReturnType<typeof webServer>;
let headers: { readonly authorization: string };
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
  await database.pool.query(
    "update crawler set state = 'offline', last_seen_at = now() - interval '3 hours'",
  );
  app = webServer(database, {
    parts: [
      alertPart({
        pool: database.pool,
        config: readCoordinatorConfig({}),
        resolver: createNameResolver({ servers: [] }),
      }),
    ],
  });
  headers = await bearerOf(database, ["read", "fleet-write"]);
});
afterAll(async () => {
  await app?.close();
  await database?.close();
});

const run = async (...words: string[]) => {
  const place = ["--database-url", database.url, "--schema", database.schema, "--home", "/nonexistent"];
  return await inProcess(alertsCommand(), [...words, ...place]);
};
const told = async () => JSON.parse((await run("--json")).out);
const namesOf = async () => (await told()).alerts.map(({ name }: { name: string }) => name);

it("the command mutes with an end and a reason, says what is muted, and tells it again", async () => {
  const before = await namesOf();
  const muted = await run("mute", "no-crawler-connected", "--hours", "2", "--reason", "the line is cut");
  const during = await run();
  const after = await namesOf();
  const again = await run("unmute", "no-crawler-connected");
  const twice = await run("unmute", "no-crawler-connected");
  const wrong = [
    await run("mute", "no-such-alert", "--reason", "x"),
    await run("mute", "incidents"),
    await run("mute", "incidents", "--reason", "x", "--hours", "9999"),
  ];

  expect(before).toContain("no-crawler-connected");
  expect(muted).toMatchObject({ code: 0, out: expect.stringContaining("is muted until") });
  expect(after).not.toContain("no-crawler-connected");
  expect(during.out).toMatch(/muted\n[\s\S]*no-crawler-connected .*the line is cut/);
  expect([again.code, twice.code]).toEqual([0, 3]);
  expect(wrong.map(({ code }) => code)).toEqual([3, 2, 2]);
  expect(wrong[0]!.err).toContain("known are data-folder-gone, database-does-not-answer");
});

it("over HTTP, as the API's description says, and not without the scope; the audit log has it", async () => {
  const { schemas } = describeApi().components as { schemas: Record<string, JsonSchema> };
  const post = async (url: string, payload: object, by: object = headers) =>
    await app.inject({ method: "POST", url, headers: { ...by }, payload });

  const body = { target: "berlin", hours: 1, reason: "it moves" };
  const muted = await post("/api/alerts/crawler-offline/mute", body);
  const list = (await app.inject({ url: "/api/alerts", headers })).json();
  const answers = [
    (await post("/api/alerts/nothing/mute", body)).statusCode,
    (await post("/api/alerts/crawler-offline/mute", { ...body, hours: 0 })).statusCode,
    (await post("/api/alerts/crawler-offline/mute", { ...body, reason: " " })).statusCode,
    (await post("/api/alerts/crawler-offline/mute", body, {})).statusCode,
    (await post("/api/alerts/crawler-offline/unmute", { target: "berlin" })).statusCode,
    (await post("/api/alerts/crawler-offline/unmute", { target: "berlin" })).statusCode,
  ];
  const { entries } = await createAuditLog(database.pool).list({ limit: 2 });

  expect(muted.statusCode).toBe(200);
  expect(faultsOf(muted.json(), { $ref: "#/components/schemas/AlertMute" }, schemas)).toEqual([]);
  expect(faultsOf(list, { $ref: "#/components/schemas/AlertList" }, schemas)).toEqual([]);
  expect(answers).toEqual([404, 400, 400, 401, 200, 404]);
  expect(entries.map(({ action, target }) => [action, target])).toEqual([
    ["alert-unmuted", "crawler-offline of berlin"],
    ["alert-muted", "crawler-offline of berlin"],
  ]);
});

it("an operator mutes on the page; staff see what is muted and no form", async () => {
  const operator = await signIn(database, "operator");
  const staff = await signIn(database, "staff");
  const page = async (by: typeof operator) =>
    (await app.inject({ url: "/alerts", headers: by.headers })).body;

  const before = await page(operator);
  const fields = { hours: "24", reason: "known & <noted>" };
  const sent = await app.inject(formBy(operator, "/alerts/no-crawler-connected/mute", fields));
  const after = await page(operator);
  const seen = await page(staff);

  expect(before).toContain('action="/alerts/no-crawler-connected/mute"');
  expect([sent.statusCode, sent.headers.location]).toEqual([303, "/alerts"]);
  expect(after).toContain("known &amp; &lt;noted&gt;");
  expect(after).toContain("Unmute no-crawler-connected");
  expect(seen).toContain("Muted");
  expect(mainOf(seen)).not.toContain("<form");
});

it("who joined and never ran, and who runs without work, is read with the reason", async () => {
  const { pool } = database;
  const facts = async () =>
    (await createReports(pool, () => performance.now() + 1e9 * Math.random()).alertFacts(new Date()))
      .crawlers;
  await pool.query(
    `update crawler set public_key = 'key of athens', release_version = null, connected_at = null where name = 'athens';
     insert into invitation (secret_hash, name, created_by, created_at, expires_at, redeemed_at)
     values ('hash', 'athens', 'anna', now() - interval '1 day', now() + interval '1 day', now() - interval '1 hour');
     insert into crawler_key (crawler_id, key_hash) select crawler_id, 'idle' from crawler where name = 'berlin';
     update frontier_host set subnet_id = (
         select min(delegation.subnet_id) from delegation join crawler using (crawler_id) where name = 'berlin'
       ), finer_id = null, state = 'resolved', lease_id = null, due_at = now() - interval '2 hours', not_before = '-infinity';
     update crawler set state = 'online', connected_at = now() - interval '2 hours', heartbeat = '{}' where name = 'berlin'`,
  );
  const due = await facts();
  await pool.query(
    "delete from delegation where crawler_id = (select crawler_id from crawler where name = 'berlin'); delete from finer_delegation",
  );
  const none = await facts();
  await pool.query(
    `update crawler set heartbeat = '{"holdingBack": ["its host has paused it"]}' where name = 'berlin'`,
  );
  const held = await facts();

  const of = (all: typeof due, name: string) => all.find((one) => one.name === name);
  expect(of(due, "athens")).toMatchObject({
    neverRan: true,
    joinedMs: expect.any(Number),
    connectedMs: null,
  });
  expect(of(due, "berlin")?.idleWhy).toBe("hosts of its subnets have been due for an hour");
  expect(of(none, "berlin")?.idleWhy).toBe("no subnet is its own");
  expect(of(held, "berlin")?.idleWhy).toBeNull();
});

it.each([
  ["was connected and runs no release", "connected_at = now() - interval '2 hours'", false],
  [
    "only probes, and was connected",
    "connected_at = now() - interval '2 hours', probe_methods = '{icmp}'",
    false,
  ],
  ["drained and left", "connected_at = now() - interval '2 hours', draining_since = now()", false],
  ["is connected", "connected_at = now(), state = 'online'", false],
  [
    "only said that it waits for a release",
    "connected_at = now(), offline_reason = 'goodbye: it waits for a release'",
    true,
  ],
  ["was never connected", "connected_at = null", true],
  [
    "was there before the database went back, which may have lost that",
    "created_at = now() - interval '2 days'",
    false,
  ],
])("of a crawler that %s it is told whether it never ran", async (_, change, neverRan) => {
  const { pool } = database;
  await pool.query(
    `update crawler set public_key = 'key of athens', release_version = null, connected_at = null, state = 'offline',
       offline_reason = null, draining_since = null, created_at = now() where name = 'athens';
     update crawler set ${change} where name = 'athens';
     insert into database_epoch (epoch, database_id, began_at, cause, words)
     select max(epoch) + 1, (array_agg(database_id))[1], now() - interval '1 day', 'timeline', 'restored' from database_epoch`,
  );

  const { crawlers } = await createReports(pool, () => performance.now()).alertFacts(new Date());

  expect(crawlers.find(({ name }) => name === "athens")).toMatchObject({ neverRan });
});

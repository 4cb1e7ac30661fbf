/** People's actions on alerts by page, HTTP and command: acknowledge, mute, test a channel; and the facts that rules read. */
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { createAuditLog } from "#coordinator/database/audit-log";
import { describeApi } from "#coordinator/open-api";
import { createAlertStore } from "#coordinator/tell/overview/alerts/alert-store";
import { alertPart } from "#coordinator/tell/overview/alerts/start";
import { noteAlerts } from "#coordinator/tell/overview/alerts/tell-alerts";
import { createNameResolver } from "#core/name-resolver";
import type { Database } from "#db/server-database";
import { commandNamed, inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { everyRead } from "../../support/every-read.ts";
import { faultsOf, type JsonSchema } from "../../support/schema-check.ts";
import { seedWorld, worldNow } from "../../support/seed-world.ts";
import { bearer, formBy, signIn } from "../../support/signed-in.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { mainOf, webServer } from "../../support/web-server.ts";

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
  headers = await bearer(database, ["read", "fleet-write"], { name: "ci" });
  const reads = everyRead(database.pool, () => performance.now());
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

const run = async (...words: string[]) => {
  const place = ["--database-url", database.url, "--schema", database.schema, "--home", "/nonexistent"];
  return await inProcess(commandNamed("alerts"), [...words, ...place]);
};
const list = async () => (await app.inject({ url: "/api/alerts", headers })).json();
const namesOf = async () => (await list()).alerts.map(({ name }: { name: string }) => name);
const post = async (what: string, payload: object = {}, by: object = headers) =>
  await app.inject({ method: "POST", url: `/api/alerts/${what}`, headers: { ...by }, payload });
const deedsOf = async (limit: number) => {
  const { entries } = await createAuditLog(database.pool).list({ limit });
  return entries.map(({ action, target }) => `${action} ${target}`);
};

it.each([
  {
    ...{
      deed: "ack",
      undo: "reopen",
      words: ["--note", "calling them"],
      done: "is acknowledged: calling them",
    },
    shown: /Acknowledged\n[\s\S]*no-crawler-connected +None of \d+ registered crawlers.*calling them/,
    noted: ["alert-reopened no-crawler-connected", "alert-acknowledged no-crawler-connected"],
    wrong: [
      [3, "ack", "disk-full"],
      [3, "ack", "no-such-alert"],
    ],
  },
  {
    ...{ deed: "mute", undo: "unmute", done: "is muted until" },
    words: ["--hours", "2", "--reason", "the line is cut"],
    shown: /Muted\n[\s\S]*no-crawler-connected .*the line is cut/,
    noted: ["alert-unmuted no-crawler-connected", "alert-muted no-crawler-connected"],
    wrong: [
      [2, "mute", "incidents"],
      [2, "mute", "incidents", "--reason", "x", "--hours", "9999"],
      [3, "mute", "no-such-alert", "--reason", "x"],
    ],
  },
] as const)(
  "$deed lists the alert apart with the person's words and stops counting it, until $undo",
  async ({ deed, undo, words, done, shown, noted, wrong }) => {
    const before = await namesOf();
    const answer = await run(deed, "no-crawler-connected", ...words);
    const [during, text] = [await namesOf(), await run()];
    const undone = [await run(undo, "no-crawler-connected"), await run(undo, "no-crawler-connected")];

    expect(before).toContain("no-crawler-connected");
    expect(answer).toMatchObject({ code: 0, out: expect.stringContaining(done) });
    expect(during).not.toContain("no-crawler-connected");
    expect(text.out).toMatch(shown);
    expect(undone.map(({ code }) => code)).toEqual([0, 3]);
    expect(await namesOf()).toEqual(before);
    expect(await deedsOf(2)).toEqual(noted);
    for (const [code, ...one] of wrong) expect((await run(...one)).code, one.join(" ")).toBe(code);
  },
);

it("the API answers as described, requires the scope, and writes the audit log", async () => {
  const { schemas } = describeApi().components as { schemas: Record<string, JsonSchema> };
  const body = { target: "berlin", hours: 1, reason: "it moves" };
  const muted = await post("crawler-offline/mute", body);
  const told = await list();
  const answers = [
    await post("nothing/mute", body),
    await post("crawler-offline/mute", { ...body, hours: 0 }),
    await post("crawler-offline/mute", { ...body, reason: " " }),
    await post("crawler-offline/mute", body, {}),
    await post("crawler-offline/unmute", { target: "berlin" }),
    await post("crawler-offline/unmute", { target: "berlin" }),
    await post("no-crawler-connected/acknowledge", { note: "seen" }),
    await post("no-crawler-connected/reopen"),
  ];

  expect(muted.statusCode).toBe(200);
  expect(faultsOf(muted.json(), { $ref: "#/components/schemas/AlertMute" }, schemas)).toEqual([]);
  expect(faultsOf(told, { $ref: "#/components/schemas/AlertList" }, schemas)).toEqual([]);
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([404, 400, 400, 401, 200, 404, 200, 200]);
  expect((await deedsOf(4)).slice(2)).toEqual([
    "alert-unmuted crawler-offline of berlin",
    "alert-muted crawler-offline of berlin",
  ]);
});

it("the page shows operators the runbook and forms, escapes what they write, and shows staff no form", async () => {
  const operator = await signIn(database, "operator");
  const staff = await signIn(database, "staff");
  const page = async (by: typeof operator) =>
    (await app.inject({ url: "/alerts", headers: by.headers })).body;
  const send = async (deed: string, values: Record<string, string>) =>
    await app.inject(formBy(operator, `/alerts/no-crawler-connected/${deed}`, values));

  const before = await page(operator);
  const acknowledged = await send("acknowledge", { note: "<b>\u202eme" });
  const [noted, seen] = [await page(operator), await page(staff)];
  await run("reopen", "no-crawler-connected");
  const sent = await send("mute", { hours: "24", reason: "known & <noted>" });
  const [muted, seenMuted] = [await page(operator), await page(staff)];
  await run("unmute", "no-crawler-connected");

  expect(before).toContain("Can partners reach the coordinator");
  for (const deed of ["acknowledge", "mute"])
    expect(before).toContain(`action="/alerts/no-crawler-connected/${deed}"`);
  expect([acknowledged.statusCode, sent.statusCode, sent.headers.location]).toEqual([303, 303, "/alerts"]);
  expect(noted).toContain("<bdi>&lt;b&gt;\u202eme</bdi>");
  expect(noted).toContain("Reopen no-crawler-connected");
  expect(muted).toContain("known &amp; &lt;noted&gt;");
  expect(muted).toContain("Unmute no-crawler-connected");
  expect(seen).toContain("Acknowledged by");
  expect(seenMuted).toContain("Muted");
  for (const one of [seen, seenMuted]) expect(mainOf(one)).not.toContain("<form");
});

it("a channel is tested by API and command, once in half a minute, and its secrets are never shown", async () => {
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

it("the facts name crawlers that never ran, those without work with the reason, and full disks", async () => {
  const { pool } = database;
  const facts = async () =>
    (await everyRead(pool, () => performance.now() + 1e9 * Math.random()).alertFacts(new Date())).crawlers;
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
  const disks: unknown[] = [];
  for (const said of [
    { diskFault: "the disk is full (ENOSPC)", diskFreeBytes: 0 },
    { holdingBack: ["the spool cannot be written: the disk is full (ENOSPC)"] },
    { diskFreeBytes: 200e6, diskFault: null },
  ]) {
    await pool.query("update crawler set heartbeat = $1 where name = 'berlin'", [said]);
    const { diskFault, diskFreeBytes } = (await facts()).find(({ name }) => name === "berlin")!;
    disks.push([diskFault, diskFreeBytes]);
  }

  const of = (all: typeof due, name: string) => all.find((one) => one.name === name);
  expect(of(due, "athens")).toMatchObject({
    neverRan: true,
    joinedMs: expect.any(Number),
    connectedMs: null,
  });
  expect(of(due, "berlin")?.idleWhy).toBe("hosts of its subnets have been due for an hour");
  expect(of(none, "berlin")?.idleWhy).toBe("no subnet is its own");
  expect(of(held, "berlin")?.idleWhy).toBeNull();
  // Older versions report a full disk among what holds them back.
  expect(disks).toEqual([
    ["the disk is full (ENOSPC)", 0],
    ["the disk is full (ENOSPC)", null],
    [null, 200e6],
  ]);
});

const connected = "connected_at = now() - interval '2 hours'";
it.each([
  ["was connected and runs no release", connected, false],
  ["only probes, and was connected", `${connected}, probe_methods = '{icmp}'`, false],
  ["drained and left", `${connected}, draining_since = now()`, false],
  ["is connected", "connected_at = now(), state = 'online'", false],
  ["only said that it waits for a release", "connected_at = now(), offline_code = 'awaits-release'", true],
  ["was never connected", "connected_at = null", true],
  [
    "is older than a restore, which may have lost its connection",
    "created_at = now() - interval '2 days'",
    false,
  ],
])("whether it never ran is known of a crawler that %s", async (_, change, neverRan) => {
  const { pool } = database;
  await pool.query(
    `update crawler set public_key = 'key of athens', release_version = null, connected_at = null, state = 'offline',
       offline_reason = null, offline_code = null, draining_since = null, created_at = now() where name = 'athens';
     update crawler set ${change} where name = 'athens';
     insert into database_epoch (epoch, database_id, began_at, cause, words)
     select max(epoch) + 1, (array_agg(database_id))[1], now() - interval '1 day', 'timeline', 'restored' from database_epoch`,
  );

  const { crawlers } = await everyRead(pool, () => performance.now()).alertFacts(new Date());

  expect(crawlers.find(({ name }) => name === "athens")).toMatchObject({ neverRan });
});

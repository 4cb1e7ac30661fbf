/** Commands in a home with a running coordinator use its socket and print the same as without one. */
import { statSync } from "node:fs";
import { Client } from "undici";
import { afterAll, beforeAll, expect, it, type Mock } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { createAuditLog } from "#coordinator/database/audit-log";
import { type RunningCoordinator, startCoordinator } from "#coordinator/main";
import { changesPerMinute } from "#coordinator/web/rate-limits";
import { silentLog } from "#core/log";
import type { Database } from "#db/server-database";
import { commandActor } from "#ops/cli/audit-command-change";
import { contextOfStart, socketPathOf, writeCurrentRun } from "#ops/cli/command-context";
import { commandNamed, inProcess } from "../support/command-in-process.ts";
import { testDatabase } from "../support/database.ts";
import { seedPage, seedWorld } from "../support/seed-world.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

const home = temporaryFolder("nearcrawl-socket-");
let database: Database;
let coordinator: RunningCoordinator | null = null;
let place: readonly string[];
const ferry = "https://www.example.org/ferry";
beforeAll(async () => {
  database = await testDatabase();
  await seedWorld(database.pool);
  await seedPage(database.pool, { url: ferry, title: "Ferry", text: "The harbour." });
  place = ["--home", home, "--database-url", database.url, "--schema", database.schema];
  const config = readCoordinatorConfig({ listen: { host: "127.0.0.1", port: 0 } });
  const socketPath = socketPathOf(home);
  coordinator = await startCoordinator({ config, database, log: silentLog, version: "test", socketPath });
  const context = contextOfStart({ home, databaseUrl: database.url, schema: database.schema });
  const { webUrl } = coordinator;
  const run = { schema: database.schema, webUrl, pid: process.pid, resolvers: [], settingsFile: null };
  writeCurrentRun(context, run);
});
afterAll(async () => {
  await coordinator?.stop();
  await database?.close();
});

const overview = async () =>
  JSON.parse((await inProcess(commandNamed("overview"), [...place, "--json"])).out) as {
    startedAt: string | null;
  };

it("is for the owner of the home folder, who may do everything, under their name", async () => {
  const words = ["set", "slow.example", "--seconds", "10", "--words", "by phone"];
  const { code, out } = await inProcess(commandNamed("site-caps"), [...words, ...place]);
  const { entries } = await createAuditLog(database.pool).list({ limit: 1 });

  expect([code, out]).toEqual([
    0,
    expect.stringContaining("slow.example gets at most one request every 10 s"),
  ]);
  expect(entries).toMatchObject([
    { action: "site-cap-set", actor: commandActor(), via: "command", remoteAddress: null },
  ]);
  expect((statSync(socketPathOf(home)).mode & 0o777).toString(8)).toBe("600");
});

it("does not limit the owner's scripts, however many changes they make in a minute", async () => {
  const client = new Client("http://localhost", { socketPath: socketPathOf(home) });
  const statuses = new Set<number>();
  for (let change = 0; change <= changesPerMinute; change++) {
    const sent = await client.request({
      ...{ method: "POST", path: "/api/fleet/site-caps/none.example/remove", body: "{}" },
      headers: { "content-type": "application/json" },
    });
    await sent.body.dump();
    statuses.add(sent.statusCode);
  }
  await client.close();

  expect([...statuses]).toEqual([404]);
});

it("makes nobody on the network an owner for claiming so", async () => {
  const headers = { "nearcrawl-actor": "root on here", "content-type": "application/json" };
  const body = JSON.stringify({ site: "other.example", seconds: 1 });
  const sent = await fetch(`${coordinator!.webUrl}/api/fleet/site-caps`, { method: "POST", headers, body });
  const read = await fetch(`${coordinator!.webUrl}/api/fleet/invitations`, { headers });

  expect([sent.status, read.status]).toEqual([401, 401]);
});

it("answers byte for byte like the command without a coordinator, from the running one's memory", async () => {
  const args: readonly (readonly [string, readonly string[]])[] = [
    ["who", ["1.2.3.4"]],
    ["who", ["nobody.example", "--json"]],
    ["page", [ferry]],
    ["page", [ferry, "--csv"]],
    ["search", ["harbour", "--explain"]],
    ["search", ["submarine"]],
    ["site-caps", ["list"]],
    ["site-caps", ["list", "--csv"]],
    ["site-caps", ["remove", "none.example"]],
    ["site-caps", ["set", "no site", "--seconds", "1"]],
  ];
  const all = async () => {
    const outcomes = [];
    for (const [command, words] of args)
      outcomes.push(await inProcess(commandNamed(command), [...words, ...place]));
    return outcomes.map(({ code, out, err }) => ({ code, out: out.replace(/"at": ".*"/g, ""), err }));
  };

  const note = async () =>
    JSON.parse((await inProcess(commandNamed("search"), ["harbour", "--json", ...place])).out).note;
  await until(async () => (await note()) === null, 60_000);

  const asked = await all();
  const { startedAt } = await overview();
  await coordinator!.stop();
  coordinator = null;

  expect(asked.map(({ code }) => code)).toEqual([0, 3, 0, 0, 0, 3, 0, 0, 3, 2]);
  expect(await all()).toEqual(asked);
  expect([startedAt, (await overview()).startedAt]).toEqual([expect.any(String), null]);
});

it("answers repeatedly while a command watches, until it is interrupted", async () => {
  const before = new Set(process.listeners("SIGINT"));
  const watching = inProcess(commandNamed("site-caps"), ["list", "--csv", "--watch", "0.5", ...place]);
  // What runs in the process writes to a spy.
  const printed = () => (process.stdout.write as { readonly mock?: Mock["mock"] }).mock?.calls.length ?? 0;
  await until(() => printed() > 1, 60_000);
  // The signal itself would also reach whatever else listens in the tests' process.
  for (const listener of process.listeners("SIGINT")) if (!before.has(listener)) listener("SIGINT");

  const { code, out } = await watching;
  const tooOften = await inProcess(commandNamed("site-caps"), ["list", "--watch", "0", ...place]);

  expect(code).toBe(130);
  expect(out.match(/^site,/gm)?.length).toBeGreaterThan(1);
  expect(tooOften).toMatchObject({ code: 2, err: expect.stringContaining("--watch 0: must be") });
});

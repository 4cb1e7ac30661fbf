/**
 * A whole coordinator on a Postgres of its own, whose processes are stopped as by an operator's slip, a debugger or a disk
 * that hangs: what is wrong is told in two seconds by everybody who is asked, and all goes on when they go on.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { type RunningCoordinator, startCoordinator } from "#coordinator/main";
import { createCrawlerStore } from "#coordinator/place/crawlers/crawler-store";
import { createOperatorTokenStore } from "#coordinator/run/access/session-store";
import type { AlertList } from "#coordinator/tell/overview/alert-rules";
import { randomSecrets } from "#coordinator/web/secrets";
import { silentLog } from "#core/log";
import { openDatabase } from "#db/connect";
import { readPidFile, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { writeCurrentRun } from "#ops/cli/command-context";
import { doctorCommand } from "#ops/cli/commands/doctor";
import { pinOf } from "#protocol/identity";
import type { CrawlerHeartbeat } from "#protocol/messages";
import { RawCrawler } from "../gateway/raw-crawler.ts";
import { makeCertificate } from "../migrating-crawler/support/secure-origin.ts";
import { commandNamed, inProcess } from "../support/command-in-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

const run = promisify(execFile);
const home = temporaryFolder("nearcrawl-silent-database-");
const { secret: token, hash } = randomSecrets.make("nct_");
let database: Database;
let coordinator: RunningCoordinator;
const said: string[] = [];

beforeAll(async () => {
  database = await openDatabase({ databaseUrl: null, home, schema: "nearcrawl" });
  await migrate(database);
  const config = readCoordinatorConfig({ listen: { port: 0 }, access: { anonymous: "nothing" } });
  const note = (_: object, words: string) => void said.push(words);
  const log = { ...silentLog, info: note, warn: note };
  coordinator = await startCoordinator({ config, database, log, version: "test" });
  const { webUrl } = coordinator;
  writeCurrentRun(
    { home, databaseUrl: null },
    { schema: "nearcrawl", webUrl, pid: process.pid, resolvers: [] },
  );
  await createOperatorTokenStore(database.pool).create({
    ...{ name: "prometheus", tokenHash: hash, scopes: ["read", "metrics-read"] },
    ...{ createdAt: new Date(), expiresAt: null },
  });
}, 120_000);

afterAll(async () => {
  await coordinator?.stop();
  await database?.close();
  await stopEmbeddedPostgres(home);
}, 60_000);

async function ask(path: string, credentials = `Bearer ${token}`) {
  const beganMs = performance.now();
  const answer = await fetch(new URL(path, coordinator.webUrl), { headers: { authorization: credentials } });
  const text = await answer.text();
  return { status: answer.status, text, tookMs: performance.now() - beganMs };
}

const alerts = async () => JSON.parse((await ask("/api/alerts")).text) as AlertList;
const names = ({ alerts: told }: Pick<AlertList, "alerts">) => told.map(({ name }) => name);
/** The second that the database is given, and what a busy machine takes; a process that waited for it would never answer. */
const mostMs = 8000;
const silence = "the database does not answer within 1 s";

/** The postmaster and everything that it started. */
async function signalServer(signal: "SIGSTOP" | "SIGCONT"): Promise<void> {
  const { pid } = readPidFile(home)!;
  const { stdout } = await run("ps", ["-o", "pid=", "--ppid", String(pid)]);
  for (const one of [pid, ...stdout.trim().split(/\s+/).map(Number)]) process.kill(one, signal);
}

it("stopped processes of the database are told in seconds by all who are asked, and all is well when they go on", {
  timeout: 60_000,
}, async () => {
  const before = [await ask("/ready"), await ask("/metrics")];
  const stream = await fetch(new URL("/events", coordinator.webUrl), {
    headers: { authorization: `Bearer ${token}` },
  });
  await signalServer("SIGSTOP");
  try {
    const first = await Promise.all([ask("/ready"), ask("/api/alerts"), ask("/metrics")]);
    expect(before.map(({ status }) => status)).toEqual([200, 200]);
    expect(first[0]).toMatchObject({ status: 503, text: expect.stringContaining(silence) });
    expect(JSON.parse(first[0].text).faults[0]).toMatchObject({ code: "database-does-not-answer" });
    expect(first.map(({ tookMs }) => tookMs < mostMs)).toEqual([true, true, true]);

    // Restarts are shorter than that.
    await until(async () => names(await alerts()).includes("database-does-not-answer"), 8000);
    const list = await ask("/api/alerts");
    const page = await ask("/alerts");
    const metrics = await ask("/metrics");
    const stranger = await ask("/api/alerts", "Bearer nct_nobody");
    expect(JSON.parse(list.text)).toMatchObject({
      incomplete: silence,
      alerts: [
        { name: "database-does-not-answer", severity: "critical", words: expect.stringContaining("since") },
      ],
    });
    expect(page.text).toContain("This is not all: the database does not answer within 1 s.");
    expect(metrics.text).toContain("nearcrawl_database_up 0\n");
    await until(async () => {
      const { text } = await ask("/metrics");
      return text.includes('nearcrawl_alerts{name="database-does-not-answer",severity="critical"} 1\n');
    }, 4000);
    expect([stranger.status, stranger.text]).toEqual([503, expect.stringContaining("/ready tells anybody")]);
    for (const { tookMs } of [list, page, metrics, stranger]) expect(tookMs).toBeLessThan(mostMs);
    expect(await regionOf(stream)).toContain("database-does-not-answer");

    const beganMs = performance.now();
    const command = await inProcess(commandNamed("alerts"), ["--home", home]);
    const doctor = await inProcess(doctorCommand(), ["--home", home]);
    const tookMs = performance.now() - beganMs;
    expect(command.code).toBe(4);
    expect(command.out).toMatch(
      /^critical .*The database does not answer within 1 s, since \d\d:\d\d:\d\d UTC\./m,
    );
    expect(command.out).toContain(`asked ${coordinator.webUrl}: ${silence}`);
    expect(doctor.out).toContain(silence);
    expect(tookMs).toBeLessThan(15_000);
  } finally {
    await signalServer("SIGCONT");
  }
  await until(async () => (await ask("/ready")).status === 200, 10_000);
  await until(async () => (await alerts()).incomplete === null, 10_000);
  expect(names(await alerts())).not.toContain("database-does-not-answer");
  expect(said.filter((words) => /^the database (does not answer|answers again)/.test(words))).toEqual([
    "the database does not answer",
    "the database answers again",
  ]);
});

/** What the live page is sent of the alerts while it listens. */
async function regionOf(stream: Response): Promise<string> {
  const reader = stream.body!.getReader();
  const decoder = new TextDecoder();
  let text = "";
  await until(async () => {
    const { value } = await reader.read();
    text += decoder.decode(value, { stream: true });
    return text.includes("database-does-not-answer");
  }, 8000);
  await reader.cancel();
  return text;
}

it("a crawler whose disk takes nothing is named by its next heartbeat, one of an older version as well", {
  timeout: 150_000,
}, async () => {
  const heartbeat: CrawlerHeartbeat = {
    type: "crawler:heartbeat",
    ...{ openHosts: 0, spooledResults: 9, pages: 0, fetchedBytes: 0, shippedBytes: 0, holdingBack: [] },
  };
  const store = createCrawlerStore(database.pool);
  const come = async (name: string) => {
    const { secret: key, hash: keyHash } = randomSecrets.make();
    await store.register({ name, keyHash });
    const url = `${coordinator.webUrl.replace("http", "ws")}/crawler`;
    return await RawCrawler.arrive(url, name, { key, spoolId: randomUUID() });
  };
  const [now, old, nearly] = [await come("now"), await come("old"), await come("nearly")];
  const well = names(await alerts());
  await now.send({ ...heartbeat, diskFault: "the disk is full (ENOSPC)", diskFreeBytes: 0 });
  await old.send({ ...heartbeat, holdingBack: ["the spool cannot be written: the disk is full (ENOSPC)"] });
  await nearly.send({ ...heartbeat, diskFreeBytes: 200e6 });
  const told = async () => (await alerts()).alerts.find(({ name }) => name === "crawler-disk");
  await until(async () => (await told())?.count === 3, 60_000);

  expect(well).not.toContain("crawler-disk");
  expect((await told())?.words).toBe(
    "Crawlers whose disk is full or nearly full: nearly (200 MB free), now (the disk is full (ENOSPC)), old (the disk is full (ENOSPC)).",
  );
  for (const crawler of [now, old, nearly]) await crawler.send({ ...heartbeat, diskFreeBytes: 300e9 });
  await until(async () => (await told()) === undefined, 60_000);
  for (const crawler of [now, old, nearly]) crawler.disconnect();
});

it("a database that is nowhere is the first alert of the command, which says whom it could ask", async () => {
  const nowhere = ["--database-url", "postgresql://nobody@127.0.0.1:9/nothing"];
  const elsewhere = temporaryFolder("nearcrawl-nowhere-");
  const { code, out } = await inProcess(commandNamed("alerts"), ["--home", elsewhere, ...nowhere]);

  expect(code).toBe(4);
  expect(out).toMatch(/^critical .*The database does not answer \(ECONNREFUSED\), since /m);
  expect(out).toContain("no coordinator is known here to ask (--coordinator URL)");
});

it("a coordinator whose /ready says no for what is no alert is one of the command all the same", async () => {
  const fault = {
    code: "migrations-missing",
    words: "1 migration is missing",
    since: null,
    isInTheWay: true,
  };
  const older = createServer((_request, response) => {
    response.writeHead(503, { "content-type": "application/json" });
    response.end(JSON.stringify({ ready: false, faults: [fault] }));
  }).listen(0, "127.0.0.1");
  await once(older, "listening");
  const url = `http://127.0.0.1:${(older.address() as AddressInfo).port}`;

  const { code, out } = await inProcess(commandNamed("alerts"), [
    "--home",
    home,
    "--coordinator",
    url,
    "--json",
  ]);
  older.closeAllConnections();
  older.close();

  expect([code, (JSON.parse(out) as AlertList).alerts.map(({ words }) => words)]).toEqual([
    4,
    expect.arrayContaining([`The coordinator at ${url} is not ready: 1 migration is missing.`]),
  ]);
});

it("a coordinator that takes connections and says nothing is an alert of the command, which waits for it no longer", async () => {
  const mute = createServer(() => {}).listen(0, "127.0.0.1");
  await once(mute, "listening");
  const url = `http://127.0.0.1:${(mute.address() as AddressInfo).port}`;

  const { code, out } = await inProcess(commandNamed("alerts"), [
    "--home",
    home,
    "--coordinator",
    url,
    "--json",
  ]);
  mute.closeAllConnections();
  mute.close();

  expect(code).toBe(4);
  expect((JSON.parse(out) as AlertList).alerts[0]).toMatchObject({
    name: "coordinator-silent",
    severity: "critical",
    words: `The coordinator at ${url} runs and does not answer: no answer within 2.5 s.`,
  });
});

it("a job that fails whenever it runs is named with what it said, until it runs well", {
  timeout: 30_000,
}, async () => {
  await database.pool.query("alter table link_outbox rename to link_outbox_away");
  try {
    await until(async () => names(await alerts()).includes("job-failing"), 15_000);
    const told = (await alerts()).alerts.find(({ name }) => name === "job-failing")!;
    const ready = JSON.parse((await ask("/ready", "")).text);

    expect(told.words).toMatch(/apply-links \(\d+ times: relation "link_outbox" does not exist, 42P01\)/);
    // Whoever balances is told that it works, and nothing of tables.
    expect(ready).toMatchObject({ ready: true, faults: [{ code: "job-failing", isInTheWay: false }] });
    expect(JSON.stringify(ready)).not.toContain("link_outbox");
  } finally {
    await database.pool.query("alter table link_outbox_away rename to link_outbox");
  }
  await until(async () => !names(await alerts()).includes("job-failing"), 15_000);
});

it("a coordinator with a certificate of its own, whose key is the pinned one, is asked; with another one it is an alert", async () => {
  const { key, certificate, remove } = makeCertificate("coordinator.example");
  const server = createSecureServer({ key, cert: certificate }, (_request, response) => {
    response.setHeader("content-type", "application/json").end(JSON.stringify({ faults: [], alerts: [] }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  // Not an address that stands for this machine whatever its certificate says.
  const url = `https://[::ffff:127.0.0.1]:${(server.address() as AddressInfo).port}`;
  const names = async (pin: string | null) => {
    await database.pool.query("update coordinator_place set certificate_pin = $1", [pin]);
    const { out } = await inProcess(commandNamed("alerts"), ["--home", home, "--coordinator", url, "--json"]);
    return (JSON.parse(out) as { alerts: { name: string }[] }).alerts.map(({ name }) => name);
  };

  const pinned = await names(pinOf(certificate));
  const other = await names("A".repeat(43));
  server.closeAllConnections();
  server.close();
  remove();

  expect(pinned).not.toContain("coordinator-silent");
  expect(other).toContain("coordinator-silent");
});

/**
 * A whole coordinator on a Postgres of its own, whose processes are stopped as by an operator's mistake, a debugger or a
 * hanging disk: everybody who is asked reports it within seconds, and all resumes with the processes.
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { type RunningCoordinator, startCoordinator } from "#coordinator/main";
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
const json = { "content-type": "application/json" };
const silence = "the database does not answer within 1 s";

/** The postmaster and everything that it started. */
async function signalServer(signal: "SIGSTOP" | "SIGCONT"): Promise<void> {
  const { pid } = readPidFile(home)!;
  const { stdout } = await run("ps", ["-o", "pid=", "--ppid", String(pid)]);
  for (const one of [pid, ...stdout.trim().split(/\s+/).map(Number)]) {
    try {
      process.kill(one, signal);
    } catch {
      // A backend may have ended since it was listed.
    }
  }
}

it("stopped database processes are reported within seconds by everybody asked, until they resume", {
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
      alerts: expect.arrayContaining([
        expect.objectContaining({
          name: "database-does-not-answer",
          words: expect.stringContaining("since"),
        }),
      ]),
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

const alertsCommand = async (...words: readonly string[]) => {
  const { code, out } = await inProcess(commandNamed("alerts"), [...words]);
  return { code, out };
};

it("a database that cannot be reached is the first alert of the command, which says whom it could ask", async () => {
  const nowhere = ["--database-url", "postgresql://nobody@127.0.0.1:9/nothing"];
  const { code, out } = await alertsCommand("--home", temporaryFolder("nearcrawl-nowhere-"), ...nowhere);

  expect(code).toBe(4);
  expect(out).toMatch(/^critical .*The database does not answer \(ECONNREFUSED\), since /m);
  expect(out).toContain("no coordinator is known here to ask (--coordinator URL)");
});

const notReady = {
  ready: false,
  faults: [{ code: "migrations-missing", words: "1 migration is missing", since: null, isInTheWay: true }],
};

it.each<readonly [string, RequestListener, string]>([
  [
    "is not ready for a reason that is no alert",
    (_request, response) => void response.writeHead(503, json).end(JSON.stringify(notReady)),
    "is not ready: 1 migration is missing.",
  ],
  ["accepts connections and says nothing", () => {}, "runs and does not answer: no answer within 2.5 s."],
])("a coordinator that %s is an alert of the command", async (_, listener, words) => {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const { code, out } = await alertsCommand("--home", home, "--coordinator", url, "--json");
  server.closeAllConnections();
  server.close();

  const { alerts: listed } = JSON.parse(out) as AlertList;
  expect([code, listed.find(({ name }) => name === "coordinator-silent")?.words]).toEqual([
    4,
    `The coordinator at ${url} ${words}`,
  ]);
});

it("the command asks a coordinator with its own certificate only if its key is the pinned one", async () => {
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

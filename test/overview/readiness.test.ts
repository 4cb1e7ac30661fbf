/** /ready over servers that answer and cannot write: really full, refused by the system, read-only, and asleep. */
import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createReports } from "#coordinator/who/reads";
import { openDatabase } from "#db/connect";
import { readPidFile, startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { liveState, webServer } from "../support/web-server.ts";

const run = promisify(execFile);
const root = temporaryFolder("nearcrawl-readiness-");
// The server runs under another user than root.
chmodSync(root, 0o711);
const disk = join(root, "disk");
const home = join(disk, "home");
const diskBytes = 400 * 1024 * 1024;

/** A disk of its own, which can be filled; not where this process may not mount one. */
const hasDisk = await mountDisk();
let url: string;
let database: Database;

beforeAll(async () => {
  ({ url } = await startEmbeddedPostgres(home));
  // One connection: the one that a test slows down or holds back.
  database = await openDatabase({ databaseUrl: url, home, schema: "nearcrawl", maxConnections: 1 });
  await migrate(database);
}, 120_000);

afterAll(async () => {
  await database?.close();
  await stopEmbeddedPostgres(home);
  if (hasDisk) await run("umount", ["--lazy", disk]);
}, 60_000);

async function mountDisk(): Promise<boolean> {
  mkdirSync(disk, { mode: 0o711 });
  const options = `size=${diskBytes},mode=0711`;
  return await run("mount", ["-t", "tmpfs", "-o", options, "nearcrawl-test", disk]).then(
    () => true,
    () => false,
  );
}

/** Each time as somebody who asks long after the last one. */
async function ready(nowMs = () => performance.now()) {
  const reads = createReports(database.pool, nowMs);
  const server = webServer(database, { reads, live: () => ({ ...liveState, treeGeneration: null }) });
  const answer = await server.inject("/ready");
  await server.close();
  return [answer.statusCode, answer.json()] as const;
}

const notReady = (words: string) => [
  503,
  { ready: false, reason: words, missing: [{ name: "writes", words }] },
];

it("a server that can write is ready, and asking leaves nothing behind", async () => {
  const relations = async () => (await database.pool.query("select count(*)::int as n from pg_class")).rows;
  const before = await relations();

  expect(await ready()).toEqual([200, { ready: true }]);
  expect(await relations()).toEqual(before);
});

it.runIf(hasDisk)("one whose disk is full is not, and says so, until there is room again", async () => {
  const filler = join(disk, "filler");
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(filler, Buffer.alloc(bavail * bsize));

  expect(await ready()).toEqual(notReady("the database cannot be written: its disk is full"));
  await rm(filler);
  expect(await ready()).toEqual([200, { ready: true }]);
});

it.runIf(process.platform === "linux")("one whose files the system does not let grow is not", async () => {
  const { rows } = await database.pool.query<{ pid: number }>("select pg_backend_pid() as pid");
  // Its log begins a file: what is written to that stays below the limit.
  await database.pool.query("select pg_switch_wal()");
  // As the server's own user, which may do so without being root. The pool drops the connection with its error.
  const { uid, gid } = statSync(`/proc/${rows[0]!.pid}`);
  await run("prlimit", ["--pid", String(rows[0]!.pid), "--fsize=65536:"], { uid, gid });

  expect(await ready()).toEqual(
    notReady("the database cannot be written (SQLSTATE XX000): its log says why"),
  );
});

it("one that is read-only, such as a standby, is not", async () => {
  await database.pool.query("set default_transaction_read_only = on");

  expect(await ready()).toEqual(notReady("the database cannot be written: it is read-only"));
});

it("one that says nothing is told of in bounded time", { timeout: 60_000 }, async () => {
  const { pid } = readPidFile(home)!;
  const { rows } = await database.pool.query<{ pid: number }>("select pg_backend_pid() as pid");
  for (const one of [pid, rows[0]!.pid]) process.kill(one, "SIGSTOP");
  const answer = await ready();
  for (const one of [pid, rows[0]!.pid]) process.kill(one, "SIGCONT");

  const words = "the database does not answer within 5 s";
  expect(answer).toEqual([503, { ready: false, reason: words, missing: [{ name: "database", words }] }]);
});

it("is looked at every ten seconds, however often it is asked", async () => {
  let nowMs = 0;
  let writes = 0;
  const other = await openDatabase({ databaseUrl: url, home, schema: "nearcrawl" });
  const reads = createReports(other.pool, () => nowMs);
  other.pool.on("acquire", () => writes++);
  const written = async (atMs: number) => {
    nowMs = atMs;
    writes = 0;
    await reads.writeFault();
    return writes;
  };

  expect([await written(0), await written(9_999), await written(10_001)]).toEqual([1, 0, 1]);
  await other.close();
});

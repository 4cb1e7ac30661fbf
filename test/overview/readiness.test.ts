/** /ready over servers that answer and cannot write (full, refused by the system, read-only), or stand still. */
import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { DatabaseWatch } from "#coordinator/database/database-watch";
import { OwnHealth } from "#coordinator/tell/overview/own-health";
import { openDatabase } from "#db/connect";
import { readPidFile, startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { createPool, type Database } from "#db/server-database";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { liveState, webServer } from "../support/web-server.ts";

const run = promisify(execFile);
const root = temporaryFolder("nearcrawl-readiness-");
// The server runs under another user than root.
chmodSync(root, 0o711);
const disk = join(root, "disk");
const home = join(disk, "home");
const filler = join(disk, "filler");
const diskBytes = 400 * 1024 * 1024;

/** A disk that can be filled; absent where this process may not mount one. */
const hasDisk = await mountDisk();
let url: string;
let database: Database;

beforeAll(async () => {
  ({ url } = await startEmbeddedPostgres(home));
  database = await openDatabase({ databaseUrl: url, home, schema: "nearcrawl", maxConnections: 2 });
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

const clock = { now: () => new Date(), nowMs: () => performance.now() };
const watches: DatabaseWatch[] = [];
afterEach(async () => {
  await rm(filler, { force: true });
  for (const watch of watches.splice(0)) await watch.close();
});

it("used-up connections are one alert, not a silent or unwritable database", async () => {
  await database.pool.query("create role few login connection limit 2");
  const limited = url.replace("user=nearcrawl", "user=few");
  const others = createPool(limited, 2);
  const held = [await others.connect(), await others.connect()];
  let nowMs = 0;
  const watch = new DatabaseWatch(limited, { now: clock.now, nowMs: () => nowMs });
  watches.push(watch);
  const health = new OwnHealth({ database: watch, ...clock, nowMs: () => nowMs });
  await watch.look();

  expect(health.alerts().map(({ name, words }) => [name, words])).toEqual([
    [
      "connections-used-up",
      expect.stringMatching(
        /^The database has no connection left: too many connections for role "few", since /,
      ),
    ],
  ]);

  for (const client of held) client.release(true);
  await others.end();
  await until(async () => (await watch.look()).silent === null, 10_000);
  nowMs += 60_001;
  expect(health.alerts()).toEqual([]);
});

function newWatch(nowMs = clock.nowMs): DatabaseWatch {
  const watch = new DatabaseWatch(database.url, { ...clock, nowMs });
  watches.push(watch);
  return watch;
}

/** The answer over HTTP. */
async function ready(watch = newWatch()) {
  const health = new OwnHealth({ database: watch, ...clock });
  const server = webServer(database, { health, live: () => ({ ...liveState, treeGeneration: null }) });
  await server.ready();
  const beganMs = performance.now();
  const answer = await server.inject("/ready");
  const tookMs = performance.now() - beganMs;
  await server.close();
  return {
    status: answer.statusCode,
    tookMs,
    ...(answer.json() as { faults: readonly { readonly code: string }[] }),
  };
}

/** Asks until these faults are known, because a slow one may only be seen by a later check. */
async function told(watch: DatabaseWatch, ...codes: readonly string[]) {
  let answer = await ready(watch);
  await until(async () => {
    if (answer.faults.map(({ code }) => code).join() === codes.join()) return true;
    answer = await ready(watch);
    return false;
  }, 20_000);
  return answer;
}

const isReady = { status: 200, ready: true, faults: [] };
const notReady = (code: string, words: string) => ({
  ...{ status: 503, ready: false, reason: words },
  faults: [{ code, words, isInTheWay: true, since: expect.stringMatching(/^\d{4}-.*Z$/) }],
});

/** Its log has just begun a file with room left. */
async function fillDisk(): Promise<void> {
  await database.pool.query("select pg_switch_wal()");
  await database.pool.query("checkpoint");
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(filler, Buffer.alloc(bavail * bsize));
}

/** Repeats the failure, because of several within a second only the first counts. */
async function untilUnwritable(watch: DatabaseWatch, failure: unknown): Promise<void> {
  await until(() => {
    watch.note(failure);
    return watch.state.unwritable !== null;
  }, 20_000);
}

const backendsOf = async () => {
  const { rows } = await database.pool.query<{ pid: number }>(
    "select pid from pg_stat_activity where application_name = 'nearcrawl' and pid <> pg_backend_pid()",
  );
  return rows.map(({ pid }) => pid);
};

it("a writable server is ready, and the check leaves nothing behind", async () => {
  const relations = async () => (await database.pool.query("select count(*)::int as n from pg_class")).rows;
  const before = await relations();

  expect(await ready()).toMatchObject(isReady);
  expect(await relations()).toEqual(before);
});

it.runIf(hasDisk)("a server with a full disk is not ready until space is free", async () => {
  const watch = newWatch();
  await fillDisk();

  const full = await told(watch, "database-cannot-write");
  await rm(filler);

  expect(full).toMatchObject(
    notReady("database-cannot-write", "the database cannot be written: its disk is full"),
  );
  expect(await ready(watch)).toMatchObject(isReady);
});

it.runIf(hasDisk)("the first failed write on a full disk is an alert at once", async () => {
  const watch = newWatch();
  await watch.look();
  const filler = join(disk, "filler");
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(filler, Buffer.alloc(bavail * bsize));

  const failure = await database.pool
    .query("create table filled as select repeat('x', 1000) as x from generate_series(1, 5000)")
    .catch((error: unknown) => error);
  await untilUnwritable(watch, failure);
  const told = new OwnHealth({ database: watch, ...clock }).alerts();
  await rm(filler);

  expect((failure as { code?: string }).code).toBe("53100");
  expect(told.map(({ name }) => name)).toEqual(["database-cannot-write"]);
  await watch.look();
  expect(watch.state.unwritable).toBeNull();
});

it.runIf(process.platform === "linux")("a server whose files may not grow is not writable", async () => {
  const watch = newWatch();
  await watch.look();
  const pids = await backendsOf();
  // Writes to a new file of its log stay below the limit.
  await database.pool.query("select pg_switch_wal()");
  // As the server's own user, which needs no root.
  const { uid, gid } = statSync(`/proc/${pids[0]!}`);
  for (const pid of pids) await run("prlimit", ["--pid", String(pid), "--fsize=65536:"], { uid, gid });
  await untilUnwritable(watch, Object.assign(new Error("could not extend file"), { code: "58030" }));

  expect(watch.state.unwritable?.words).toBe(
    "the database cannot be written (SQLSTATE XX000): its log says why",
  );
});

it("a read-only server, such as a standby, is not ready", async () => {
  await database.pool.query("alter database nearcrawl set default_transaction_read_only = on");
  const answer = await ready();
  await database.pool.query("set default_transaction_read_only = off");
  await database.pool.query("alter database nearcrawl reset default_transaction_read_only");

  expect(answer).toMatchObject(
    notReady("database-cannot-write", "the database cannot be written: it is read-only"),
  );
});

it("a server that stands still is reported in bounded time until it resumes", async () => {
  const watch = newWatch();
  await watch.look();
  const all = await stopServer();
  const answers = await Promise.all([ready(watch), ready()]);
  answers.push(await ready(watch));
  for (const pid of all) process.kill(pid, "SIGCONT");

  for (const answer of answers) {
    expect(answer).toMatchObject(
      notReady("database-does-not-answer", "the database does not answer within 1 s"),
    );
    // 1.5 s and what a busy machine adds; without a bound it would wait for the server.
    expect(answer.tookMs).toBeLessThan(10_000);
  }
  await until(async () => (await watch.look()).silent === null, 10_000);
  expect(await ready(watch)).toMatchObject(isReady);
});

/** The postmaster and everything that it started. */
async function stopServer(): Promise<number[]> {
  const { pid } = readPidFile(home)!;
  const { stdout } = await run("ps", ["-o", "pid=", "--ppid", String(pid)]);
  const all = [pid, ...stdout.trim().split(/\s+/).map(Number)];
  for (const one of all) process.kill(one, "SIGSTOP");
  return all;
}

it("the check has a connection of its own", async () => {
  const busy = [1, 2].map(async () => await database.pool.connect());
  const waiting = database.pool.query("select 1");
  const { tookMs, ...answer } = await ready();
  for (const client of await Promise.all(busy)) client.release();
  await waiting;

  expect(answer).toMatchObject(isReady);
  // Without a connection of its own it would wait forever.
  expect(tookMs).toBeLessThan(10_000);
});

it("writing is checked every ten seconds at most", async () => {
  let nowMs = 0;
  const watch = newWatch(() => nowMs);
  const tables = async () => {
    const { rows } = await database.pool.query<{ written: string }>(
      "select pg_current_xact_id()::text as written",
    );
    return Number(rows[0]!.written);
  };
  const written = async (atMs: number) => {
    nowMs = atMs;
    const before = await tables();
    await watch.look();
    // The query itself takes one number.
    return (await tables()) - before > 1;
  };

  expect([await written(0), await written(9_999), await written(10_001)]).toEqual([true, false, true]);
});

it("a lost connection is no silence while the database answers", async () => {
  const watch = newWatch();
  const lost = Object.assign(new Error("terminating connection"), { code: "57P01" });
  await watch.look();

  const looks = [watch.look(), watch.look()];
  watch.note(lost);
  await Promise.all(looks);

  expect(watch.state.silent).toBeNull();
  expect((await watch.look()).silent).toBeNull();
});

it("a lost connection is replaced at the next check", async () => {
  const watch = newWatch();
  await watch.look();
  for (const pid of await backendsOf()) await database.pool.query("select pg_terminate_backend($1)", [pid]);
  await until(async () => (await backendsOf()).length === 0, 5000);

  await watch.look();
  expect((await watch.look()).silent).toBeNull();
});

it.runIf(hasDisk)(
  "a server that ended because its disk was full is reported so, and recovers",
  async () => {
    const watch = newWatch();
    await watch.look();
    await fillDisk();
    // Each turn begins a file of the log, until there is no room for another.
    const ended = await (async () => {
      for (let files = 0; files < 100; files += 1)
        await database.pool.query("select pg_switch_wal(), txid_current()");
    })().catch((error: unknown) => error);
    // A slow disk may only be seen by a later check.
    let state = watch.state;
    await until(async () => {
      state = await watch.look();
      return state.silent !== null && state.unwritable !== null;
    }, 20_000);
    const { unwritable } = state;
    const answer = await told(watch, "database-does-not-answer", "database-cannot-write");
    await rm(filler);

    expect(ended).toBeInstanceOf(Error);
    expect(unwritable?.words).toBe("the database cannot be written: its disk is full");
    expect(answer.faults).toMatchObject([
      { code: "database-does-not-answer" },
      { code: "database-cannot-write" },
    ]);
    // It has ended for good, or its postmaster has not noticed; it is started again by hand.
    await startEmbeddedPostgres(home);
    await until(async () => (await ready(watch)).status === 200, 20_000);
  },
  180_000,
);

/** The embedded server alone, as root and as an ordinary user, and through kill -9 of any process. */
import { type ChildProcessByStdio, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  closeSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline/promises";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { openDatabase, type ServerEvent } from "#db/connect";
import { findPrograms } from "#db/embedded-binaries";
import { embeddedFault } from "#db/embedded-cluster";
import { startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import type { Database } from "#db/server-database";
import { builtDoors } from "../support/built-command.ts";
import { until } from "../support/until.ts";

const isRoot = process.getuid?.() === 0;
const serverUid = 65534;
const daemonUid = 1;

/**
 * A home with a stopped server, which tests copy instead of creating one. The path is short enough for the socket
 * beside the database; the run's own folder is below it.
 */
const short = join(dirname(tmpdir()), "nearcrawl-embedded-");
const madeHome = mkdtempSync(short);
let folder: string;
let home: string;
let children: ChildProcessByStdio<Writable, Readable, null>[] = [];

beforeAll(async () => {
  chmodSync(madeHome, 0o755);
  await (await openDatabase({ databaseUrl: null, home: madeHome, schema: "public" })).close();
});

afterAll(() => rmSync(madeHome, { recursive: true, force: true }));

beforeEach(() => {
  folder = mkdtempSync(short);
  chmodSync(folder, 0o755);
  home = join(folder, "home");
});

afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  children = [];
  await stopEmbeddedPostgres(home);
  rmSync(folder, { recursive: true, force: true });
});

const open = async (): Promise<Database> => await openDatabase({ databaseUrl: null, home, schema: "public" });
/** Unlike node's copy, `-a` keeps the owners. */
const copyMadeHome = () => execFileSync("cp", ["-a", madeHome, home]);
const serverPid = (): number =>
  Number(readFileSync(join(home, "postgres/postmaster.pid"), "utf8").split("\n")[0]);
const serverRuns = (): boolean => existsSync(join(home, "postgres/postmaster.pid"));
const count = async ({ pool }: Database): Promise<unknown> =>
  (await pool.query("select count(*)::int as n from kept")).rows[0]?.n;

/** Another process that holds the database open, as another user when a uid is given. */
async function holder(uid?: number): Promise<{ url?: string; error?: string; kill(): Promise<void> }> {
  const script = fileURLToPath(new URL("../support/database-holder.mjs", import.meta.url));
  await builtDoors();
  const child = spawn(process.execPath, [script, home], {
    stdio: ["pipe", "pipe", "inherit"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  children.push(child);
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  const kill = async () => {
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  return { ...(JSON.parse(line) as { url?: string; error?: string }), kill };
}

test("a server named by the environment's PG variables is not used", async () => {
  copyMadeHome();
  const before = { ...process.env };
  Object.assign(process.env, { PGHOST: "/nowhere", PGPORT: "6543", PGUSER: "anna", PGSSLMODE: "require" });
  try {
    const database = await open();
    const { rows } = await database.pool.query("select current_user as me, current_database() as here");
    await database.close();

    expect(rows).toEqual([{ me: "nearcrawl", here: "nearcrawl" }]);
  } finally {
    process.env = before;
  }
}, 30_000);

test("in a new home a server is made, stopped when its last user closes, and keeps what was committed", async () => {
  const first = await open();
  expect(first.description).toBe(`embedded Postgres in ${home}`);
  expect((await first.pool.query("show server_encoding")).rows).toEqual([{ server_encoding: "UTF8" }]);
  expect((await first.pool.query("show fsync")).rows).toEqual([{ fsync: "on" }]);
  await first.pool.query("create table kept as select 1");
  await first.close();
  expect(serverRuns()).toBe(false);

  const second = await open();

  expect(await count(second)).toBe(1);
  await second.close();
});

test("a server that somebody else uses stays when the one who started it leaves", async () => {
  copyMadeHome();
  const starter = await open();
  const other = await open();

  await starter.close();

  expect((await other.pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  await other.close();
  expect(serverRuns()).toBe(true);
  expect(await stopEmbeddedPostgres(home)).toBe(true);
  expect(await stopEmbeddedPostgres(home)).toBe(false);
});

test("four that start at once share one server", async () => {
  const databases = await Promise.all(Array.from({ length: 4 }, open));

  const pids = await Promise.all(
    databases.map(async ({ pool }) =>
      (await pool.query("select pg_postmaster_start_time() as t")).rows[0]?.t.getTime(),
    ),
  );

  expect(new Set(pids).size).toBe(1);
  await Promise.all(databases.map(async (database) => await database.close()));
});

test("a server that keeps dying is restarted three times, counted over all its users, and then left with a message", async () => {
  copyMadeHome();
  const events: ServerEvent[] = [];
  const onServer = (event: ServerEvent) => void events.push(event);
  const one = await openDatabase({ databaseUrl: null, home, schema: "public", onServer });
  const other = await openDatabase({ databaseUrl: null, home, schema: "public", onServer });
  await one.pool.query("create table kept as select 1");
  for (const times of [1, 2, 3]) {
    const killed = serverPid();
    process.kill(killed, "SIGKILL");
    await until(() => events.length === 2 * times, 20_000);
    expect(serverPid()).not.toBe(killed);
  }
  const restarts = events.splice(0);
  const last = serverPid();
  process.kill(last, "SIGKILL");
  await until(() => events.length === 2, 20_000);

  expect(restarts).toEqual([1, 1, 2, 2, 3, 3].map((times) => ({ type: "restarted", times })));
  for (const event of events) {
    if (event.type !== "given-up") throw new Error(event.type);
    expect(event.error.message).toMatch(
      /^the embedded Postgres in .* died 4 times within 10 minutes, and is not started again by itself; the end of its log: .*ready to accept connections/s,
    );
  }
  expect(serverPid()).toBe(last);
  await Promise.all([one.close(), other.close()]);

  // Opening it again is deliberate, so the server starts.
  const database = await open();
  expect(serverPid()).not.toBe(last);
  expect(await count(database)).toBe(1);
  await database.close();
}, 60_000);

test("old failures do not count", async () => {
  copyMadeHome();
  const lines = [1, 2, 3, 4].map((pid) => `${pid} ${new Date(Date.now() - 601_000).toISOString()}\n`);
  writeFileSync(join(home, "postgres-restarts"), `${lines.join("")}what is no line\n`);
  const events: ServerEvent[] = [];
  const onServer = (event: ServerEvent) => void events.push(event);
  const database = await openDatabase({ databaseUrl: null, home, schema: "public", onServer });

  process.kill(serverPid(), "SIGKILL");

  await until(() => events.length > 0, 20_000);
  expect(events).toEqual([{ type: "restarted", times: 1 }]);
  await database.close();
}, 30_000);

test("kill -9 of the process that started the server: the server stays, and the next one attaches", async () => {
  copyMadeHome();
  const starter = await holder();
  const pid = serverPid();

  await starter.kill();

  const database = await open();
  expect(serverPid()).toBe(pid);
  await database.close();
  expect(serverPid()).toBe(pid);
});

test("a pid file that names another live program does not stop the server from starting", async () => {
  copyMadeHome();
  writeFileSync(
    join(home, "postgres/postmaster.pid"),
    `${process.pid}\n${home}/postgres\n1\n5432\n/nowhere\n`,
  );

  const database = await open();

  expect(serverPid()).not.toBe(process.pid);
  await database.close();
});

test.each([
  ["", /postgres\/postmaster\.pid is empty.*no Postgres serves .*, delete it/],
  ["nonsense", /bogus data in lock file "postmaster\.pid"/],
])("a pid file with %j is reported, and not waited for", async (content, words) => {
  copyMadeHome();
  writeFileSync(join(home, "postgres/postmaster.pid"), content);

  const opened = startEmbeddedPostgres(home, { withinMs: 20_000 });

  await expect(opened).rejects.toThrow(words);
});

test("an empty lock file of its socket does not either", async () => {
  copyMadeHome();
  const database = await open();
  await database.close();
  await stopEmbeddedPostgres(home);
  writeFileSync(join(home, "postgres/socket/.s.PGSQL.5432.lock"), "");

  await expect(startEmbeddedPostgres(home, { withinMs: 20_000 })).rejects.toThrow(
    /PGSQL\.5432\.lock is empty/,
  );
});

test("a home with a long path has its socket elsewhere", async () => {
  home = join(folder, "a folder in a folder ".repeat(6));
  copyMadeHome();

  const database = await open();

  const shown = await database.pool.query<{ folders: string }>(
    "select current_setting('unix_socket_directories') as folders",
  );
  const socketFolder = shown.rows[0]!.folders.replaceAll('"', "");
  expect(socketFolder).toMatch(/^\/tmp\/nearcrawl-[0-9a-f]{16}$/);
  await database.close();
  rmSync(socketFolder, { recursive: true });
});

test("a path with spaces, quotes and what a shell would expand is only a path", async () => {
  home = join(folder, 'it\'s "$HOME" `id`');
  copyMadeHome();

  const database = await open();

  expect((await database.pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  expect(serverRuns()).toBe(true);
  await database.close();
});

test("data of another version is left alone, and the error says which", async () => {
  copyMadeHome();
  writeFileSync(join(home, "postgres/PG_VERSION"), "12\n");

  await expect(open()).rejects.toThrow(/was made by Postgres 12, this build brings Postgres 18/);
});

test("a folder that is no data folder is left alone", async () => {
  mkdirSync(join(home, "postgres"), { recursive: true });
  writeFileSync(join(home, "postgres/letter.txt"), "mine");
  if (isRoot) chownSync(join(home, "postgres"), serverUid, serverUid);

  await expect(open()).rejects.toThrow(/holds something, but not a Postgres data folder/);
  expect(existsSync(join(home, "postgres/letter.txt"))).toBe(true);
});

test.each(["PG_VERSION", "pg_wal"])(
  "half a data folder, without %s, is named before anything is touched",
  async (part) => {
    copyMadeHome();
    rmSync(join(home, "postgres", part), { recursive: true });
    const before = readdirSync(join(home, "postgres")).sort();

    await expect(open()).rejects.toThrow(`is half a data folder, without ${part}, and was left as it is`);
    expect(readdirSync(join(home, "postgres")).sort()).toEqual(before);
  },
);

test("a home that lost its data folder gets no empty one, from two that start at once, until somebody says so", async () => {
  copyMadeHome();
  rmSync(join(home, "postgres"), { recursive: true });

  const refused = await Promise.allSettled([open(), open()]);
  for (const one of refused)
    expect(one).toMatchObject({
      reason: { message: expect.stringMatching(/data folder is gone .*by database\.json/) },
    });
  expect(existsSync(join(home, "postgres"))).toBe(false);
  expect((await startEmbeddedPostgres(home, { anew: true })).started).toBe(true);
});

test.each(["backups.json", "current-run.json", "journal/6f1c", "backups/2026-03-01", "postgres.before-2026"])(
  "%s in a home says that there was a database, also where an older version made it",
  async (witness) => {
    mkdirSync(join(home, witness), { recursive: true });

    await expect(open()).rejects.toThrow(`by ${witness.split("/")[0]} there was a database`);
    await expect(open()).rejects.toThrow(`nearcrawl database start-over --home ${home}`);
    expect(existsSync(join(home, "postgres"))).toBe(false);
  },
);

test("an opening that fails leaves no server behind", async () => {
  copyMadeHome();
  const opening = openDatabase({ databaseUrl: null, home, schema: "No Schema" });

  await expect(opening).rejects.toThrow('schema "No Schema"');
  expect(serverRuns()).toBe(false);
});

test("a server that does not start says why in its own words", async () => {
  copyMadeHome();
  appendFileSync(join(home, "postgres/postgresql.conf"), "no_such_setting = 1\n");

  await expect(open()).rejects.toThrow(/does not start: it ended with exit code 1: .*no_such_setting/s);
});

test("a home that is a file is refused with its name", async () => {
  writeFileSync(home, "");

  await expect(open()).rejects.toThrow(`the home ${home} cannot be made`);
  rmSync(home);
});

test("links that npm did not create are created", async () => {
  const packaged = join(folder, "native");
  cpSync(packagedPrograms(), packaged, {
    recursive: true,
    filter: (path) => !lstatSync(path).isSymbolicLink(),
  });

  const programs = await findPrograms(folder, null, packaged).finally(() => mkdirSync(home));

  expect(programs.majorVersion).toBe(18);
  expect(programs.pgCtl).toBe(join(packaged, "bin/pg_ctl"));
});

if (!isRoot) process.stdout.write("skipped: without root, the embedded server's own account is not tried\n");
if (isRoot) {
  const account = { uid: serverUid, gid: serverUid };

  test("as root: programs that the server's account cannot reach are copied into the home", async () => {
    const packaged = join(folder, "closed/package/native");
    cpSync(packagedPrograms(), packaged, { recursive: true, verbatimSymlinks: true });
    writeFileSync(join(packaged, "../package.json"), '{"version":"18.4.0"}');
    chmodSync(join(folder, "closed"), 0o700);
    mkdirSync(home);

    const programs = await findPrograms(home, account, packaged);

    expect(programs.pgCtl).toBe(join(home, "postgres-binaries-18.4.0/bin/pg_ctl"));
  });

  test("as root: the server runs as somebody else, in a home that only root could enter", async () => {
    mkdirSync(home, { mode: 0o700 });

    const database = await open();

    const own = lstatSync(`/proc/${serverPid()}`).uid;
    expect([own, lstatSync(`/proc/${serverPid()}`).gid]).toEqual([own, own]);
    expect(own).toBeGreaterThanOrEqual(60_600);
    expect(readFileSync("/etc/passwd", "utf8")).not.toContain(`:${own}:`);
    expect(lstatSync(home).mode & 0o777).toBe(0o710);
    await database.close();
  });

  test("as root: a process of nobody reads no file of the database, and is not let in", async () => {
    const database = await open();
    const { url } = database;
    const asNobody = (command: string, ...args: string[]) => {
      try {
        return execFileSync(command, args, { uid: 65_534, gid: 65_534, encoding: "utf8", stdio: "pipe" });
      } catch (error) {
        return String((error as { stderr?: string }).stderr);
      }
    };
    const script = `const { Client } = require("pg"); const client = new Client({ connectionString: process.argv[1] });
      client.connect().then(() => console.log("let in"), (error) => console.log(error.code)).finally(() => client.end());`;
    const pg = join(dirname(createRequire(import.meta.url).resolve("pg/package.json")), "../..");

    expect(asNobody("cat", join(home, "postgres/PG_VERSION"))).toMatch(/Permission denied/);
    expect(asNobody("cat", `/proc/${serverPid()}/environ`)).toMatch(/Permission denied/);
    expect(asNobody("ls", join(home, "postgres/socket"))).toMatch(/Permission denied/);
    const said = execFileSync(process.execPath, ["-e", script, url], { cwd: pg, encoding: "utf8" });
    const refused = asNobody("env", "-C", pg, process.execPath, "-e", script, url);
    expect(said).toBe("let in\n");
    expect(refused).not.toContain("let in");
    await database.close();
  });

  test("as root: what an older version gave to nobody is copied for an account of its own, and kept aside", async () => {
    copyMadeHome();
    execFileSync("chown", ["-R", "65534:65534", join(home, "postgres")]);
    const settings = "postgres/postgresql.auto.conf";
    const heldByNobody = openSync(join(home, settings), "a");

    const told: unknown[] = [];
    const onServer = (event: ServerEvent) => void told.push(event);
    const database = await openDatabase({ databaseUrl: null, home, schema: "public", onServer });

    writeSync(heldByNobody, "archive_command = 'id'\n");
    closeSync(heldByNobody);
    const [aside] = readdirSync(home).filter((name) => name.startsWith("postgres.before-"));
    expect(told).toEqual([{ type: "kept-aside", folder: join(home, aside!) }]);
    expect(lstatSync(`/proc/${serverPid()}`).uid).toBeGreaterThanOrEqual(60_600);
    expect(lstatSync(join(home, "postgres/base")).uid).toBe(lstatSync(join(home, "postgres")).uid);
    expect(readFileSync(join(home, settings), "utf8")).not.toContain("archive_command");
    expect(lstatSync(join(home, aside!)).mode & 0o777).toBe(0o700);
    expect(lstatSync(join(home, aside!, settings)).uid).toBe(65_534);
    await database.close();
  });

  test.each([
    ["a link", (path: string) => symlinkSync(join(folder, "of-root"), path), /is a link, and is not copied/],
    ["a pipe", (path: string) => void execFileSync("mkfifo", [path]), /is no plain file, and is not copied/],
    [
      "another's file",
      (path: string) => writeFileSync(path, "", { mode: 0o600 }),
      /belongs to uid 0 and not to 65534/,
    ],
  ])("as root: %s in a folder of nobody is not copied, and all stays as it was", async (_, plant, words) => {
    copyMadeHome();
    execFileSync("chown", ["-R", "65534:65534", join(home, "postgres")]);
    plant(join(home, "postgres/base/planted"));

    await expect(open()).rejects.toThrow(words);
    expect(lstatSync(join(home, "postgres")).uid).toBe(65_534);
    expect(readdirSync(home).filter((name) => name.startsWith("postgres."))).toEqual([]);
  });

  test("as root: a process of nobody that sees initdb start opens nothing of the new data folder", async () => {
    mkdirSync(home, { mode: 0o755 });
    const watcher = spawn(process.execPath, ["-e", attackerScript, home], {
      ...{ uid: 65_534, gid: 65_534, stdio: ["pipe", "pipe", "inherit"] },
    });
    children.push(watcher);
    const lines = createInterface(watcher.stdout);
    const said: string[] = [];
    lines.on("line", (line) => said.push(line));
    await until(() => said.includes("waits"), 20_000);

    await (await open()).close();

    await until(() => said.length > 1, 20_000);
    expect(said).toEqual(["waits", "saw initdb, and opened nothing"]);
  }, 60_000);

  test("as root: a link that the database's account leaves in place of its log leads root nowhere", async () => {
    copyMadeHome();
    const target = join(folder, "of-root");
    writeFileSync(target, "root's own", { mode: 0o600 });
    rmSync(join(home, "postgres/server.log"), { force: true });
    symlinkSync(target, join(home, "postgres/server.log"));

    await expect(open()).rejects.toThrow(/cannot be changed: .*server\.log: Permission denied/s);

    expect(lstatSync(target).uid).toBe(0);
    expect(readFileSync(target, "utf8")).toBe("root's own");
  });

  test("as root: nothing is made on a path that another user can change", async () => {
    chownSync(folder, daemonUid, daemonUid);

    await expect(open()).rejects.toThrow(
      `${folder} on the way to ${home} can be changed by others than root`,
    );
    expect(existsSync(join(home, "postgres"))).toBe(false);
  });

  test("as root: a home that init made for root and its group is opened for the server alone", async () => {
    mkdirSync(home, { mode: 0o750 });

    expect(embeddedFault(home)).toBeNull();
    await (await open()).close();

    expect(lstatSync(home).mode & 0o777).toBe(0o710);
  });

  test("as root: a folder on the way that the server's account may not pass is named", async () => {
    chmodSync(folder, 0o700);

    expect(embeddedFault(folder)).toBeNull();
    mkdirSync(home);
    expect(embeddedFault(home)).toContain(`which may not pass ${folder} on the way`);
    await expect(open()).rejects.toThrow(`which may not pass ${folder} on the way`);
  });

  test("as an ordinary user: the server runs as that user", async () => {
    mkdirSync(home);
    chownSync(home, daemonUid, daemonUid);

    const user = await holder(daemonUid);

    expect(user.error).toBeUndefined();
    expect(lstatSync(`/proc/${serverPid()}`).uid).toBe(daemonUid);
  });

  test("as an ordinary user: another user's server is refused with a reason", async () => {
    copyMadeHome();
    const database = await open();

    const user = await holder(daemonUid);

    expect(user.error).toMatch(/DatabaseError: .*postmaster\.pid cannot be read: EACCES/);
    await database.close();
  });
}

/** Watches for initdb of a home and reports what it could reach of its folder meanwhile. */
const attackerScript = `
  const fs = require("node:fs");
  const home = process.argv[1];
  const opened = new Set();
  let seen = null;
  console.log("waits");
  const look = () => {
    let runs = false;
    for (const pid of fs.readdirSync("/proc").filter((name) => /^\\d+$/.test(name))) {
      let args = [];
      try { args = fs.readFileSync("/proc/" + pid + "/cmdline", "utf8").split("\\0"); } catch {}
      const at = args.indexOf("-D");
      if (!args.some((one) => one.endsWith("/initdb")) || at < 0 || !args[at + 1].startsWith(home)) continue;
      seen = args[at + 1];
      runs = true;
      for (const path of [seen, "/proc/" + pid + "/cwd", "/proc/" + pid + "/fd"])
        try { fs.readdirSync(path); opened.add(path); } catch {}
      try { fs.openSync(seen + "/postgresql.auto.conf", "a"); opened.add("postgresql.auto.conf"); } catch {}
    }
    if (seen !== null && !runs) {
      console.log("saw initdb, and opened " + ([...opened].join(", ") || "nothing"));
      process.exit();
    }
    setImmediate(look);
  };
  look();
`;

function packagedPrograms(): string {
  const manifest = createRequire(import.meta.url).resolve(
    `@embedded-postgres/${process.platform}-${process.arch}`,
  );
  return join(dirname(manifest), "../native");
}

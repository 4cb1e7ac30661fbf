/** Backups of the embedded server during writes, refused backups, and what remains when a process is killed. */
import { execFile, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { stateCoordinatorPlace } from "#coordinator/place/crawlers/coordinator-place-store";
import { backupFacts } from "#coordinator/tell/overview/alert-reads";
import { type Backup, backupDatabase } from "#db/backup-database";
import {
  type BackupManifest,
  lastBackup,
  listBackups,
  readManifest,
  removeOldBackups,
} from "#db/backup-folder";
import { openDatabase } from "#db/connect";
import { serverIsAlive, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { migrate } from "#db/migrate";
import { verifyBackup } from "#db/recover-backup";
import { planRestore, restoreDatabase } from "#db/restore-database";
import { ownMigrations } from "#db/schema-state";
import { type Database, openServerDatabase } from "#db/server-database";
import { databaseCommand } from "#ops/cli/commands/database";
import { doctorCommand } from "#ops/cli/commands/doctor";
import { builtDoors, builtProgram } from "../support/built-command.ts";
import { commandNamed, inProcess } from "../support/command-in-process.ts";
import { until } from "../support/until.ts";

const run = promisify(execFile);
/** Uses the test database's folder, which may be in memory, because nothing must outlive a power cut. */
const folder = mkdtempSync(join(inject("databaseHome"), "backup-"));
const home = join(folder, "home");
const elsewhere = join(folder, "elsewhere");
const disk = join(folder, "disk");
const hasDisk = await mountDisk(disk, 130e6);
if (!hasDisk) process.stdout.write("skipped: no small disk can be mounted, so none runs full\n");

let database: Database;
let backup: Backup;
/** The last numbers committed before the backup began and after it ended. */
let [before, after] = [0, 0];

const { TMPDIR } = process.env;

beforeAll(async () => {
  chmodSync(folder, 0o755);
  // Backups are tried here.
  process.env.TMPDIR = folder;
  database = await openDatabase({ databaseUrl: null, home, schema: "nearcrawl" });
  await migrate(database);
  await database.pool.query("create table numbered (number bigint primary key)");
  await database.pool.query("insert into crawler (name, state) values ('athens', 'offline')");
  await database.pool.query("create unlogged table fleeting as select 1 as one");
});

afterAll(async () => {
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
  await database?.close();
  for (const one of [home, elsewhere]) await stopEmbeddedPostgres(one);
  if (hasDisk) await run("umount", ["--lazy", disk]);
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

async function mountDisk(at: string, bytes: number): Promise<boolean> {
  mkdirSync(at, { mode: 0o711 });
  return await run("mount", ["-t", "tmpfs", "-o", `size=${bytes},mode=0711`, "nearcrawl-test", at]).then(
    () => true,
    () => false,
  );
}

/** Commits one number after the other during `work`. */
async function writing<T>(work: () => Promise<T>): Promise<T> {
  let [number, goesOn] = [before, true];
  const write = async () => {
    while (goesOn) {
      number += 1;
      await database.pool.query("insert into numbered values ($1)", [number]);
      after = number;
    }
  };
  const writer = write();
  try {
    return await work();
  } finally {
    goesOn = false;
    await writer;
  }
}

async function numbersIn(where: string): Promise<{ count: number; last: number }> {
  const opened = await openDatabase({ databaseUrl: null, home: where, schema: "nearcrawl" });
  try {
    const { rows } = await opened.pool.query<{ count: number; last: number }>(
      "select count(*)::int as count, coalesce(max(number), 0)::int as last from numbered",
    );
    return rows[0]!;
  } finally {
    await opened.close();
  }
}

/** Copies by hard links, so a test may replace files but not write into them. */
function copied(name: string): string {
  const copy = join(folder, name);
  execFileSync("cp", ["-al", backup.folder, copy]);
  return copy;
}

function withManifest(name: string, change: Partial<Record<keyof BackupManifest, unknown>>): string {
  const copy = copied(name);
  const file = join(copy, "backup.json");
  const manifest = { ...readManifest(copy), ...change };
  rmSync(file);
  writeFileSync(file, JSON.stringify(manifest));
  return copy;
}

function replaced(name: string, path: string, content: Buffer): string {
  const copy = copied(name);
  rmSync(join(copy, "data", path));
  writeFileSync(join(copy, "data", path), content);
  return copy;
}

const contentsOf = (where: string) =>
  existsSync(where) ? readdirSync(where, { recursive: true, encoding: "utf8" }).sort() : null;

const command = async (...args: string[]) => await inProcess(databaseCommand(), args);

async function killedIn(args: readonly string[]): Promise<void> {
  await builtDoors();
  const script = resolve(import.meta.dirname, "../support/backup-process.mjs");
  const child = spawn(process.execPath, [script, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (text) => {
    said += text;
  });
  const signal = await new Promise((done) => child.once("exit", (_, by) => done(by)));
  expect([signal, said]).toEqual(["SIGKILL", ""]);
}

it("is made while others write, restores into an empty home, and has no gap", async () => {
  expect(await backupFacts(database.pool)).toBeNull();
  const progress: number[] = [];
  backup = await writing(async () => {
    while (after < 100) await database.pool.query("select");
    before = after;
    return await backupDatabase(home, { onProgress: ({ bytes }) => progress.push(bytes) });
  });

  const restored = await restoreDatabase(elsewhere, backup.folder);

  const { count, last } = await numbersIn(elsewhere);
  expect(count).toBe(last);
  expect(last).toBeGreaterThanOrEqual(before);
  expect(last).toBeLessThan(after);
  expect(restored).toMatchObject({ home: elsewhere, timeline: 2, keptAside: null, bytes: backup.bytes });
  expect(progress.at(-1)).toBeGreaterThan(backup.bytes / 2);
  expect(statSync(backup.folder).mode & 0o777).toBe(0o700);
  expect(contentsOf(elsewhere)).not.toContain(`restore.new-${process.pid}`);
  const { manifest } = backup;
  // The crawler's row is the journal's first entry.
  expect(manifest.schemas).toMatchObject([{ name: "nearcrawl", epoch: "1", journalEntry: "1" }]);
  expect(manifest.schemas[0]?.newestMigration).toBe(ownMigrations().at(-1)?.name);
  const paths = manifest.files.map(({ path }) => path).join("\n");
  expect(paths).not.toMatch(/postmaster|socket|server\.log|pgsql_tmp|pg_replslot\/./);
  expect(paths).toMatch(/^backup_label$/m);
}, 60_000);

it("leaves the main fork of an unlogged table out, and recovery creates it again", async () => {
  const { rows } = await database.pool.query("select pg_relation_filepath('fleeting') as path");
  const { path } = rows[0] as { path: string };
  const paths = new Set(backup.manifest.files.map((file) => file.path));

  expect([paths.has(path), paths.has(`${path}_init`)]).toEqual([false, true]);
  const opened = await openDatabase({ databaseUrl: null, home: elsewhere, schema: "nearcrawl" });
  expect((await opened.pool.query("select * from fleeting")).rows).toEqual([]);
  await opened.close();
});

it("verifies as sound, starts on trial, and lists its content", async () => {
  const files = await command("verify", "--home", home);
  expect(files).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^is sound +yes/),
  });
  expect(listBackups(home)).toMatchObject([{ folder: backup.folder, verified: { started: false } }]);

  const { code, out } = await command("verify", backup.folder, "--start", "--json");

  const tried = JSON.parse(out);
  expect([code, tried.faults]).toEqual([0, []]);
  expect(tried.indexes).toBeGreaterThan(100);
  expect(tried.contents).toMatchObject([{ name: "nearcrawl", pages: 0, crawlers: 1, optOuts: 0 }]);
  expect(tried.manifest).toMatchObject({
    backupId: backup.manifest.backupId,
    files: backup.manifest.files.length,
  });
  const listed = await command("backups", "--home", home, "--json");
  expect(JSON.parse(listed.out).backups).toMatchObject([
    { folder: backup.folder, bytes: backup.bytes, verified: { started: true } },
  ]);
  expect((await command("backups", "--home", home)).out).toMatch(/ MB +.*started yes/);
});

it("is refused where it is cut short or damaged, and the home stays as it is", async () => {
  const { files } = backup.manifest;
  const large = files.find(({ bytes }) => bytes > 100_000)!;
  const whole = readFileSync(join(backup.folder, "data", large.path));
  const flipped = Buffer.from(whole);
  flipped[5000]! ^= 1;
  const missing = copied("missing");
  rmSync(join(missing, "data", large.path));
  const halfManifest = copied("half-manifest");
  const text = readFileSync(join(halfManifest, "backup.json"));
  rmSync(join(halfManifest, "backup.json"));
  writeFileSync(join(halfManifest, "backup.json"), text.subarray(0, text.length / 2));
  const noManifest = copied("no-manifest");
  rmSync(join(noManifest, "backup.json"));
  const found = contentsOf(elsewhere);
  const cases: readonly (readonly [string, RegExp])[] = [
    [missing, new RegExp(`damaged, and is not restored:\n  ${large.path} is missing`)],
    [
      replaced("short", large.path, whole.subarray(0, 8192)),
      new RegExp(`${large.path} has 8192 bytes in place of ${large.bytes}`),
    ],
    [replaced("flipped", large.path, flipped), new RegExp(`${large.path} has another content than it had`)],
    [halfManifest, /backup\.json is cut short or damaged/],
    [noManifest, /is no complete backup: it has no backup\.json/],
    [join(folder, "nowhere"), /is no complete backup/],
  ];

  for (const [bad, words] of cases) {
    await expect(restoreDatabase(elsewhere, bad, { confirmed: true }), bad).rejects.toThrow(words);
    const verified = await command("verify", bad, "--json");
    expect([verified.code, bad]).toEqual([/backup/.test(words.source) ? 2 : 1, bad]);
    if (verified.code === 1) expect(JSON.parse(verified.out).faults).toHaveLength(1);
  }
  expect(contentsOf(elsewhere)).toEqual(found);
});

it("is refused where another Postgres, a newer program or an unknown migration made it, or its paths lead elsewhere", async () => {
  const [own] = backup.manifest.schemas;
  const later = { name: "9001-later", version: "99.0.0" };
  const schemas = [{ ...own, migrations: [...own!.migrations, later] }];
  const files = [{ path: "../../etc/passwd", bytes: 0, sha256: "0".repeat(64) }];
  const found = contentsOf(elsewhere);
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      withManifest("postgres-17", { postgresVersion: 17 }),
      /is of Postgres 17, and this program brings Postgres 18/,
    ],
    [withManifest("newer", { programVersion: "99.0.0" }), /was made by Nearcrawl 99\.0\.0, and this is/],
    [
      withManifest("migrated", { schemas }),
      /schema nearcrawl was brought to migration 9001-later by version 99\.0\.0, and this program/,
    ],
    [withManifest("format-2", { format: 2 }), /is a backup of format 2, this program reads 1/],
    [withManifest("outside", { files }), /files\.0\.path: leads out of the backup/],
  ];

  for (const [bad, words] of cases) await expect(restoreDatabase(elsewhere, bad), bad).rejects.toThrow(words);
  expect(contentsOf(elsewhere)).toEqual(found);
});

it("that the server cannot recover is reported in the server's words, and the home stays as it is", async () => {
  const found = contentsOf(elsewhere);
  const files = backup.manifest.files.filter(({ path }) => !/^pg_wal\/[0-9A-F]{24}$/.test(path));
  const withoutLog = withManifest("without-log", { files });

  await expect(restoreDatabase(elsewhere, withoutLog, { confirmed: true })).rejects.toThrow(
    /does not start: it ended with exit code 1: .*could not locate required checkpoint record/s,
  );
  const { code, err } = await command("verify", withoutLog, "--start");

  expect([code, err]).toEqual([1, expect.stringMatching(/could not locate required checkpoint record/)]);
  expect(contentsOf(elsewhere)).toEqual(found);
}, 60_000);

it("is not restored while the server or a coordinator runs on the home", async () => {
  await expect(restoreDatabase(home, backup.folder)).rejects.toThrow(
    /the embedded server of .* runs \(process \d+\): stop the coordinator, then nearcrawl database stop/,
  );
  const coordinator = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e9)", "nearcrawl"]);
  writeFileSync(join(elsewhere, "current-run.json"), JSON.stringify({ pid: coordinator.pid }));
  await expect(restoreDatabase(elsewhere, backup.folder)).rejects.toThrow(
    `a coordinator runs on ${elsewhere} (process ${coordinator.pid}): stop it first`,
  );
  coordinator.kill("SIGKILL");
  await new Promise((done) => coordinator.once("exit", done));

  await expect(planRestore(elsewhere, backup.folder)).resolves.toMatchObject({ replaces: true });
});

it("of an empty database comes last, is marked, and is not restored in place of a fuller one unless that is confirmed", async () => {
  const place = join(folder, "emptied");
  const { endedAt, schemas } = backup.manifest;
  const later = new Date(Date.parse(endedAt) + 60_000).toISOString();
  mkdirSync(join(place, "backups"), { recursive: true });
  const held = { ...schemas[0]!, pages: 1200, optOuts: 3 };
  renameSync(withManifest("full", { schemas: [held] }), join(place, "backups/full"));
  const emptied = { endedAt: later, schemas: [{ ...held, pages: 0, optOuts: 0 }], systemIdentifier: "42" };
  renameSync(withManifest("empty", emptied), join(place, "backups/empty"));
  const file = join(place, "database.json");
  writeFileSync(file, JSON.stringify({ systemIdentifier: backup.manifest.systemIdentifier }));

  const { code, out } = await command("backups", "--home", place);
  const json = JSON.parse((await command("backups", "--home", place, "--json")).out);
  const refused = await command("restore", join(place, "backups/empty"), "--home", place);
  const alerts = await inProcess(commandNamed("alerts"), ["--home", place, "--json"]);
  const doctor = await inProcess(doctorCommand(), ["--home", place]);
  const unsaid = await command("start-over", "--home", place);

  const id = held.databaseId!.slice(0, 8);
  expect(code).toBe(0);
  expect(out).toMatch(
    new RegExp(`${id} epoch 1 +no +1,200 +3 .*full\n.* ${id} epoch 1 \\(another\\) +yes +0 +0 .*empty`),
  );
  expect(json.backups).toMatchObject([{ pages: 1200, optOuts: 3, isEmpty: false }, { isEmpty: true }]);
  expect(refused).toMatchObject({
    code: 2,
    err: expect.stringMatching(
      /is of another database.*holds 0 pages and 0 opt-outs, and .*full 1,200 pages and 3 opt-outs/s,
    ),
  });
  // Needs no database and creates none.
  expect(alerts.code).toBe(4);
  expect(JSON.parse(alerts.out).alerts).toMatchObject([
    {
      name: "data-folder-gone",
      words: expect.stringContaining(`database restore ${join(place, "backups/full")} --home`),
    },
  ]);
  expect(doctor.out).toMatch(/fix +postgres +the data folder is gone/);
  expect(unsaid).toMatchObject({ code: 2, err: expect.stringMatching(/Say --yes if that is meant/) });
  expect(existsSync(join(place, "postgres"))).toBe(false);
  expect((await command("start-over", "--yes", "--home", place)).code).toBe(0);
  expect(existsSync(join(place, "postgres/PG_VERSION"))).toBe(true);
}, 60_000);

it("of another database, or restored already, needs to be confirmed", async () => {
  const foreign = join(folder, "foreign");
  mkdirSync(join(foreign, "postgres/global"), { recursive: true, mode: 0o700 });
  writeFileSync(join(foreign, "postgres/global/pg_control"), randomBytes(8192));
  await expect(restoreDatabase(foreign, backup.folder)).rejects.toThrow(
    /not restored: The backup is of another database \(system \d+\) than the one of .*foreign \(system \d+\)/,
  );
  const refused = await command("restore", backup.folder, "--home", elsewhere, "--json");
  expect(refused).toMatchObject({
    code: 2,
    err: expect.stringMatching(/This backup was restored here already, at \d{4}-.* Say --yes/),
  });
  expect(readdirSync(elsewhere).filter((name) => name.startsWith("postgres."))).toEqual([]);

  mkdirSync(join(elsewhere, "journal"));
  writeFileSync(join(elsewhere, "journal/1.jsonl"), "{}\n");
  const { mtimeMs } = statSync(join(elsewhere, "journal"));

  const { code, out } = await command("restore", backup.folder, "--home", elsewhere, "--json", "--yes");

  const again = JSON.parse(out);
  expect(code).toBe(0);

  // The previous folder had timeline 2, so that number is taken.
  expect(again.timeline).toBe(3);
  expect(again.keptAside).toMatch(/postgres\.before-/);
  expect(existsSync(join(again.keptAside, "PG_VERSION"))).toBe(true);
  // What the database lost is replayed from there.
  expect(statSync(join(elsewhere, "journal")).mtimeMs).toBe(mtimeMs);
  expect(readFileSync(join(elsewhere, "journal/1.jsonl"), "utf8")).toBe("{}\n");
}, 60_000);

it("interrupted, the command leaves nothing and exits with 130, and the server stays up", async () => {
  const names = readdirSync(join(home, "backups"));
  const main = await builtProgram("ops/cli/main");
  const child = spawn(process.execPath, [main, "database", "backup", "--home", home]);
  let said = "";
  child.stderr.on("data", (text) => {
    said += text;
  });
  await until(() => readdirSync(join(home, "backups")).length > names.length, 60_000);

  child.kill("SIGINT");
  const code = await new Promise((done) => child.once("exit", done));

  expect([code, said]).toEqual([
    130,
    expect.stringMatching(/nearcrawl: interrupted: nothing of the backup was kept\n$/),
  ]);
  expect(readdirSync(join(home, "backups"))).toEqual(names);
  const { rows } = await database.pool.query("select count(*)::int as slots from pg_replication_slots");
  expect(rows).toEqual([{ slots: 0 }]);
}, 60_000);

it.runIf(hasDisk)(
  "onto a disk that is too small is refused, and from one that runs full nothing is left",
  async () => {
    const filler = join(disk, "filler");
    writeFileSync(filler, Buffer.alloc(60e6));
    await expect(backupDatabase(home, { folder: disk })).rejects.toThrow(
      /disk has [\d.]+ MB free, and the backup takes about [\d.]+ MB: make room/,
    );
    rmSync(filler);

    const filled = backupDatabase(home, {
      folder: disk,
      onProgress: ({ bytes }) => bytes > 1e6 && !existsSync(filler) && fill(filler),
    });

    await expect(filled).rejects.toThrow(/the backup failed, and nothing of it was kept: ENOSPC/);
    expect(readdirSync(disk)).toEqual(["filler"]);
    await expect(planRestore(join(disk, "home"), backup.folder)).rejects.toThrow(
      /disk has .* free, and the restored database takes .*: make room first/,
    );
  },
);

it("whose log the server could not keep fails with the reason", async () => {
  const { pool } = database;
  // Simulates a full disk, where only little log is retained for a slow backup.
  for (const [name, value] of [
    ["max_slot_wal_keep_size", "1MB"],
    ["wal_keep_size", "0"],
    ["min_wal_size", "32MB"],
    ["max_wal_size", "32MB"],
  ])
    await pool.query(`alter system set ${name} = '${value}'`);
  await pool.query("select pg_reload_conf()");
  const pressed = new AbortController();
  const press = async () => {
    while (!pressed.signal.aborted) {
      await pool.query("insert into numbered select coalesce(max(number), 0) + 1 from numbered");
      await pool.query("select pg_switch_wal()");
      await pool.query("checkpoint");
    }
  };
  const pressing = press();

  const failing = backupDatabase(home).finally(() => pressed.abort());

  await expect(failing).rejects.toThrow(
    /nothing of it was kept: while it was taken, the server wrote more of its log than it may hold back/,
  );
  await pressing;
  await pool.query("alter system reset all");
  await pool.query("select pg_reload_conf()");
  expect(readdirSync(join(home, "backups")).filter((name) => name.includes("unfinished"))).toEqual([]);
});

it("of an external server, of no database or into an odd place, is refused with the remedy", async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["--home", join(folder, "nothing")], /there is no embedded database in .*nothing: nothing to back up/],
    [[backup.folder, "--home", home], /is a backup itself: name the folder that backups go to/],
    [[join(home, "postgres/base"), "--home", home], /lies in the data folder that is backed up/],
    [["--home", home, "--keep", "0"], /whole number from 1/],
  ];
  for (const [args, words] of cases) {
    const { code, err } = await command("backup", ...args);
    expect(code).toBe(2);
    expect(err).toMatch(words);
  }
  const place = join(folder, "own");
  mkdirSync(place);
  writeFileSync(
    join(place, "coordinator.toml"),
    'databaseUrl = "postgres://a:secret@db.example.org/nearcrawl"\n',
  );
  for (const args of [["backup"], ["restore", backup.folder]]) {
    const { code, err } = await command(...args, "--home", place);
    expect([code, err]).toEqual([
      2,
      "nearcrawl: the database is postgres://a@db.example.org/nearcrawl, not the embedded one: back it up and " +
        "restore it with pgBackRest (ops/runbook/backup-and-restore.md)\n",
    ]);
  }
  expect((await command("backups", "--home", place)).code).toBe(3);
});

it("that was made by a clock of tomorrow is not the newest, and removes none of the newest", () => {
  mkdirSync(join(folder, "dated"));
  const made = (name: string, days: number) =>
    withManifest(`dated/${name}`, { endedAt: new Date(Date.now() + days * 86_400_000).toISOString() });
  const [old, , ahead] = [made("old", -2), made("today", 0), made("ahead", 1)];

  const removed = removeOldBackups(join(folder, "dated"), 1, backup.manifest.systemIdentifier);

  expect(removed).toEqual([old, ahead]);
});

it("killed in the middle, counts for nothing, and the next one removes the rest", async () => {
  await killedIn(["backup", home]);
  const left = readdirSync(join(home, "backups")).filter((name) => name.includes(".unfinished-"));
  expect(left).toHaveLength(1);
  expect(listBackups(home).map((one) => one.folder)).toEqual([backup.folder]);
  await expect(verifyBackup(join(home, "backups", left[0]!))).rejects.toThrow(/is no complete backup/);

  const { code, out } = await command("backup", "--home", home, "--keep", "1", "--json");

  const next = JSON.parse(out);
  expect([code, next.removed]).toEqual([0, [backup.folder]]);
  expect(readdirSync(join(home, "backups"))).toEqual([next.folder.split("/").at(-1)]);
  expect(lastBackup(home)).toEqual({ at: new Date(next.manifest.endedAt) });
  backup = { ...next, manifest: readManifest(next.folder) };
}, 60_000);

it("a restore that is killed leaves the home as it was, or finishes with the next start", async () => {
  const { last } = await numbersIn(elsewhere);
  await killedIn(["restore", elsewhere, backup.folder, "recovered"]);
  const [unfinished] = readdirSync(elsewhere).filter((name) => name.startsWith("restore.new-"));
  // The server that recovered it outlives its starter.
  expect(serverIsAlive(join(elsewhere, unfinished!))).toBe(true);
  expect((await numbersIn(elsewhere)).last).toBe(last);

  await killedIn(["restore", elsewhere, backup.folder, "swap"]);
  expect(serverIsAlive(join(elsewhere, unfinished!))).toBe(false);
  expect(existsSync(join(elsewhere, "postgres"))).toBe(false);

  const [asideFolder] = readdirSync(elsewhere).filter((name) => name.startsWith("restore.new-"));
  renameSync(join(elsewhere, asideFolder!), join(elsewhere, "elsewhere"));
  await expect(numbersIn(elsewhere)).rejects.toThrow(
    /a restore was interrupted, and .* cannot be put in its place .*: to have what was there before, mv '.*postgres\.before-.*' '.*postgres' && rm/,
  );
  renameSync(join(elsewhere, "elsewhere"), join(elsewhere, asideFolder!));
  expect((await numbersIn(elsewhere)).last).toBeGreaterThan(last);
  await expect(restoreDatabase(elsewhere, backup.folder)).rejects.toThrow(/was restored here already/);
  expect(existsSync(join(elsewhere, "restore-swap.json"))).toBe(false);
}, 60_000);

it("a server that an older version started without the log for backups needs a restart", async () => {
  const settings = join(elsewhere, "postgres/postgresql.conf");
  const asNow = readFileSync(settings, "utf8");
  writeFileSync(settings, `${asNow}wal_level = minimal\nmax_wal_senders = 0\n`);
  await expect(backupDatabase(elsewhere)).rejects.toThrow(/still runs with wal_level = minimal/);

  writeFileSync(settings, asNow);

  const opened = await openDatabase({ databaseUrl: null, home: elsewhere, schema: "nearcrawl" });
  const { rows } = await opened.pool.query("select current_setting('wal_level') as level");
  await opened.close();
  expect(rows).toEqual([{ level: "replica" }]);
});

it("is reported to alerts once there was one, unless that is switched off", async () => {
  const { pool } = database;
  const place = { webUrl: "http://127.0.0.1:7411", certificatePin: null };
  const facts = {
    kind: "copy",
    lastMs: Date.parse(backup.manifest.endedAt),
    isFailing: false,
    warnAfterHours: 48,
  };
  expect(await backupFacts(pool)).toEqual(facts);
  await stateCoordinatorPlace(pool, { ...place, backupWarnHours: 24 }, new Date());
  expect(await backupFacts(pool)).toEqual({ ...facts, warnAfterHours: 24 });
  await stateCoordinatorPlace(pool, { ...place, backupWarnHours: null }, new Date());
  expect(await backupFacts(pool)).toBeNull();
  await pool.query("delete from coordinator_place");
  rmSync(join(home, "backups.json"));
  renameSync(join(home, "backups"), join(home, "kept"));
  expect(await backupFacts(pool)).toBeNull();
  renameSync(join(home, "kept"), join(home, "backups"));
});

it("of a network server that archives its log is reported by the state of its archive", async () => {
  const own = "listen_addresses = '127.0.0.7'\narchive_mode = on\narchive_command = 'true'\n";
  appendFileSync(join(elsewhere, "postgres/postgresql.conf"), own);
  const opened = await openDatabase({ databaseUrl: null, home: elsewhere, schema: "nearcrawl" });
  const { pool } = await openServerDatabase({
    databaseUrl: "postgres://nearcrawl@127.0.0.7:5432/nearcrawl",
    schema: "nearcrawl",
    maxConnections: 1,
  });
  const write = async () => {
    await pool.query("insert into numbered select coalesce(max(number), 0) + 1 from numbered");
    await pool.query("select pg_switch_wal()");
  };

  await write();
  await until(async () => (await backupFacts(pool))?.lastMs !== null, 60_000);
  expect(await backupFacts(pool)).toMatchObject({ kind: "archive", isFailing: false, warnAfterHours: 48 });

  await pool.query("alter system set archive_command = 'false'");
  await pool.query("select pg_reload_conf()");
  await until(async () => {
    await write();
    return (await backupFacts(pool))?.isFailing === true;
  }, 60_000);

  await pool.end();
  await opened.close();
}, 120_000);

it("is as old as the newest that can be found; on an unmounted disk, as was noted", async () => {
  const place = join(folder, "place");
  expect(lastBackup(place)).toBeNull();
  const away = join(folder, "away");
  mkdirSync(place);
  const note = { folders: [away], last: { folder: join(away, "one"), at: "2026-01-02T03:04:05Z" } };
  writeFileSync(join(place, "backups.json"), JSON.stringify(note));
  expect(lastBackup(place)).toEqual({ at: new Date("2026-01-02T03:04:05Z") });

  mkdirSync(away);
  expect(lastBackup(place)).toEqual({ at: null });
  execFileSync("cp", ["-al", backup.folder, join(away, "two")]);
  expect(lastBackup(place)).toEqual({ at: new Date(backup.manifest.endedAt) });
});

/** Writes until the disk is full. */
function fill(file: string): void {
  try {
    for (;;) appendFileSync(file, Buffer.alloc(1e6));
  } catch {}
}

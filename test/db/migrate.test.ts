import { cpSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CoordinatorPresence } from "#coordinator/place/crawlers/coordinator-presence-store";
import { runningCoordinators } from "#db/advisory-lock";
import { migrate } from "#db/migrate";
import { foundation, ownMigrations, pendingMigrations } from "#db/schema-state";
import type { Database } from "#db/server-database";
import { databaseFindings, pendingFinding } from "#ops/cli/setup/doctor-checks";
import { softwareVersion } from "#protocol/software-version";
import { commandNamed, inProcess } from "../support/command-in-process.ts";
import { testDatabase } from "../support/database.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

let database: Database;
beforeEach(async () => {
  database = await testDatabase();
});
afterEach(async () => await database.close());

const rows = async (text: string, values: unknown[] = []) => (await database.pool.query(text, values)).rows;
const one = async (text: string) => (await rows(text))[0]?.is === true;
const ran = async () => (await rows("select name from migration order by id")).map(({ name }) => name);
const own = ownMigrations().map(({ name }) => name);

/** Adds later migrations to this program's. */
function folderWith(later: Readonly<Record<string, string>>): string {
  const folder = temporaryFolder("nearcrawl-migrations-");
  cpSync("db/migrations", folder, { recursive: true });
  for (const [name, text] of Object.entries(later)) writeFileSync(join(folder, `${name}.sql`), text);
  return folder;
}

/** Returns the schema's tables, columns and migration records, so that any change shows. */
const trace = async () => [
  await rows(
    `select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = current_schema()::regnamespace and a.attnum > 0 order by 1, 2`,
  ),
  await rows("select * from migration order by id"),
];

describe("a fresh schema", () => {
  it("gets every migration once, with the version that ran it, and none the second time", async () => {
    const again = await migrate(database);

    expect(await rows("select name, version from migration order by id")).toEqual(
      own.map((name) => ({ name, version: softwareVersion })),
    );
    expect(own[0]).toBe(foundation);
    expect(again.applied).toEqual([]);
    expect(await pendingMigrations(database.pool)).toEqual([]);
  });

  it("retries a migration that a reader of its tables blocks", async () => {
    const folder = folderWith({
      "9001-both": "-- Up Migration\nalter table lease add column x int;\nalter table page add column x int;",
    });
    const reader = await database.pool.connect();
    try {
      // The session that waits first checks first for a deadlock and is ended: the migration.
      await reader.query("set deadlock_timeout = '30s'; begin; lock table page in access share mode");
      const migrated = migrate(database, { folder });
      const waits =
        "select exists (select from pg_locks where not granted and relation = 'page'::regclass) as is";
      await until(async () => await one(waits), 20_000);
      await reader.query("select from lease; rollback");

      expect(await migrated).toEqual({ applied: ["9001-both"] });
    } finally {
      reader.release(true);
    }
  });
});

describe("a schema from before the foundation", () => {
  /** Restores the table of an old program, which had no versions. */
  async function asBefore(names: readonly string[]): Promise<void> {
    await rows("delete from migration");
    await rows("alter table migration drop column version");
    await rows(
      "insert into migration (name, run_on) select name, now() - interval '1 day' from unnest($1::text[]) name",
      [names],
    );
  }
  /** The numbers of that time, and the names of the first and the last. */
  const gaps = [21, 30, 48, 49, 51, 53, 56, 57, 59, 63];
  const before = Array.from({ length: 65 }, (_, at) => at + 1)
    .filter((number) => !gaps.includes(number))
    .map((number) => `00${String(number).padStart(2, "0")}-${number === 65 ? "held-urls" : "something"}`);

  it("that has all of its migrations takes the foundation as run, once, and keeps its own account", async () => {
    await asBefore(before);
    // Migrations after the foundation are not there yet.
    const folder = temporaryFolder("nearcrawl-migrations-");
    cpSync(`db/migrations/${foundation}.sql`, join(folder, `${foundation}.sql`));
    writeFileSync(join(folder, "9001-later.sql"), "-- Up Migration\ncreate table later (x int);");

    const first = await migrate(database, { folder });
    const second = await migrate(database, { folder });

    expect(first.applied).toEqual([foundation, "9001-later"]);
    expect(second.applied).toEqual([]);
    expect(await ran()).toEqual([...before, foundation, "9001-later"]);
    expect(await rows("select name, version from migration where version is not null order by id")).toEqual([
      { name: foundation, version: softwareVersion },
      { name: "9001-later", version: softwareVersion },
    ]);
  });

  it("is refused half-way, by name, with nothing touched, by a start and by a command", async () => {
    await asBefore(before.slice(0, 40));
    const was = await trace();

    const words = /stands at migration 0042-something.*ends with 0065-held-urls\.sql.*Nothing was touched/;
    await expect(migrate(database)).rejects.toThrow(words);
    const args = ["--database-url", database.url, "--schema", database.schema, "192.0.2.1"];
    const { code, err } = await inProcess(commandNamed("who"), args);

    expect({ code, err }).toMatchObject({ code: 1, err: expect.stringMatching(words) });
    expect(await trace()).toEqual(was);
  });
});

describe("a schema of a newer version", () => {
  it("is refused with the newest migration and the version that ran it, by a start and by a command", async () => {
    await rows(
      "insert into migration (name, run_on, version) values ('9001-a', now(), '0.8.0'), ('9002-b', now(), '0.9.0')",
    );
    const was = await trace();

    const words = /9002-b by version 0\.9\.0, and this program \(.*\) does not know it.*Nothing was touched/;
    await expect(migrate(database)).rejects.toThrow(words);
    const args = ["--database-url", database.url, "--schema", database.schema, "192.0.2.1"];
    const { code, err } = await inProcess(commandNamed("who"), args);

    const { pool, schema } = database;
    const findings = await databaseFindings({ pool, schema, isEmbedded: true, now: () => new Date() });

    expect({ code, err }).toMatchObject({ code: 1, err: expect.stringMatching(words) });
    expect(findings.find((one) => one.subject === "schema")).toMatchObject({
      state: "fix",
      words: expect.stringContaining("9002-b by version 0.9.0"),
    });
    expect(await trace()).toEqual(was);
  });

  it("is refused where a branch's migration was skipped", async () => {
    await migrate(database, { folder: folderWith({ "9002-b": "-- Up Migration\nselect 1;" }) });

    const folder = folderWith({
      "9001-a": "-- Up Migration\nselect 1;",
      "9002-b": "-- Up Migration\nselect 1;",
    });
    await expect(migrate(database, { folder })).rejects.toThrow(/has migration 9002-b and lacks 9001-a/);
  });
});

describe("a migration that needs all coordinators stopped", () => {
  const stopping = folderWith({
    "9001-stop":
      "-- Links.\n-- needs: all coordinators stopped\n-- Up Migration\ncreate table stopped (x int);",
  });
  /** None of this program's own migrations needs stopped coordinators. */
  const rolling = folderWith({
    "9001-roll": "-- Links.\n-- needs: nothing\n-- Up Migration\ncreate table rolled (x int);",
    "0074-one-spelling-of-urls": "-- needs: nothing\n-- Up Migration\nselect 1;",
  });

  it("is refused while one runs, which it names, and runs when that has ended; others need not wait", async () => {
    await rows("insert into migration (name, run_on) values ('0001-foundation', now())");
    const presence = await CoordinatorPresence.begin(database.pool, { name: "search.example.org:7411" });
    const was = await trace();
    const named = new RegExp(
      `9001-stop needs all coordinators stopped, and one runs.*coordinator ${presence.number} \\(search\\.example\\.org:7411, since `,
    );
    try {
      await expect(migrate(database, { folder: stopping })).rejects.toThrow(named);
      expect(await trace()).toEqual(was);
      const finding = await pendingFinding(database.pool, database.schema, [
        { name: "9001-stop", needsAllStopped: true },
      ]);
      expect(finding).toMatchObject({ state: "fix" });
      expect(finding.words).toContain(`stop coordinator ${presence.number} (`);
      expect((await migrate(database, { folder: rolling })).applied).toEqual(["9001-roll"]);
      await rows("delete from migration where name = '9001-roll'");
    } finally {
      await presence.end();
    }
    await until(async () => (await runningCoordinators(database.pool, database.schema)).length === 0, 5000);

    expect((await migrate(database, { folder: stopping })).applied).toEqual(["9001-stop"]);
    // A program from before the foundation refuses a schema without its first migration.
    expect(await ran()).toEqual([...own, "9001-stop"]);
  });

  it("says so in its header", () => {
    const wrong = folderWith({ "9001-x": "-- needs: a pause\n-- Up Migration\nselect 1;" });

    expect(ownMigrations(stopping).at(-1)).toEqual({
      name: "9001-stop",
      needsAllStopped: true,
    });
    expect(ownMigrations(rolling).at(-1)).toEqual({
      name: "9001-roll",
      needsAllStopped: false,
    });
    expect(() => ownMigrations(wrong)).toThrow(/9001-x\.sql: "-- needs: a pause" must be/);
    expect(readdirSync("db/migrations")[0]).toBe(`${foundation}.sql`);
  });
});

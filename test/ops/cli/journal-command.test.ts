/** `nearcrawl journal` and `database restored`: the journal's content, differences, and manual replay. */

import { appendFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { currentEpoch } from "#coordinator/run/journal/epoch-store";
import { JournalFolder } from "#coordinator/run/journal/journal-file-store";
import { databaseCommand } from "#ops/cli/commands/database";
import { journalCommand } from "#ops/cli/commands/journal";
import { commandNamed, inProcess } from "../../support/command-in-process.ts";
import { testDatabase } from "../../support/database.ts";
import { forThisFile } from "../../support/for-this-file.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const home = temporaryFolder("nearcrawl-journal-home-");
const database = await forThisFile(testDatabase());

const place = () => ["--home", home, "--database-url", database.url, "--schema", database.schema];
const journal = async (...args: readonly string[]) =>
  await inProcess(journalCommand(), [...args, ...place()]);
const folder = async () => join(home, "journal", (await currentEpoch(database.pool)).databaseId);

it("reports a journal without entries", async () => {
  const { code, out } = await journal("list");

  expect([code, out]).toEqual([3, expect.stringMatching(/entries +none/)]);
});

it("has what a command changed on the disk when the command ends, and lists it", async () => {
  await inProcess(commandNamed("opt-outs"), [
    "add",
    "left.example",
    "--yes-remove",
    "0",
    "--words",
    "by mail",
    ...place(),
  ]);

  const { code, out } = await journal("list");
  const json = await journal("list", "--json");

  expect(code).toBe(0);
  expect(out).toMatch(/opt_out +left\.example .* site left\.example/);
  expect(out).toMatch(/audit_entry +.* left\.example is opted out/);
  expect(JSON.parse(json.out)).toMatchObject({
    faults: [],
    entries: [{ kind: "opt_out" }, { kind: "audit_entry" }],
  });
  expect((await journal("compare")).code).toBe(0);
});

it("finds lost and unusable entries, and restores the lost", async () => {
  await database.pool.query("delete from journal_entry where kind = 'opt_out'; delete from opt_out");
  const file = join(await folder(), readdirSync(await folder())[0]!);
  appendFileSync(file, "torn");

  const differs = await journal("compare");
  const replayed = await journal("replay");

  expect(differs.code).toBe(4);
  expect(differs.out).toMatch(/line 3: no entry: "torn"\n.*not in the database: opt_out left\.example/s);
  expect(replayed.out).toMatch(/^restored: opt_out 1; 0 changed since and left; 0 failed, from /);
  const { rows } = await database.pool.query("select site from opt_out where ended_at is null");
  expect(rows).toEqual([{ site: "left.example" }]);
});

it("replays the journal of a database that was lost without a backup", async () => {
  const lost = join(home, "lost");
  mkdirSync(lost);
  const entries = (await new JournalFolder(await folder()).read()).entries.map((entry, index) => ({
    ...entry,
    entryId: `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`,
    ...(entry.kind === "opt_out"
      ? { key: "other.example  ", value: { ...entry.value, site: "other.example" } }
      : {}),
  }));
  await new JournalFolder(lost).append(entries, new Date());

  const { code, out } = await journal("replay", "--folder", lost, "--json");
  const empty = await journal("replay", "--folder", home);

  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ replayed: { opt_out: 1 }, failed: [] });
  expect([empty.code, empty.err]).toEqual([2, expect.stringMatching(/there is no journal/)]);
});

it("begins an epoch when an operator reports a restored database", async () => {
  const restored = await inProcess(databaseCommand(), ["restored", "from the tape of Monday", ...place()]);

  expect([restored.code, restored.out]).toEqual([0, expect.stringMatching(/^epoch 2 has begun/)]);
  const { rows } = await database.pool.query("select cause, words from database_epoch where epoch = 2");
  expect(rows).toEqual([{ cause: "operator", words: "from the tape of Monday" }]);
  rmSync(home, { recursive: true });
});

/**
 * After kill -9 at several moments of an import the old generation stays in force, and the next import clears the
 * remains and succeeds.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Database } from "#db/server-database";
import { applyImport } from "#rir-import/apply";
import { registryStatus } from "#rir-import/status";
import { builtDoors } from "../support/built-command.ts";
import { testDatabase } from "../support/database.ts";
import { isLong } from "../support/long.ts";
import { type SourceFolder, sourceFolder } from "./source-folder.ts";
import { chainAt, delegate, delegationsInForce, treeInForce } from "./tree-in-force.ts";

let database: Database;
let folder: SourceFolder;
beforeEach(async () => {
  database = await testDatabase();
  folder = sourceFolder();
});
afterEach(async () => {
  folder.remove();
  await database.close();
});

const net = (range: string) => `inetnum: ${range}\nsource: RIPE\n\n`;
/** Enough that the writing is reported before its end: see rowsPerReport in tree-difference.ts. */
const blocks = Array.from({ length: 30_000 }, (_, n) => net(`46.${n >> 8}.${n & 255}.0/24`)).join("");

const moments = [
  { phase: "read", least: 0, what: "while it reads the files" },
  { phase: "current", least: 0, what: "while it reads the tree in force" },
  { phase: "compare", least: 1, what: "when it has compared" },
  { phase: "write", least: 1, what: "in the middle of writing" },
  { phase: "write", least: 30_001, what: "when all is written and not yet committed" },
];
it.each(isLong ? moments : moments.slice(-2))(
  "an import that is killed $what leaves the old tree, which serves meanwhile",
  async ({ phase, least }) => {
    await applyImport(database, [folder.write("a.db", net("45.10.0.0/16") + net("47.0.0.0/16"))]);
    const before = await treeInForce(database);
    const next = folder.write("b.db", net("45.10.0.0/16") + net("45.10.1.0/24") + blocks);

    const child = await standingStill(next, phase, least);
    expect(await chainAt(database, "47.0.0.1")).toHaveLength(1);
    await delegate(database, "45.10.0.0/16", "amsterdam");
    child.kill("SIGKILL");
    await once(child, "exit");

    expect(await treeInForce(database)).toEqual(before);
    expect((await registryStatus(database)).history).toHaveLength(1);
    await lockReleased();
    const isWriting = phase === "write";
    const { unfinished } = await registryStatus(database);
    expect(unfinished?.isRunning ?? null).toBe(isWriting ? false : null);
    const { plan, cleared } = await applyImport(database, [next]);
    expect(cleared).toBe(isWriting ? 1 : 0);
    expect((await registryStatus(database)).unfinished).toBeNull();
    expect(plan.changes).toMatchObject({ added: 30_001, removed: 1, unchanged: 1 });
    expect(await treeInForce(database)).toHaveLength(30_002);
    expect(await delegationsInForce(database)).toEqual({ "45.10.0.0/16": "amsterdam" });
  },
);

it("while an import runs, status says so and another is refused", async () => {
  const child = await standingStill(folder.write("a.db", blocks), "write", 1);

  const { unfinished } = await registryStatus(database);
  const another = applyImport(database, [folder.write("b.db", net("45.10.0.0/16"))]);

  expect(unfinished?.isRunning).toBe(true);
  await expect(another).rejects.toThrow("another import or rollback is running");
  child.kill("SIGKILL");
  await once(child, "exit");
});

async function standingStill(file: string, phase: string, least: number): Promise<ChildProcess> {
  const script = join(import.meta.dirname, "stopping-import.mjs");
  await builtDoors();
  const words = [script, database.url, database.schema, file, phase, String(least)];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  const [said] = (await Promise.race([once(child.stdout, "data"), once(child, "exit")])) as [unknown];
  expect(String(said)).toBe("stands still\n");
  return child;
}

/** Waits until the server has noticed that the process is gone; its lock ends with its session. */
async function lockReleased(): Promise<void> {
  await expect
    .poll(
      async () => {
        const { rows } = await database.pool.query<{ count: string }>(
          "select count(*) from pg_locks where locktype = 'advisory' and objid = (hashtext($1)::bigint & 4294967295)::oid",
          [database.schema],
        );
        return Number(rows[0]?.count);
      },
      { timeout: 10_000 },
    )
    .toBe(0);
}

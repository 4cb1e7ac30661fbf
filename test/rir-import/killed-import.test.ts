/** kill -9 in the middle of writing: the old generation serves on, and the next import goes through. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Database } from "#db/connect";
import { applyImport, registryStatus } from "#rir-import/main";
import { testDatabase } from "../support/database.ts";
import { type SourceFolder, sourceFolder } from "./source-folder.ts";
import { treeInForce } from "./tree-in-force.ts";

let database: Database;
let folder: SourceFolder;
beforeAll(async () => {
  database = await testDatabase();
  folder = sourceFolder();
});
afterAll(async () => {
  folder.remove();
  await database.close();
});

it("an import that is killed while it writes leaves the old tree and no lock, is told of, and is cleared away by the next", async () => {
  await applyImport(database, [folder.write("a.db", "inetnum: 45.10.0.0/16\nsource: RIPE\n")]);
  const before = await treeInForce(database);
  const next = folder.write(
    "b.db",
    "inetnum: 45.11.0.0/16\nsource: RIPE\n\ninetnum: 45.12.0.0/16\nsource: RIPE\n",
  );

  await killWhileWriting(next);

  expect(await treeInForce(database)).toEqual(before);
  expect((await registryStatus(database)).history).toHaveLength(1);
  await lockReleased();
  expect((await registryStatus(database)).unfinished).toMatchObject({ isRunning: false });
  const { plan, cleared } = await applyImport(database, [next]);
  expect(cleared).toBe(1);
  expect((await registryStatus(database)).unfinished).toBeNull();
  expect(plan.changes).toMatchObject({ added: 2, removed: 1 });
  expect((await treeInForce(database)).map(({ range }) => range)).toEqual(["45.11.0.0/16", "45.12.0.0/16"]);
});

async function killWhileWriting(file: string): Promise<void> {
  const script = join(import.meta.dirname, "stopping-import.ts");
  const options = ["--conditions=nearcrawl-source", "--import", "tsx", script];
  const child = spawn(process.execPath, [...options, database.url, database.schema, file], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const [said] = (await Promise.race([once(child.stdout, "data"), exited])) as [unknown];
  expect(String(said)).toBe("writing\n");
  child.kill("SIGKILL");
  await exited;
}

/** Until the server has noticed that the process is gone; its lock goes with its session. */
async function lockReleased(): Promise<void> {
  await expect
    .poll(async () => {
      const { rows } = await database.pool.query<{ count: string }>(
        "select count(*) from pg_locks where locktype = 'advisory' and objid = (hashtext($1)::bigint & 4294967295)::oid",
        [database.schema],
      );
      return Number(rows[0]?.count);
    })
    .toBe(0);
}

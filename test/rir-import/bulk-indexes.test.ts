import { afterAll, beforeAll, expect, it } from "vitest";
import { applyImport, isBulkImport, restoreIndexes, setIndexesAside } from "#rir-import/apply";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { type SourceFolder, sourceFolder } from "./source-folder.ts";

const database = await forThisFile(testDatabase());
let folder: SourceFolder;
beforeAll(async () => {
  folder = sourceFolder();
});
afterAll(async () => {
  folder.remove();
});

async function indexDefinitions(): Promise<readonly string[]> {
  const { rows } = await database.pool.query<{ definition: string }>(
    `select pg_get_indexdef(indexrelid) as definition
     from pg_index join pg_class on pg_class.oid = indexrelid
     where indisvalid and relnamespace = current_schema()::regnamespace
     order by relname`,
  );
  return rows.map(({ definition }) => definition);
}

it("indexes that were set aside come back as the migrations made them", async () => {
  const asMigrated = await indexDefinitions();
  const client = await database.pool.connect();

  await setIndexesAside(client);
  const meanwhile = await indexDefinitions();
  await restoreIndexes(client);
  client.release();

  expect(asMigrated.length - meanwhile.length).toBe(2);
  expect(await indexDefinitions()).toEqual(asMigrated);
});

it("an import builds those that a killed one left missing or half built", async () => {
  const asMigrated = await indexDefinitions();
  await database.pool.query("drop index subnet_holder");
  await leaveHalfBuilt("holder_name_trigram");

  await applyImport(database, [folder.write("a.db", "inetnum: 45.10.0.0/16\nsource: RIPE\n")]);

  expect(await indexDefinitions()).toEqual(asMigrated);
});

/** Leaves an index as a killed build does; without superuser rights it is dropped instead. */
async function leaveHalfBuilt(name: string): Promise<void> {
  const { rows } = await database.pool.query<{ rolsuper: boolean }>(
    "select rolsuper from pg_roles where rolname = current_user",
  );
  await database.pool.query(
    rows[0]?.rolsuper
      ? `update pg_index set indisvalid = false where indexrelid = '${name}'::regclass`
      : `drop index ${name}`,
  );
}

it("only an import of more new subnets than there are, and of many, sets them aside", () => {
  expect(isBulkImport(500_000, 0)).toBe(true);
  expect(isBulkImport(499_999, 0)).toBe(false);
  expect(isBulkImport(600_000, 600_000)).toBe(false);
});

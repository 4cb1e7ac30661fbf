/**
 * Undoes the newest generation in force, from what `subnet_change` wrote down: one transaction. Rows are not
 * deleted: what the generation added is marked as removed by it, so that a later import can bring it back
 * with its id and delegation.
 */
import type { PoolClient } from "pg";
import { UsageError } from "#core/errors";
import type { Database } from "#db/connect";
import { currentGeneration, notifyRegistryChange } from "./database/generations.ts";
import { inTransaction, withImportLock } from "./database/import-lock.ts";

export interface RolledBack {
  readonly rolledBack: number;
  /** The generation in force now; null: none, the tree is empty. */
  readonly generation: number | null;
  /** Changes undone, by their kind. */
  readonly undone: Readonly<Record<string, number>>;
}

/** Throws UsageError when there is no generation to undo, DatabaseError when an import is running. */
export async function rollbackImport(database: Database): Promise<RolledBack> {
  return await withImportLock(database, (client) =>
    inTransaction(client, async () => {
      const rolledBack = await currentGeneration(client);
      if (rolledBack === null) throw new UsageError("there is no import to roll back");
      const undone = await countUndone(client, rolledBack);
      for (const sql of steps) await client.query(sql, [rolledBack]);
      const generation = await currentGeneration(client);
      await notifyRegistryChange(client, database.schema, generation);
      return { rolledBack, generation, undone };
    }),
  );
}

async function countUndone(
  client: PoolClient,
  generation: number,
): Promise<Readonly<Record<string, number>>> {
  const { rows } = await client.query<{ change: string; count: string }>(
    "select change, count(*) from subnet_change where generation = $1 group by change order by change",
    [generation],
  );
  return Object.fromEntries(rows.map(({ change, count }) => [change, Number(count)]));
}

const steps: readonly string[] = [
  `update holder h
   set name = x.before->'holder'->>'name', handle = x.before->'holder'->>'handle'
   from (
     select distinct on (before->'holder'->>'key') before
     from subnet_change
     where generation = $1 and before->'holder'->>'key' is not null
     order by before->'holder'->>'key'
   ) x
   where h.holder_key = x.before->'holder'->>'key'
     and (h.name <> x.before->'holder'->>'name' or h.handle is distinct from x.before->'holder'->>'handle')`,

  `update subnet c
   set country = x.before->>'country', registry = x.before->>'registry', name = x.before->>'name',
     removed_in = (x.before->>'removedIn')::integer,
     holder_id = (select holder_id from holder where holder_key = x.before->'holder'->>'key')
   from subnet_change x
   where x.generation = $1 and x.change in ('changed', 'returned') and c.subnet_id = x.subnet_id`,

  `update subnet c set parent_id = (x.before->>'parentId')::integer
   from subnet_change x
   where x.generation = $1 and x.change = 'reparented' and c.subnet_id = x.subnet_id`,

  `update subnet c set removed_in = null
   from subnet_change x
   where x.generation = $1 and x.change = 'removed' and c.subnet_id = x.subnet_id`,

  `update subnet c set removed_in = $1
   from subnet_change x
   where x.generation = $1 and x.change = 'added' and c.subnet_id = x.subnet_id`,

  "update registry_generation set state = 'rolled-back' where generation = $1",
];

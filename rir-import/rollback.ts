/**
 * Undoes the newest generations in force, from what `subnet_before` and `holder_before` wrote down: one
 * transaction. Rows are not deleted: what a generation added is marked as removed by it, so that a later
 * import can bring it back with its id and delegation.
 */
import type { PoolClient } from "pg";
import { UsageError } from "#core/errors";
import type { Database } from "#db/connect";
import { clearInterrupted, currentGeneration, notifyRegistryChange } from "./database/generations.ts";
import { inTransaction, withImportLock } from "./database/import-lock.ts";

export interface RolledBack {
  /** The newest first. */
  readonly rolledBack: readonly number[];
  /** The generation in force now; null: none, the tree is empty. */
  readonly generation: number | null;
  /** Changes undone, by their kind. */
  readonly undone: Readonly<Record<string, number>>;
}

/**
 * Undoes that many imports, one unless told. Throws UsageError, and undoes nothing, when there are not so
 * many, or when the generation in force is not the one that is given; DatabaseError when an import is running.
 */
export async function rollbackImport(
  database: Database,
  imports = 1,
  expectedGeneration: number | null = null,
): Promise<RolledBack> {
  return await withImportLock(database, async (client) => {
    if (expectedGeneration !== null) requireInForce(expectedGeneration, await currentGeneration(client));
    await clearInterrupted(client);
    return await inTransaction(client, async () => {
      const rolledBack: number[] = [];
      const undone: Record<string, number> = {};
      while (rolledBack.length < imports) rolledBack.push(await undoNewest(client, undone, imports));
      const generation = await currentGeneration(client);
      await notifyRegistryChange(client, database.schema, generation);
      return { rolledBack, generation, undone };
    });
  });
}

function requireInForce(expected: number, generation: number | null): void {
  if (generation === expected) return;
  const now = generation === null ? "no generation is" : `generation ${generation} is`;
  throw new UsageError(`generation ${expected} is not in force, ${now}: nothing is rolled back`);
}

async function undoNewest(
  client: PoolClient,
  undone: Record<string, number>,
  imports: number,
): Promise<number> {
  const generation = await currentGeneration(client);
  if (generation === null) {
    throw new UsageError(
      imports === 1
        ? "there is no import to roll back"
        : `there are fewer than ${imports} imports to roll back`,
    );
  }
  for (const [change, sql] of steps) {
    const { rows, rowCount } = await client.query<{ change: string; count: string }>(sql, [generation]);
    if (change === "counted") for (const row of rows) count(undone, row.change, Number(row.count));
    else if (change !== null) count(undone, change, rowCount ?? 0);
  }
  return generation;
}

function count(undone: Record<string, number>, change: string, rows: number): void {
  if (rows > 0) undone[change] = (undone[change] ?? 0) + rows;
}

/** What each undoes; `counted` says itself, by kind. */
const steps: readonly (readonly [change: string | null, sql: string])[] = [
  ["counted", "select change, count(*) from subnet_before where generation = $1 group by change"],
  [
    null,
    `update subnet c
     set parent_id = x.parent_id, holder_id = x.holder_id, country = x.country, registry = x.registry,
       name = x.name, crosses = x.crosses, removed_in = x.removed_in
     from subnet_before x
     where x.generation = $1 and c.subnet_id = x.subnet_id`,
  ],
  ["added", "update subnet set removed_in = $1 where added_in = $1 and removed_in is null"],
  [
    "holders renamed",
    `update holder h set name = x.name, handle = x.handle
     from holder_before x
     where x.generation = $1 and h.holder_id = x.holder_id`,
  ],
  [null, "update registry_generation set state = 'rolled-back' where generation = $1"],
];

/**
 * Undoes the newest generations from `subnet_before` and `holder_before`, or restores an undone one, each in one
 * transaction. Rows are not deleted. Added rows are marked as removed by their generation, so a later import can bring
 * them back with id and delegation. Changed rows are kept in `subnet_after` and `holder_after` while rolled back.
 */
import type { PoolClient } from "pg";
import { UsageError } from "#core/errors";
import type { Database } from "#db/server-database";
import {
  clearInterrupted,
  currentGeneration,
  inTransaction,
  notifyRegistryChange,
  withImportLock,
} from "./database/generations.ts";
import { inUseOfRollback, requireMeant } from "./database/subnets-in-use.ts";

export interface RolledBack {
  readonly rolledBack: readonly number[];
  /** The generation now in force. Null when the tree is empty or a coordinator has yet to add the two roots. */
  readonly generation: number | null;
  readonly undone: Readonly<Record<string, number>>;
}

interface RollbackLimits {
  /** The generation that must be in force. `null` accepts any. */
  readonly expectedGeneration?: number | null;
  readonly toEmpty?: boolean;
  /** How many subnets in use the operator agreed to remove. Required if there are more than a few. */
  readonly removeInUse?: number | null;
}

/**
 * Undoes one import by default. Throws UsageError and undoes nothing when there are too few, another generation is in
 * force, or nothing would remain without confirmation; RemovesInUse when many subnets in use would be removed; and
 * DatabaseError when an import is running.
 */
export async function rollbackImport(
  database: Database,
  imports = 1,
  { expectedGeneration = null, toEmpty = false, removeInUse = null }: RollbackLimits = {},
): Promise<RolledBack> {
  return await withImportLock(database, async (client) => {
    if (expectedGeneration !== null) requireInForce(expectedGeneration, await currentGeneration(client));
    await clearInterrupted(client);
    return await inTransaction(client, async () => {
      const inUse = await inUseOfRollback(client, imports);
      const rolledBack: number[] = [];
      const undone: Record<string, number> = {};
      while (rolledBack.length < imports) rolledBack.push(await undoNewest(client, undone, imports));
      const generation = await currentGeneration(client);
      if (generation === null && !toEmpty) throw new UsageError(emptyWords(rolledBack));
      requireMeant(inUse, removeInUse);
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

const emptyWords = (rolledBack: readonly number[]) =>
  `generation ${rolledBack.at(-1)} is the first import: without it no registry is in force, ` +
  "and no subnet but the two roots of the address space. Nothing is rolled back; say " +
  "--to-empty if that is meant";

export interface RolledForward {
  readonly generation: number;
  readonly redone: Readonly<Record<string, number>>;
}

/**
 * Restores the last generation rolled back by default. Throws UsageError and changes nothing when none follows the
 * generation in force, and DatabaseError when an import is running.
 */
export async function rollForward(database: Database, wanted: number | null = null): Promise<RolledForward> {
  return await withImportLock(database, async (client) => {
    await clearInterrupted(client);
    return await inTransaction(client, async () => {
      const generation = await nextForward(client, wanted);
      const redone: Record<string, number> = {};
      await runSteps(client, redoSteps, generation, redone);
      await notifyRegistryChange(client, database.schema, generation);
      return { generation, redone };
    });
  });
}

async function nextForward(client: PoolClient, wanted: number | null): Promise<number> {
  const current = await currentGeneration(client);
  const { rows } = await client.query<{ generation: number }>(
    `select generation
     from registry_generation
     where ${canRollForward("$1")} and generation = coalesce($2, generation)
     order by rolled_back_at desc, generation
     limit 1`,
    [current, wanted],
  );
  if (rows[0]) return rows[0].generation;
  throw new UsageError(await whyNotForward(client, { current, wanted }));
}

/** `current` is an SQL expression of the generation in force, or null. */
export const canRollForward = (current: string) =>
  `state = 'rolled-back' and rolled_back_at is not null and rolled_back_to is not distinct from ${current}`;

async function whyNotForward(
  client: PoolClient,
  { current, wanted }: { readonly current: number | null; readonly wanted: number | null },
): Promise<string> {
  const now = current === null ? "no generation is in force" : `generation ${current} is in force`;
  if (wanted === null) return `no generation was rolled back from this one (${now})`;
  const { rows } = await client.query<{ state: string; kept: boolean; before: number | null }>(
    `select state, rolled_back_at is not null as kept, rolled_back_to as before
     from registry_generation
     where generation = $1`,
    [wanted],
  );
  const [row] = rows;
  if (row === undefined) return `there is no generation ${wanted}`;
  if (row.state !== "rolled-back") return `generation ${wanted} is not rolled back (${now})`;
  if (!row.kept)
    return `generation ${wanted} was rolled back by an older version, which kept nothing of it: apply its files again (nearcrawl rir apply)`;
  const before = row.before === null ? "no registry" : `generation ${row.before}`;
  return `generation ${wanted} follows ${before}, and ${now}: roll back or forward to ${before} first`;
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
  await runSteps(client, undoSteps, generation, undone);
  return generation;
}

/** Adds to `counts` how many rows each kind of change has. */
async function runSteps(
  client: PoolClient,
  steps: typeof undoSteps,
  generation: number,
  counts: Record<string, number>,
): Promise<void> {
  const add = (change: string, rows: number) => {
    if (rows > 0) counts[change] = (counts[change] ?? 0) + rows;
  };
  for (const [change, sql] of steps) {
    const { rows, rowCount } = await client.query<{ change: string; count: string }>(sql, [generation]);
    if (change === "counted") for (const row of rows) add(row.change, Number(row.count));
    else if (change !== null) add(change, rowCount ?? 0);
  }
}

const subnetsAsIn = (kept: "subnet_before" | "subnet_after") => `
  update subnet c
  set parent_id = x.parent_id, holder_id = x.holder_id, country = x.country, registry = x.registry,
    name = x.name, crosses = x.crosses, removed_in = x.removed_in
  from ${kept} x
  where x.generation = $1 and c.subnet_id = x.subnet_id`;

const holdersAsIn = (kept: "holder_before" | "holder_after") => `
  update holder h set name = x.name, handle = x.handle
  from ${kept} x
  where x.generation = $1 and h.holder_id = x.holder_id`;

const undoSteps: readonly (readonly [change: string | null, sql: string])[] = [
  [
    null,
    `insert into subnet_after
       (generation, subnet_id, parent_id, holder_id, country, registry, name, crosses, removed_in)
     select x.generation, c.subnet_id, c.parent_id, c.holder_id, c.country, c.registry, c.name, c.crosses, c.removed_in
     from subnet_before x
     join subnet c using (subnet_id)
     where x.generation = $1`,
  ],
  [
    null,
    `insert into holder_after (generation, holder_id, name, handle)
     select x.generation, h.holder_id, h.name, h.handle
     from holder_before x
     join holder h using (holder_id)
     where x.generation = $1`,
  ],
  ["counted", "select change, count(*) from subnet_before where generation = $1 group by change"],
  [null, subnetsAsIn("subnet_before")],
  ["added", "update subnet set removed_in = $1 where added_in = $1 and removed_in is null"],
  ["holders renamed", holdersAsIn("holder_before")],
  [
    null,
    `update registry_generation
     set state = 'rolled-back', rolled_back_at = now(),
       rolled_back_to = (
         select max(generation) from registry_generation where state = 'applied' and generation <> $1
       )
     where generation = $1`,
  ],
];

/** Reverses `undoSteps` and removes the rows kept for it. */
const redoSteps: typeof undoSteps = [
  ["counted", "select change, count(*) from subnet_before where generation = $1 group by change"],
  [
    // Applies to the roots that a coordinator has added since the rollback.
    null,
    `update subnet set removed_in = $1
     where removed_in is null and added_in in (select generation from registry_generation where state = 'stand-in')`,
  ],
  [null, subnetsAsIn("subnet_after")],
  ["added", "update subnet set removed_in = null where added_in = $1 and removed_in = $1"],
  ["holders renamed", holdersAsIn("holder_after")],
  [null, "delete from subnet_after where generation = $1"],
  [null, "delete from holder_after where generation = $1"],
  [
    null,
    `update registry_generation
     set state = 'applied', rolled_back_at = null, rolled_back_to = null
     where generation = $1`,
  ],
];

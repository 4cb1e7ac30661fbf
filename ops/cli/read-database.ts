/** For commands that only read. They say when nothing is set up yet, and create nothing. */

import type { Command } from "commander";
import { DatabaseError } from "#core/errors";
import { neverHadDatabase } from "#db/embedded-cluster";
import type { Database } from "#db/server-database";
import { type CommandContext, type ContextOptions, withDatabase } from "./command-context.ts";

/** Postgres' codes for a missing table and a missing schema. */
const notSetUp = new Set(["42P01", "3F000"]);

export async function readDatabase<T>(
  context: CommandContext,
  read: (database: Database) => Promise<T>,
): Promise<T> {
  refuseNothing(context);
  return await withDatabase(context, async (database) => await readFrom(database, context, read));
}

/** Throws a DatabaseError when opening the embedded database would create it. */
export function refuseNothing({ databaseUrl, home }: CommandContext): void {
  if (databaseUrl === null && neverHadDatabase(home))
    throw new DatabaseError(`nothing has been set up in ${home}: run nearcrawl up first`);
}

/** The same for a database that is already open. */
export async function readFrom<T>(
  database: Database,
  { schema }: Pick<CommandContext, "schema">,
  read: (database: Database) => Promise<T>,
): Promise<T> {
  try {
    return await read(database);
  } catch (error) {
    if (!notSetUp.has((error as { code?: string }).code ?? "")) throw error;
    throw new DatabaseError(
      `nothing has been set up in schema "${schema}" of ${database.description}: run nearcrawl up first`,
      { cause: error },
    );
  }
}

// The options shared by all commands that use the coordinator's database.

export interface DatabaseOptions extends ContextOptions {
  readonly json?: boolean;
}

export const withDatabaseOptions = (command: Command): Command =>
  withPlaceOptions(command).option("--json", "print for programs");

export const withPlaceOptions = (command: Command): Command =>
  command
    .option("--home <folder>", "where everything is kept")
    .option("--database-url <url>", "a Postgres server in place of the embedded one")
    .option("--schema <name>", "the database schema");

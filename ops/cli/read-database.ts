/** For commands that only look: a database where nothing was set up yet is said so, not created. */
import { DatabaseError } from "#core/errors";
import type { Database } from "#db/server-database";
import { type CommandContext, withDatabase } from "./command-context.ts";

/** Postgres' codes for a missing table and a missing schema. */
const notSetUp = new Set(["42P01", "3F000"]);

export async function readDatabase<T>(
  context: CommandContext,
  read: (database: Database) => Promise<T>,
): Promise<T> {
  return await withDatabase(context, async (database) => {
    try {
      return await read(database);
    } catch (error) {
      if (!notSetUp.has((error as { code?: string }).code ?? "")) throw error;
      throw new DatabaseError(
        `nothing has been set up in schema "${context.schema}" of ${database.description}: run nearcrawl up first`,
        { cause: error },
      );
    }
  });
}

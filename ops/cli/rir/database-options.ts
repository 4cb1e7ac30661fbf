/** What the commands of `nearcrawl rir` that work on a database share. */
import type { Command } from "commander";
import { migrate } from "#db/migrate";
import type { Database } from "#db/server-database";
import { type ContextOptions, commandContext, withDatabase } from "../command-context.ts";

export type DatabaseOptions = ContextOptions & { readonly json?: boolean };

export function onDatabase(command: Command, jsonHelp = "print for programs"): Command {
  return command
    .option("--json", jsonHelp)
    .option("--home <folder>", "where everything is kept")
    .option("--database-url <url>", "a Postgres server in place of the embedded one")
    .option("--schema <name>", "the database schema");
}

/** Opens the database, brings its schema up to date, works, closes. */
export function withMigrated<T>(
  options: DatabaseOptions,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  return withDatabase(commandContext(options), async (database) => {
    await migrate(database);
    return await work(database);
  });
}

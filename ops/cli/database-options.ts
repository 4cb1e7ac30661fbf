/** Options of every command that works at the coordinator's database and answers people or programs. */
import type { Command } from "commander";
import type { ContextOptions } from "./command-context.ts";

export interface DatabaseOptions extends ContextOptions {
  readonly json?: boolean;
}

export function withDatabaseOptions(command: Command): Command {
  return command
    .option("--home <folder>", "where everything is kept")
    .option("--database-url <url>", "a Postgres server in place of the embedded one")
    .option("--schema <name>", "the database schema")
    .option("--json", "print for programs");
}

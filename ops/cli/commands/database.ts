/** `nearcrawl database`: how to reach the database with psql, and how to stop the embedded one. */
import { Command } from "commander";
import { startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { type ContextOptions, commandContext, withDatabase } from "../command-context.ts";
import { printJson } from "../output.ts";

export function databaseCommand(): Command {
  const command = new Command("database").description("the database's address; stopping the embedded one");
  command.addCommand(
    new Command("url")
      .description(
        'print a URL for psql (psql "$(nearcrawl database url)"), starting the embedded server if need be',
      )
      .option("--home <folder>", "where everything is kept")
      .option("--database-url <url>", "a Postgres server in place of the embedded one")
      .option("--schema <name>", "the database schema")
      .option("--json", "print for programs")
      .action(async (options: ContextOptions & { json?: boolean }) => {
        const context = commandContext(options);
        // Started by itself, so that it outlives this command.
        if (context.databaseUrl === null) await startEmbeddedPostgres(context.home);
        await withDatabase(context, async (database) => {
          if (options.json)
            printJson({ url: database.url, schema: database.schema, database: database.description });
          else process.stdout.write(`${database.url}\n`);
        });
      }),
  );
  command.addCommand(
    new Command("stop")
      .description("stop the embedded server (it starts again with the next command)")
      .option("--home <folder>", "where everything is kept")
      .action(async (options: ContextOptions) => {
        const stopped = await stopEmbeddedPostgres(commandContext(options).home);
        process.stdout.write(stopped ? "stopped\n" : "it was not running\n");
      }),
  );
  return command;
}

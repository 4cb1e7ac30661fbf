/** `nearcrawl database`: connect with psql, move the database, back it up, and stop the embedded one. */
import { Command } from "commander";
import { coordinatorRuns } from "#coordinator/place/crawlers/coordinator-presence-store";
import { replayedRows } from "#coordinator/run/journal/epoch";
import { forgetDatabases } from "#coordinator/run/journal/epoch-store";
import { reviewDatabase } from "#coordinator/run/journal/went-back-store";
import { UsageError } from "#core/errors";
import { bytesText, howMany } from "#core/format";
import { type CopiedDatabase, copyDatabase } from "#db/copy-database";
import { startEmbeddedPostgres, stopEmbeddedPostgres } from "#db/embedded-postgres";
import { refuseWhileCoordinatorRuns } from "#db/restore-database";
import { type Database, openServerDatabase, withoutPassword } from "#db/server-database";
import { backupCommand, backupsCommand, restoreCommand, verifyCommand } from "../backup/backup-commands.ts";
import { type ContextOptions, commandContext, journalRootOf, withDatabase } from "../command-context.ts";
import { type ConfirmOptions, confirmedByTyping, yesOption } from "../confirm-by-typing.ts";
import { ProgressLine, printAnswer, printJson } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

export function databaseCommand(): Command {
  const command = new Command("database").description(
    "the database's address; backups of the embedded one; moving it to another server; stopping it",
  );
  command.addCommand(
    withDatabaseOptions(new Command("url"))
      .description(
        'print a URL for psql (psql "$(nearcrawl database url)"), starting the embedded server if need be',
      )
      .action(async (options: DatabaseOptions) => {
        const context = commandContext(options);
        // Starts the server outside `withDatabase`, which would stop it when this command ends.
        if (context.databaseUrl === null) await startEmbeddedPostgres(context.home);
        await withDatabase(context, async (database) => {
          if (options.json)
            printJson({ url: database.url, schema: database.schema, database: database.description });
          else process.stdout.write(`${database.url}\n`);
        });
      }),
  );
  command.addCommand(copyCommand());
  for (const make of [
    startOverCommand,
    restoredCommand,
    backupCommand,
    backupsCommand,
    verifyCommand,
    restoreCommand,
  ])
    command.addCommand(make());
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

interface StartOverOptions extends DatabaseOptions, ConfirmOptions {}

function startOverCommand(): Command {
  return withDatabaseOptions(new Command("start-over"))
    .addOption(yesOption())
    .description("begin with an empty or another database in a home that had one: nothing is restored")
    .addHelpText(
      "after",
      `
Where a home's data folder is gone, or databaseUrl leads to another database than the home's journal knows, nothing is
made until somebody restores (nearcrawl database restore) or says this. Crawlers then have to be invited again; opt-outs
are put back from the old journal by nearcrawl journal replay --folder HOME/journal/OLD-DATABASE.

Exit codes: 0 done, 1 failed, 2 not confirmed, or a coordinator runs.`,
    )
    .action(async (options: StartOverOptions) => {
      const context = commandContext(options);
      const { home, schema, databaseUrl } = context;
      refuseWhileCoordinatorRuns(home);
      const follows = `The crawl of ${home} begins anew: what its database held (pages, opt-outs, crawlers' identities) is not restored.
Backups: nearcrawl database backups --home ${home}`;
      if (options.yes !== true && (options.json === true || process.stdin.isTTY !== true))
        throw new UsageError(`${follows}\nSay --yes if that is meant.`);
      const deed = { follows, typed: "start over", asked: "the words start over" };
      if (!(await confirmedByTyping(options, async () => deed))) return;
      if (databaseUrl === null) {
        await startEmbeddedPostgres(home, { anew: true });
        await stopEmbeddedPostgres(home);
      }
      await forgetDatabases(journalRootOf(home), schema);
      printAnswer(
        options,
        { home, schema },
        databaseUrl === null
          ? `An empty database was begun in ${home}. Start the coordinator, then nearcrawl journal ` +
              "replay brings back what the journal has of the one before: opt-outs, revocations, crawlers."
          : `${home} takes the database that is there from now on.`,
      );
    });
}

function restoredCommand(): Command {
  return withDatabaseOptions(new Command("restored"))
    .argument("[words]", "what happened, for the audit log", "an operator says that it was restored")
    .description("say that the database went back to an earlier state, where nobody has noticed")
    .addHelpText(
      "after",
      `
Coordinators notice a restore and a failover by themselves (by the server's identity, its timeline and its write-ahead
log, and by the journal). It begins an epoch: crawlers are let in by their signatures, leases return, the change feed's
numbers jump, the journal is replayed, and running coordinators start over.

Exit codes: 0 done, 1 failed, 2 wrong usage.`,
    )
    .action(async (words: string, options: DatabaseOptions) => {
      const context = commandContext(options);
      const log = { warn: () => {}, error: () => {} };
      const { epoch, began } = await readDatabase(context, async ({ pool }) => {
        const journalRoot = journalRootOf(context.home);
        const now = () => new Date();
        return await reviewDatabase({ pool, journalRoot, log, now }, { words });
      });
      const { replayed = {}, failed = [] } = began?.replay ?? {};
      const rows = replayedRows({ replayed });
      printAnswer(
        options,
        { epoch, replayed, failed },
        `epoch ${epoch} has begun; the journal put ${howMany(rows, "row")} back, ${failed.length} failed (nearcrawl journal compare)`,
      );
    });
}

interface CopyOptions extends DatabaseOptions {
  readonly toSchema?: string;
}

function copyCommand(): Command {
  return withDatabaseOptions(new Command("copy"))
    .argument(
      "<url>",
      "the server and database to copy it into, such as postgres://nearcrawl@db.example.org/nearcrawl",
    )
    .description(
      "copy everything into an empty database on another server, from and to Postgres 15 to 18; the one that is read stays as it is",
    )
    .option("--to-schema <name>", "the schema there (default: of the same name)")
    .addHelpText(
      "after",
      `
Stop the coordinator first. Then state databaseUrl in coordinator.toml, ask nearcrawl doctor, and start it again.
Interrupted, it leaves nothing but an empty schema. Exit codes: 0 done, 1 failed, 2 wrong usage: a coordinator runs,
or there is something already.

Example:
  nearcrawl database copy postgres://nearcrawl@db.example.org/nearcrawl`,
    )
    .action(async (url: string, options: CopyOptions) => {
      const copied = await readDatabase(
        commandContext(options),
        async (source) => await copyTo(url, source, options),
      );
      const { tables, rows, bytes } = copied;
      printAnswer(
        options,
        copied,
        `${tables} tables with ${howMany(rows, "row")} (${bytesText(bytes)}) were copied. Now state ` +
          `it in coordinator.toml: databaseUrl = "${withoutPassword(url)}"`,
      );
    });
}

async function copyTo(url: string, source: Database, { toSchema }: CopyOptions): Promise<CopiedDatabase> {
  if (await coordinatorRuns(source.pool))
    throw new UsageError(
      `a coordinator works on ${source.description}: stop it first, or what it does meanwhile is not copied`,
    );
  const schema = toSchema ?? source.schema;
  const target = await openServerDatabase({ databaseUrl: url, schema });
  const line = new ProgressLine();
  const startedMs = performance.now();
  try {
    return await copyDatabase(source, target, ({ table, bytes, totalBytes }) => {
      const seconds = Math.max(0.001, (performance.now() - startedMs) / 1000);
      const left =
        seconds > 2 && bytes > 0 ? Math.ceil((seconds * Math.max(0, totalBytes - bytes)) / bytes) : null;
      line.show(
        `${table}: ${bytesText(bytes)} of about ${bytesText(totalBytes)}, ` +
          `${bytesText(Math.round(bytes / seconds))}/s, ${left === null ? "ETA –" : `ETA ${left} s`}`,
      );
    });
  } finally {
    line.done();
    await target.close();
  }
}

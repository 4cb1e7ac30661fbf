/** `nearcrawl rir`: registry dumps become the IP tree. What it prints for people is in ../rir/rir-text.ts. */
import { Command, InvalidArgumentError } from "commander";
import { migrate } from "#db/migrate";
import {
  applyImport,
  checkSources,
  lookUp,
  type OnProgress,
  planImport,
  registryStatus,
  rollbackImport,
} from "#rir-import/main";
import { type ContextOptions, commandContext, exitCodes, withDatabase } from "../command-context.ts";
import { ProgressLine, printJson } from "../output.ts";
import { appliedText, planText, rolledBackText, statusText } from "../rir/plan-text.ts";
import { progressText } from "../rir/progress-text.ts";
import { checkText, lookUpText } from "../rir/rir-text.ts";

type Options = ContextOptions & { readonly json?: boolean };

export function rirCommand(): Command {
  const command = new Command("rir")
    .description("registry dumps: check, plan, apply, roll back, look up")
    .addHelpText("after", sourcesHelp);
  command.addCommand(checkCommand());
  command.addCommand(planCommand());
  command.addCommand(applyCommand());
  command.addCommand(rollbackCommand());
  command.addCommand(statusCommand());
  command.addCommand(lookUpCommand());
  return command;
}

const sourcesHelp = `
Sources are files or folders: RPSL dumps (RIPE, APNIC, AFRINIC, LACNIC), ARIN's bulk data (XML or text),
delegated statistics, IANA's registries; plain, gzip or ZIP, told by their first bytes.

Examples:
  nearcrawl rir check downloads/
  nearcrawl rir plan downloads/ --json
  nearcrawl rir apply ripe.db.inetnum.gz ripe.db.organisation.gz delegated-ripencc-extended-latest
  nearcrawl rir lookup 193.0.6.139

Exit codes: 0 done, 1 failed, 2 a source that is not what it claims to be or wrong usage, 3 not found.`;

function checkCommand(): Command {
  return new Command("check")
    .description("read sources and report, without a database: counts, malformed records, crossing ranges")
    .argument("<source...>", "files or folders")
    .option("--json", "print for programs")
    .addHelpText("after", "\nExample:\n  nearcrawl rir check delegated-afrinic-extended-latest.txt.gz")
    .action(async (sources: string[], options: { json?: boolean }) => {
      const check = await withProgress((onProgress) => checkSources(sources, onProgress));
      print(options, check, checkText(check));
    });
}

function planCommand(): Command {
  return onDatabase(new Command("plan"))
    .description("say what an import would change, and change nothing")
    .argument("<source...>", "files or folders")
    .option("--samples <n>", "samples of each kind of change", positive, 10)
    .addHelpText("after", "\nExample:\n  nearcrawl rir plan downloads/ --samples 50")
    .action(async (sources: string[], options: Options & { samples: number }) => {
      const { samples } = options;
      const plan = await withProgress((onProgress) =>
        withMigrated(options, (database) => planImport(database, sources, { onProgress, samples })),
      );
      print(options, plan, planText(plan));
    });
}

function applyCommand(): Command {
  return onDatabase(new Command("apply"))
    .description("make the sources the tree in force, in one transaction; coordinators go on serving")
    .argument("<source...>", "files or folders: all of them, every time; what they do not hold is removed")
    .addHelpText(
      "after",
      "\nSubnets that stay keep their id and delegation; `rir rollback` undoes it.\n\nExample:\n  nearcrawl rir apply downloads/",
    )
    .action(async (sources: string[], options: Options) => {
      const applied = await withProgress((onProgress) =>
        withMigrated(options, (database) => applyImport(database, sources, { onProgress })),
      );
      print(options, applied, appliedText(applied));
    });
}

function rollbackCommand(): Command {
  return onDatabase(new Command("rollback"))
    .description("undo the newest import: the tree and its delegations are as before it")
    .addHelpText("after", "\nExample:\n  nearcrawl rir rollback")
    .action(async (options: Options) => {
      const rolledBack = await withMigrated(options, rollbackImport);
      print(options, rolledBack, rolledBackText(rolledBack));
    });
}

function statusCommand(): Command {
  return onDatabase(new Command("status"))
    .description("what the tree in force was made from, and how old that is")
    .addHelpText("after", "\nExit code 3 before the first import.\n\nExample:\n  nearcrawl rir status --json")
    .action(async (options: Options) => {
      const status = await withMigrated(options, (database) => registryStatus(database, new Date()));
      print(options, status, statusText(status));
      if (status.generation === null) process.exitCode = exitCodes.notFound;
    });
}

function lookUpCommand(): Command {
  return onDatabase(new Command("lookup"))
    .description("the chain of subnets that hold an address or a range")
    .argument("<address>", "an address, a/prefix or 'a - b'")
    .addHelpText(
      "after",
      "\nExit code 3 when nothing holds it.\n\nExamples:\n  nearcrawl rir lookup 193.0.6.139\n  nearcrawl rir lookup 2001:67c:2e8::/48",
    )
    .action(async (address: string, options: Options) => {
      const found = await withMigrated(options, (database) => lookUp(database, address));
      print(options, found, lookUpText(found));
      if (found.chain.length === 0) process.exitCode = exitCodes.notFound;
    });
}

function onDatabase(command: Command): Command {
  return command
    .option("--json", "print for programs")
    .option("--home <folder>", "where everything is kept")
    .option("--database-url <url>", "a Postgres server in place of the embedded one")
    .option("--schema <name>", "the database schema");
}

function withMigrated<T>(options: Options, work: Parameters<typeof withDatabase<T>>[1]): Promise<T> {
  return withDatabase(commandContext(options), async (database) => {
    await migrate(database);
    return await work(database);
  });
}

async function withProgress<T>(work: (onProgress: OnProgress) => Promise<T>): Promise<T> {
  const line = new ProgressLine();
  const startedAt = performance.now();
  try {
    return await work((progress) =>
      line.show(progressText(progress, (performance.now() - startedAt) / 1000)),
    );
  } finally {
    line.done();
  }
}

function print(options: { readonly json?: boolean }, value: unknown, text: string): void {
  if (options.json) printJson(value);
  else process.stdout.write(`${text}\n`);
}

function positive(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > 100_000) {
    throw new InvalidArgumentError("a whole number from 0 to 100000 is expected");
  }
  return value;
}

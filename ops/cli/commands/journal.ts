/** `nearcrawl journal`: what must outlive the database is kept in files beside it. Shows differences and replays the files. */
import { join } from "node:path";
import { Command } from "commander";
import { journalDays, type Replay } from "#coordinator/run/journal/epoch";
import { currentEpoch, epochs } from "#coordinator/run/journal/epoch-store";
import {
  type JournalContents,
  type JournalEntry,
  JournalFolder,
} from "#coordinator/run/journal/journal-file-store";
import { knownEntries } from "#coordinator/run/journal/journal-store";
import { replayByHand } from "#coordinator/run/journal/went-back-store";
import { UsageError } from "#core/errors";
import { printable } from "#core/terminal-text";
import { answerText } from "../answer-text.ts";
import { recordCommand } from "../audit-command-change.ts";
import { commandContext, journalRootOf } from "../command-context.ts";
import { exitCodes } from "../exit-codes.ts";
import { boundedInteger } from "../options.ts";
import { printAnswer } from "../output.ts";
import { type DatabaseOptions, readDatabase, withDatabaseOptions } from "../read-database.ts";

interface JournalOptions extends DatabaseOptions {
  readonly folder?: string;
  readonly limit: number;
}

export function journalCommand(): Command {
  const command = new Command("journal").description(
    "opt-outs, revocations, crawlers and the audit log in files beside the database: what they hold, where the database differs",
  );
  command.addCommand(
    withFolder(new Command("list"))
      .description("what was journaled, the latest last")
      .option("--limit <n>", "how many", boundedInteger(1, 100_000), 50)
      .addHelpText("after", "\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing was journaled.")
      .action(async (options: JournalOptions) => await list(options)),
  );
  command.addCommand(
    withFolder(new Command("compare"))
      .description("lines that cannot be used, and entries that the database does not know")
      .addHelpText("after", "\nExit codes: 0 they agree, 1 failed, 2 wrong usage, 4 they differ.")
      .action(async (options: JournalOptions) => await compare(options)),
  );
  command.addCommand(
    withFolder(new Command("replay"))
      .description("restore what the journal of a lost database holds into this one")
      .addHelpText(
        "after",
        `
A coordinator does so by itself when its database was restored. By hand: into a new database, from the journal of one
that was lost without a backup (--folder), or after clocks were corrected. Later changes stay as they are.

Exit codes: 0 done, 1 failed, 2 wrong usage, 4 some entries could not be restored.

Example:
  nearcrawl journal replay --folder /var/lib/nearcrawl/journal/0f8fad5b-d9cb-469f-a165-70867728950e`,
      )
      .action(async (options: JournalOptions) => await replay(options)),
  );
  return command;
}

function withFolder(command: Command): Command {
  return withDatabaseOptions(command).option(
    "--folder <folder>",
    "another journal (default: this database's, in the home)",
  );
}

interface ReadJournal {
  readonly folder: string;
  readonly contents: JournalContents;
}

async function journalOf(options: JournalOptions, databaseId: string): Promise<ReadJournal> {
  const folder = options.folder ?? join(journalRootOf(commandContext(options).home), databaseId);
  const contents = await new JournalFolder(folder).read();
  if (options.folder !== undefined && contents.entries.length + contents.faults.length === 0)
    throw new UsageError(`--folder ${folder}: there is no journal (files such as 20260301T080000000Z.jsonl)`);
  return { folder, contents };
}

async function list(options: JournalOptions): Promise<void> {
  const { folder, contents } = await readDatabase(
    commandContext(options),
    async ({ pool }) => await journalOf(options, (await currentEpoch(pool)).databaseId),
  );
  const entries = contents.entries.slice(-options.limit);
  const { faults } = contents;
  const told = entries.map((entry) => ({ ...entry, words: wordsOf(entry.value) }));
  const text = answerText({ folder, faults, entries: told }, { entries: "at epoch kind key words" });
  printAnswer(options, { folder, entries, faults }, text);
  if (contents.entries.length === 0) process.exitCode = exitCodes.notFound;
}

/** Returns the changed values as text, without digests. */
function wordsOf(value: JournalEntry["value"]): string {
  if (typeof value.words === "string" && typeof value.action === "string") return value.words;
  return Object.entries(value)
    .filter(([name, one]) => one !== null && one !== "" && !/hash|signed|public_key|token/.test(name))
    .map(([name, one]) => `${name} ${typeof one === "string" ? one : JSON.stringify(one)}`)
    .join(", ");
}

const faultLines = (faults: JournalContents["faults"]) =>
  faults.map(({ file, line, words }) => `${file}, line ${line}: ${printable(words, 200)}`);

async function compare(options: JournalOptions): Promise<void> {
  const answer = await readDatabase(commandContext(options), async ({ pool }) => {
    const all = await epochs(pool, 20);
    const epoch = all[0]!;
    const { folder, contents } = await journalOf(options, epoch.databaseId);
    const known = await knownEntries(
      pool,
      contents.entries.map(({ entryId }) => entryId),
    );
    // The database deletes older entries, so their absence means nothing.
    const sinceMs = Date.now() - (journalDays - 1) * 86_400_000;
    const unknown = contents.entries.filter(
      // Entries of earlier epochs were restored when the current epoch began.
      ({ entryId, at, epoch: of }) => of === epoch.epoch && !known.has(entryId) && Date.parse(at) >= sinceMs,
    );
    return { folder, entries: contents.entries.length, faults: contents.faults, unknown, epochs: all };
  });
  const { folder, entries, faults, unknown } = answer;
  const [epoch] = answer.epochs;
  const failed = epoch?.replay?.failed ?? [];
  const differs = faults.length + unknown.length + failed.length > 0;
  const lines = [
    ...faultLines(faults),
    ...unknown.map(({ at, kind, key }) => `not in the database: ${kind} ${printable(key, 100)} of ${at}`),
    ...failed.map(
      ({ kind, key, words }) =>
        `could not be restored: ${kind} ${printable(key, 100)}: ${printable(words, 200)}`,
    ),
    differs ? `${folder} and the database differ` : `${entries} entries in ${folder}; the database agrees`,
    `epoch ${epoch?.epoch} since ${epoch?.beganAt.toISOString()}: ${epoch?.words}`,
  ];
  printAnswer(options, answer, lines.join("\n"));
  if (differs) process.exitCode = exitCodes.alerts;
}

async function replay(options: JournalOptions): Promise<void> {
  const done = await readDatabase(
    commandContext(options),
    async ({ pool }): Promise<Replay & { folder: string }> => {
      const { folder, contents } = await journalOf(options, (await currentEpoch(pool)).databaseId);
      const replayed = await replayByHand(pool, contents, new Date());
      await recordCommand(pool, {
        action: "journal-replayed",
        target: null,
        words: `The journal was replayed by hand: ${wordsOfReplay(replayed)}.`,
        after: { ...replayed, failed: replayed.failed.length },
      });
      return { folder, ...replayed };
    },
  );
  const failed = done.failed.map(
    ({ kind, key, words }) =>
      `could not be restored: ${kind} ${printable(key, 100)}: ${printable(words, 200)}`,
  );
  printAnswer(options, done, [...failed, `${wordsOfReplay(done)}, from ${done.folder}`].join("\n"));
  if (done.failed.length > 0) process.exitCode = exitCodes.alerts;
}

function wordsOfReplay({ replayed, outdated, failed }: Replay): string {
  const kinds = Object.entries(replayed).map(([kind, count]) => `${kind} ${count}`);
  const rows = kinds.length === 0 ? "nothing to restore" : `restored: ${kinds.join(", ")}`;
  return `${rows}; ${outdated} changed since and left; ${failed.length} failed`;
}

/** `nearcrawl database backup`, `backups`, `verify` and `restore`, for the embedded server of a home. */
import { Command } from "commander";
import { forgetDatabases } from "#coordinator/run/journal/epoch-store";
import { UsageError } from "#core/errors";
import { bytesText, instantWords, spanWords } from "#core/format";
import { type Backup, backupDatabase, type CopyProgress } from "#db/backup-database";
import {
  type BackupManifest,
  holdsNothing,
  type KnownBackup,
  knownCluster,
  listBackups,
  rowsOf,
} from "#db/backup-folder";
import { tryBackup, verifyBackup } from "#db/recover-backup";
import { planRestore, type RestorePlan, type RestoreStep, restoreDatabase } from "#db/restore-database";
import { withoutPassword } from "#db/server-database";
import { answerText } from "../answer-text.ts";
import { type CommandContext, commandContext, journalRootOf } from "../command-context.ts";
import { type ConfirmOptions, confirmedByTyping, yesOption } from "../confirm-by-typing.ts";
import { exitCodes } from "../exit-codes.ts";
import { boundedInteger } from "../options.ts";
import { ProgressLine, printAnswer } from "../output.ts";

interface HomeOptions {
  readonly home?: string;
  readonly json?: boolean;
}

const withHome = (command: Command) =>
  command.option("--home <folder>", "where everything is kept").option("--json", "print for programs");

const mostKept = 10_000;

export function backupCommand(): Command {
  return withHome(new Command("backup"))
    .argument(
      "[folder]",
      "where backups go, each into a folder named by its time (default: backups in the home)",
    )
    .description("back up the embedded database while everything works on")
    .option(
      "--keep <n>",
      "then remove the oldest of this database there, beyond n complete ones",
      boundedInteger(1, mostKept),
    )
    .addHelpText(
      "after",
      `
It holds what was committed until its end. Interrupted or killed, it leaves nothing that counts as a backup, and the
next one removes the rest. A server of your own has its own tools (ops/runbook/backup-and-restore.md).

Exit codes: 0 done, 1 failed, 2 wrong usage, no embedded database, or too little room, 130 interrupted.

Examples:
  nearcrawl database backup --keep 7
  nearcrawl database backup /mnt/backups --keep 30 --json`,
    )
    .action(async (folder: string | undefined, options: HomeOptions & { keep?: number }) => {
      const { home } = embeddedContext(options);
      const backup = await interruptible(
        async (signal, onProgress) =>
          await backupDatabase(home, {
            folder,
            keep: options.keep,
            signal,
            onProgress: onProgress("copied"),
          }),
        "nothing of the backup was kept",
      );
      if (backup !== null) tell(options, backupAnswer(backup));
    });
}

export function backupsCommand(): Command {
  return withHome(new Command("backups"))
    .description("list the complete backups of a home, newest first, those of an empty database last")
    .addHelpText("after", "\nExit codes: 0 there are some, 2 wrong usage, 3 there is none.")
    .action((options: HomeOptions) => {
      const { home } = commandContext(options);
      const backups = listBackups(home);
      if (backups.length === 0) process.exitCode = exitCodes.notFound;
      const answer = { home, backups: backups.map((one) => listedAnswer(one, home)) };
      printAnswer(
        options,
        answer,
        backups.length === 0
          ? `there is no complete backup of ${home}: nearcrawl database backup makes one`
          : answerText(answer, {
              backups: "endedAt database isEmpty pages optOuts bytes verified folder",
            }),
      );
    });
}

export function verifyCommand(): Command {
  return withHome(new Command("verify"))
    .argument("[backup]", "its folder (default: the newest of the home)")
    .description("hold every file of a backup against its size and digest")
    .option(
      "--start",
      "also restore it into a temporary folder (TMPDIR), start it, check its indexes and say what is in it",
    )
    .addHelpText(
      "after",
      `
Exit codes: 0 it is sound, 1 it is damaged or does not start, 2 wrong usage or no backup, 130 interrupted.

Example:
  nearcrawl database verify /var/lib/nearcrawl/backups/2026-03-01T02-30-11Z --start`,
    )
    .action(async (named: string | undefined, options: HomeOptions & { start?: boolean }) => {
      const folder = named ?? newestBackup(commandContext(options).home);
      if (options.start) await verifyByStarting(folder, options);
      else await verifyFiles(folder, options);
    });
}

function newestBackup(home: string): string {
  const [newest] = listBackups(home);
  if (newest !== undefined) return newest.folder;
  throw new UsageError(`there is no complete backup of ${home}: nearcrawl database backup makes one`);
}

async function verifyFiles(folder: string, options: { json?: boolean }): Promise<void> {
  const verified = await interruptible(
    async (signal, onProgress) => await verifyBackup(folder, { signal, onProgress: onProgress("read") }),
    "not verified",
  );
  if (verified === null) return;
  if (verified.faults.length > 0) process.exitCode = exitCodes.failed;
  const { manifest, ...rest } = verified;
  tell(options, { isSound: verified.faults.length === 0, ...rest, manifest: factsOf(manifest) });
}

async function verifyByStarting(folder: string, options: { json?: boolean }): Promise<void> {
  const tried = await interruptible(
    async (signal, onProgress) => await tryBackup(folder, { signal, onProgress: onProgress("copied") }),
    "not verified",
  );
  if (tried === null) return;
  if (tried.faults.length > 0) process.exitCode = exitCodes.failed;
  const { manifest, schemas, ...rest } = tried;
  const isSound = tried.faults.length === 0;
  tell(options, { isSound, ...rest, manifest: factsOf(manifest), contents: schemas });
}

interface RestoreCommandOptions extends HomeOptions, ConfirmOptions {}

export function restoreCommand(): Command {
  return withHome(new Command("restore"))
    .argument("<backup>", "its folder")
    .description("put a backup in the place of the embedded database; what lies there is kept aside")
    .addOption(yesOption())
    .addHelpText(
      "after",
      `
Stop the coordinator first. Without --yes, what is odd is refused where nobody can be asked: a backup of another
database, one that holds nothing or far less than another, or one that was restored here already. Interrupted or
killed, it leaves the home as it was.

Exit codes: 0 done, 1 failed, 2 refused: no backup, damaged, of another Postgres or a newer program, somebody works
on the home, too little room, or not confirmed; 130 interrupted.

Example:
  nearcrawl database stop && nearcrawl database restore /var/lib/nearcrawl/backups/2026-03-01T02-30-11Z`,
    )
    .action(async (folder: string, options: RestoreCommandOptions) => {
      const { home } = embeddedContext(options);
      const plan = await planRestore(home, folder);
      const isAsked = options.json !== true && process.stdin.isTTY === true;
      const confirmed = await confirmedByTyping(options, async () => deedOf(plan));
      if (!confirmed) return;
      const restored = await interruptible(
        async (signal, onProgress, onStep) =>
          await restoreDatabase(home, folder, {
            ...{ signal, onStep, confirmed: options.yes === true || isAsked },
            onProgress: onProgress("copied"),
          }),
        `${home} is as it was`,
      );
      if (restored === null) return;
      for (const { name } of restored.manifest.schemas) await forgetDatabases(journalRootOf(home), name);
      const { manifest, ...rest } = restored;
      const answer = { ...rest, manifest: factsOf(manifest) };
      printAnswer(options, answer, `${textOf(answer)}\n\n${nextSteps}`);
    });
}

/** Throws for other servers, which are backed up by their own tools. */
function embeddedContext(options: HomeOptions): CommandContext {
  const context = commandContext(options);
  if (context.databaseUrl === null) return context;
  throw new UsageError(
    `the database is ${withoutPassword(context.databaseUrl)}, not the embedded one: back it up ` +
      "and restore it with pgBackRest (ops/runbook/backup-and-restore.md)",
  );
}

type Interrupted<T> = (
  signal: AbortSignal,
  onProgress: (verb: string) => (progress: CopyProgress) => void,
  onStep: (step: RestoreStep) => void,
) => Promise<T>;

/** Returns null when interrupted, after printing that and setting the exit code. A second signal ends it immediately. */
async function interruptible<T>(work: Interrupted<T>, afterwards: string): Promise<T | null> {
  const asked = new AbortController();
  const stop = () => asked.abort();
  process.once("SIGINT", stop).once("SIGTERM", stop);
  const line = new ProgressLine();
  const startedMs = performance.now();
  const show = (verb: string) => (progress: CopyProgress) =>
    line.show(progressText(verb, progress, (performance.now() - startedMs) / 1000));
  const say = (step: RestoreStep) => {
    if (step === "recover") line.show("its log is replayed …", Number.POSITIVE_INFINITY);
  };
  try {
    return await work(asked.signal, show, say);
  } catch (error) {
    if (!asked.signal.aborted) throw error;
    line.done();
    process.stderr.write(`nearcrawl: interrupted: ${afterwards}\n`);
    process.exitCode = exitCodes.interrupted;
    return null;
  } finally {
    process.off("SIGINT", stop).off("SIGTERM", stop);
    line.done();
  }
}

function progressText(verb: string, { bytes, totalBytes }: CopyProgress, seconds: number): string {
  const rate = Math.round(bytes / Math.max(0.001, seconds));
  const left = seconds > 2 && bytes > 0 ? spanWords((seconds * (totalBytes - bytes)) / bytes) : "–";
  return `${bytesText(bytes)} of ${bytesText(totalBytes)} ${verb}, ${bytesText(rate)}/s, ETA ${left}`;
}

/** Prints how many files there are. backup.json lists them. */
const factsOf = ({ files, folders: _, ...manifest }: BackupManifest) => ({
  ...manifest,
  files: files.length,
});

const backupAnswer = ({ manifest, ...rest }: Backup) => ({ ...rest, manifest: factsOf(manifest) });

const textOf = (answer: object) =>
  answerText(answer, { schemas: "name newestMigration epoch pages optOuts" });

const tell = (options: { readonly json?: boolean }, answer: object) =>
  printAnswer(options, answer, textOf(answer));

const listedAnswer = ({ manifest, ...rest }: KnownBackup, home: string) => ({
  ...{ ...rest, ...rowsOf(manifest), endedAt: manifest.endedAt },
  isEmpty: holdsNothing(manifest),
  database: databaseText(manifest, home),
  manifest: factsOf(manifest),
});

/** Eight digits suffice to distinguish the databases of a home. */
const shortId = (id: string) => id.slice(0, 8);

function databaseText(manifest: BackupManifest, home: string): string {
  const ids = manifest.schemas.map(({ databaseId, epoch }) =>
    databaseId === null ? null : `${shortId(databaseId)} epoch ${epoch}`,
  );
  const named = ids.filter((id) => id !== null).join(", ") || `system ${shortId(manifest.systemIdentifier)}`;
  const known = knownCluster(home);
  return known !== null && known !== manifest.systemIdentifier ? `${named} (another)` : named;
}

function deedOf({ home, manifest, replaces, concerns, bytes }: RestorePlan) {
  if (!replaces && concerns.length === 0) return null;
  const follows = [
    ...concerns,
    `The database in ${home} is replaced by the backup of ${instantWords(manifest.endedAt)} ` +
      `(${bytesText(bytes)}): what was committed since then is not in it. What lies there now is ` +
      "kept beside it.",
  ];
  return { follows: follows.join("\n"), typed: "restore", asked: "the word restore" };
}

const nextSteps = `Next: start the coordinator. By the new timeline it knows that its database went back: it begins a new epoch, lets
crawlers with a newer ticket in once they prove who they are, takes all leases back, and replays from the home's
journal the opt-outs and revocations that the backup does not have. What was fetched since is fetched again.
What lay there before is kept aside: remove that folder when all is well.`;

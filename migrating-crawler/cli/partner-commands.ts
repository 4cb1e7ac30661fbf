/**
 * The commands of a partner's administrator, once for both programs that have them: `nearcrawl-crawler.mjs` and
 * `nearcrawl crawler`. Each command is a function of its own folder; here are only their names, options and words.
 *
 * Exit codes: 0 done; 1 failed (network, coordinator, disk); 2 wrong usage, settings or files; 3 what was asked
 * for is not there; 4 the coordinator refused; 130 interrupted.
 */
import { resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import type { PartnerContext, PartnerExitCode } from "../core/partner-context.ts";
import type { JoinOptions } from "./join-command.ts";

/** What the two programs give; only they read the environment. */
export interface PartnerSurroundings extends Omit<PartnerContext, "home" | "json"> {
  /** Where the folder is when neither --home nor the environment says so. */
  readonly defaultHome: string;
  readonly setExitCode: (code: PartnerExitCode) => void;
}

interface PartnerOptions {
  readonly home?: string;
  readonly json?: boolean;
}

/** --home wins over NEARCRAWL_CRAWLER_HOME, that over systemd's STATE_DIRECTORY, that over the default. */
export function partnerContext(surroundings: PartnerSurroundings, options: PartnerOptions): PartnerContext {
  const { env, defaultHome } = surroundings;
  const home = options.home ?? (env.NEARCRAWL_CRAWLER_HOME || env.STATE_DIRECTORY || defaultHome);
  return { ...surroundings, home: resolve(home), json: options.json ?? false };
}

/** The work of one command. Expected outcomes are exit codes; what is thrown, the program puts into words. */
type PartnerWork<Options> = (
  context: PartnerContext,
  options: Options,
  args: readonly string[],
) => Promise<PartnerExitCode>;

/**
 * Adds every command of this file to a program (`nearcrawl-crawler.mjs`) or a command (`nearcrawl crawler`). Work is
 * loaded when it is asked for, so that a small command does not start the crawler's packages.
 */
export function addPartnerCommands(parent: Command, surroundings: PartnerSurroundings): void {
  const run = runner(surroundings);
  for (const add of [addJoin, addCheck, addRun, addStatus, addPause, addResume]) add(parent, run);
  for (const add of [addDrain, addRenewSigningKey, addLog, addFetched, addLeave, addUninstall, addUnit])
    add(parent, run);
}

/** Puts a command's work under its name. Options of the commands around it (`nearcrawl crawler --home …`) count, too. */
type Runner = <Options extends PartnerOptions>(
  work: PartnerWork<Options>,
) => (...given: unknown[]) => Promise<void>;

function runner(surroundings: PartnerSurroundings): Runner {
  return <Options extends PartnerOptions>(work: PartnerWork<Options>) =>
    async (...given: unknown[]) => {
      const command = given.at(-1) as Command;
      const options = command.optsWithGlobals<Options>();
      surroundings.setExitCode(await work(partnerContext(surroundings, options), options, command.args));
    };
}

const homeOption = ["--home <folder>", "the crawler's folder (NEARCRAWL_CRAWLER_HOME)"] as const;
const jsonOption = ["--json", "for programs: one JSON value"] as const;

function addJoin(parent: Command, run: Runner): void {
  parent
    .command("join")
    .description("make this machine a crawler of the coordinator that invited it")
    .argument("<token>", "the invitation, as the operator gave it to you; - reads it from standard input")
    .option(...homeOption)
    .option("--yes", "ask nothing: join even if something needs fixing")
    .option(
      "--again",
      "a folder that has joined already becomes a new member: new identity, new key, same limits",
    )
    .option("--kilobytes-per-second <n>", "all that its connections carry in a second, at most; none: any")
    .option("--bytes-per-day <n>", "and in a day")
    .option("--cpu-share <n>", "processors' time, in processors, such as 0.5; none: what nobody else wants")
    .option("--memory-bytes <n>", "of the process, at most; none: what it needs")
    .option("--disk-bytes <n>", "of everything in the folder, at most; none: what it needs")
    .option(...jsonOption)
    .addHelpText(
      "after",
      "\nIt looks at the machine first (as check does), proposes limits by what it measured, where none is named, and tells them;\nthen it makes the folder, and connects once. With --yes, or without a terminal, the proposal holds. Cut short, it goes on when\nit is run again. Exit codes: 0 joined, 1 the coordinator is not reached or a test failed, 2 the invitation or the\nfolder is not right, 4 the coordinator refused.",
    )
    .action(
      run<PartnerOptions & Omit<JoinOptions, "token">>(async (context, options, [token = ""]) =>
        (await import("./join-command.ts")).joinCommand(context, { ...options, token }),
      ),
    );
}

function addCheck(parent: Command, run: Runner): void {
  parent
    .command("check")
    .description("test what a crawler needs of this machine and network, and say what to fix")
    .option(...homeOption)
    .option(...jsonOption)
    .addHelpText(
      "after",
      "\nExit codes: 0 nothing to fix, 1 something to fix, 2 settings or files are damaged.",
    )
    .action(run(async (context) => (await import("./check-command.ts")).checkCommand(context)));
}

function addRun(parent: Command, run: Runner): void {
  parent
    .command("run")
    .description(
      "run the crawler of a folder that has joined, and keep its release up to date, until asked to stop",
    )
    .option(...homeOption)
    .addHelpText(
      "after",
      "\nSIGTERM or Ctrl-C ends it in order: requests end, results stay on the disk. One JSON line per event goes to\nstandard output and to log/ in the folder. Exit codes: 0 stopped as asked, 2 settings or files are not right.",
    )
    .action(run(async (context) => (await import("./run-command.ts")).runCommand(context)));
}

function addStatus(parent: Command, run: Runner): void {
  parent
    .command("status")
    .description("what the crawler does, each of your limits, what holds it back, and what went wrong")
    .option(...homeOption)
    .option("--watch", "look again every few seconds")
    .option(...jsonOption)
    .addHelpText("after", "\nExit codes: 0 it runs, 2 this is no crawler's folder, 3 no crawler runs.")
    .action(
      run<PartnerOptions & { readonly watch?: boolean }>(async (context, options) =>
        (await import("./status-command.ts")).statusCommand(context, options),
      ),
    );
}

const reasonOption = ["--reason <words>", "why, for whoever asks for the status"] as const;

function addPause(parent: Command, run: Runner): void {
  parent
    .command("pause")
    .description("contact no site until resume, also over restarts; the link to the coordinator stays")
    .option(...homeOption)
    .option(...reasonOption)
    .option(...jsonOption)
    .action(
      run<PartnerOptions & { readonly reason?: string }>(async (context, options) =>
        (await import("./pause-command.ts")).pauseCommand(context, options),
      ),
    );
}

function addResume(parent: Command, run: Runner): void {
  parent
    .command("resume")
    .description("end a pause, and a drain that is not through")
    .option(...homeOption)
    .option(...jsonOption)
    .action(run(async (context) => (await import("./pause-command.ts")).resumeCommand(context)));
}

function addDrain(parent: Command, run: Runner): void {
  parent
    .command("drain")
    .description("finish what is open, ship all results, then leave for good: others get this crawler's work")
    .option(...homeOption)
    .option(...reasonOption)
    .option("--no-wait", "ask for it, and do not follow it")
    .option(...jsonOption)
    .addHelpText(
      "after",
      "\nExit codes: 0 left (or asked for), 1 it was resumed meanwhile, 3 no crawler runs.",
    )
    .action(
      run<PartnerOptions & { readonly reason?: string; readonly wait?: boolean }>(async (context, options) =>
        (await import("./drain-command.ts")).drainCommand(context, options),
      ),
    );
}

function addRenewSigningKey(parent: Command, run: Runner): void {
  parent
    .command("renew-signing-key")
    .description(
      "sign requests to sites with another key, once the coordinator has published it (done by itself every 30 days)",
    )
    .option(...homeOption)
    .option(...jsonOption)
    .addHelpText(
      "after",
      "\nExit codes: 0 asked for, 1 it cannot be asked, 2 this is no crawler's folder, 3 no crawler runs.",
    )
    .action(
      run(async (context) =>
        (await import("./renew-signing-key-command.ts")).renewSigningKeyCommand(context),
      ),
    );
}

function addLog(parent: Command, run: Runner): void {
  parent
    .command("log")
    .description("the last lines of the crawler's log")
    .option(...homeOption)
    .option("--lines <number>", "how many, at most 10000", lineCount, 50)
    .option("--follow", "and those that come, until Ctrl-C")
    .option("--json", "for programs: each line as it was written")
    .addHelpText("after", "\nExit codes: 0 done, 3 there is no log.")
    .action(
      run<PartnerOptions & { readonly lines: number; readonly follow?: boolean }>(async (context, options) =>
        (await import("./log-command.ts")).logCommand(context, options),
      ),
    );
}

function addFetched(parent: Command, run: Runner): void {
  parent
    .command("fetched")
    .description("what was asked of whom, and when: URL, time, status, address; to answer a complaint")
    .option(...homeOption)
    .option("--since <when>", "so long ago (90m, 12h, 7d), a day or a moment of ISO 8601", "1d")
    .option("--until <when>", "likewise; else now")
    .option("--host <host>", "only of this host and what is below it, or of this address")
    .option("--json", "for programs: each line as it was written")
    .addHelpText(
      "after",
      "\nIt is kept for 30 days, in 256 MiB at most ([fetched] in settings.toml), and read whether the crawler runs or not.\nExit codes: 0 done, 2 wrong usage, 3 nothing of that is in the list.",
    )
    .action(
      run<PartnerOptions & { readonly since: string; readonly until?: string; readonly host?: string }>(
        async (context, options) => (await import("./fetched-command.ts")).fetchedCommand(context, options),
      ),
    );
}

function lineCount(text: string): number {
  const count = Number(text);
  if (/^\d{1,5}$/.test(text) && count >= 1 && count <= 10_000) return count;
  throw new InvalidArgumentError("a whole number from 1 to 10000 is expected");
}

function addLeave(parent: Command, run: Runner): void {
  parent
    .command("leave")
    .description("end for good: results are shipped, others get this crawler's work; the folder stays")
    .option(...homeOption)
    .option(...jsonOption)
    .addHelpText(
      "after",
      "\nExit codes: 0 left, or nothing to leave; 1 not left; 2 this is no crawler's folder.",
    )
    .action(run(async (context) => (await import("./leave-command.ts")).leaveCommand(context)));
}

function addUninstall(parent: Command, run: Runner): void {
  parent
    .command("uninstall")
    .description("leave, end the crawler, and remove its folder with everything in it")
    .option(...homeOption)
    .option("--yes", "ask nothing, and go on though the coordinator cannot be told")
    .addHelpText(
      "after",
      "\nExit codes: 0 removed, 1 not removed, 2 this is no crawler's folder, 3 there is nothing to remove.",
    )
    .action(
      run<PartnerOptions & { readonly yes?: boolean }>(async (context, options) =>
        (await import("./uninstall-command.ts")).uninstallCommand(context, options),
      ),
    );
}

function addUnit(parent: Command, run: Runner): void {
  parent
    .command("unit")
    .description("print a systemd unit that runs the crawler as a user of its own, shut off from the machine")
    .option("--program <file>", "where nearcrawl-crawler.mjs is on this machine")
    .option(...homeOption)
    .option("--user", "a unit of your own user's systemd, for the folder that has joined already")
    .addHelpText(
      "after",
      "\nPut it into /etc/systemd/system/nearcrawl-crawler.service; its first lines say how to join and start.\nWith --user it belongs into ~/.config/systemd/user/, and loginctl enable-linger lets it start with the machine.",
    )
    .action(
      run<PartnerOptions & { readonly program?: string; readonly user?: boolean }>(async (context, options) =>
        (await import("./unit-command.ts")).unitCommand(context, options),
      ),
    );
}

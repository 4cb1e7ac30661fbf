/**
 * Defines the commands for a partner's administrator, for both programs: `nearcrawl-crawler.mjs` and `nearcrawl crawler`. This
 * file has only their names, options and texts.
 *
 * Exit codes: 0 done, 1 failed (network, coordinator, disk), 2 invalid usage, settings or files, 3 not found, 4 refused by the
 * coordinator, 130 interrupted.
 */

import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import type { PartnerContext, PartnerEnvironment, PartnerExitCode } from "../core/partner-context.ts";

/** What each of the two programs provides. Only the programs themselves read the environment. */
export interface PartnerSurroundings extends Omit<PartnerContext, "home" | "json"> {
  /** The folder to use when neither `--home` nor the environment names one. */
  readonly defaultHome: string;
  readonly setExitCode: (code: PartnerExitCode) => void;
}

interface PartnerOptions {
  readonly home?: string;
  readonly json?: boolean;
}

/** The order of precedence is --home, NEARCRAWL_CRAWLER_HOME, systemd's STATE_DIRECTORY, the default. */
function partnerContext(surroundings: PartnerSurroundings, options: PartnerOptions): PartnerContext {
  const { env, defaultHome } = surroundings;
  const home = options.home ?? (env.NEARCRAWL_CRAWLER_HOME || env.STATE_DIRECTORY || defaultHome);
  return { ...surroundings, home: resolve(home), json: options.json ?? false };
}

/**
 * Adds the commands to `nearcrawl-crawler.mjs` or to `nearcrawl crawler`. The code of each command is loaded on demand, so
 * that a small command does not load all of the crawler's packages.
 */
export function addPartnerCommands(parent: Command, surroundings: PartnerSurroundings): void {
  for (const { name, description, argument, options, after, load } of partnerCommands) {
    const command = parent.command(name).description(description);
    if (argument !== undefined) command.argument(...argument);
    command.option("--home <folder>", "the crawler's folder (NEARCRAWL_CRAWLER_HOME)");
    for (const [flags, words, byDefault] of options ?? []) command.option(flags, words, byDefault);
    if (after !== undefined) command.addHelpText("after", `\n${after.join("\n")}`);
    command.action(async (...given: unknown[]) => {
      const { args } = given.at(-1) as Command;
      // Options of parent commands (`nearcrawl crawler --home …`) also count.
      const said = (given.at(-1) as Command).optsWithGlobals<PartnerOptions>();
      const work = await load();
      surroundings.setExitCode(
        await work(partnerContext(surroundings, said), { ...said, token: args[0] ?? "" } as never),
      );
    });
  }
}

type PartnerWork = (context: PartnerContext, options: never) => Promise<PartnerExitCode>;

interface PartnerCommand {
  readonly name: string;
  readonly description: string;
  readonly argument?: readonly [name: string, words: string];
  readonly options?: readonly (readonly [flags: string, words: string, byDefault?: string])[];
  readonly after?: readonly string[];
  readonly load: () => Promise<PartnerWork>;
}

const json = ["--json", "for programs: one JSON value"] as const;
const linesAsJson = ["--json", "for programs: each line as it was written"] as const;
const reason = ["--reason <words>", "why, for whoever asks for the status"] as const;

const partnerCommands: readonly PartnerCommand[] = [
  {
    name: "join",
    description: "make this machine a crawler of the coordinator that invited it",
    argument: ["<token>", "the invitation, as the operator gave it to you; - reads it from standard input"],
    options: [
      ["--yes", "ask nothing: join even if something needs fixing"],
      [
        "--again",
        "a folder that has joined already becomes a new member: new identity, new key, same limits",
      ],
      ["--kilobytes-per-second <n>", "all that its connections carry in a second, at most; none: any"],
      ["--bytes-per-day <n>", "and in a day"],
      ["--cpu-share <n>", "processors' time, in processors, such as 0.5; none: what nobody else wants"],
      ["--memory-bytes <n>", "of the process, at most; none: what it needs"],
      ["--disk-bytes <n>", "of everything in the folder, at most; none: what it needs"],
      json,
    ],
    after: [
      "It looks at the machine first (as check does), proposes limits by what it measured, where none is named, and tells them;",
      "then it makes the folder, and connects once. With --yes, or without a terminal, the proposal holds. Cut short, it goes on when",
      "it is run again. Exit codes: 0 joined, 1 the coordinator is not reached or a test failed, 2 the invitation or the",
      "folder is not right, 4 the coordinator refused.",
    ],
    load: async () => (await import("./join-command.ts")).joinCommand,
  },
  {
    name: "check",
    description: "test what a crawler needs of this machine and network, and say what to fix",
    options: [json],
    after: ["Exit codes: 0 nothing to fix, 1 something to fix, 2 settings or files are damaged."],
    load: async () => (await import("./check-command.ts")).checkCommand,
  },
  {
    name: "run",
    description:
      "run the crawler of a folder that has joined, and keep its release up to date, until asked to stop",
    after: [
      "SIGTERM or Ctrl-C ends it in order: requests end, results stay on the disk. One JSON line per event goes to",
      "standard output and to log/ in the folder. Exit codes: 0 stopped as asked, 2 settings or files are not right.",
    ],
    load: async () => (await import("./run-command.ts")).runCommand,
  },
  {
    name: "status",
    description: "what the crawler does, each of your limits, what holds it back, and what went wrong",
    options: [json],
    after: ["Exit codes: 0 it runs, 2 this is no crawler's folder, 3 no crawler runs."],
    load: async () => (await import("./steer-commands.ts")).statusCommand,
  },
  {
    name: "pause",
    description: "contact no site until resume, also over restarts; the link to the coordinator stays",
    options: [reason, json],
    load: async () => (await import("./steer-commands.ts")).pauseCommand,
  },
  {
    name: "resume",
    description: "end a pause, and a drain that is not through",
    options: [json],
    load: async () => (await import("./steer-commands.ts")).resumeCommand,
  },
  {
    name: "drain",
    description: "finish what is open, ship all results, then leave for good: others get this crawler's work",
    options: [reason, ["--no-wait", "ask for it, and do not follow it"], json],
    after: ["Exit codes: 0 left (or asked for), 1 it was resumed meanwhile, 3 no crawler runs."],
    load: async () => (await import("./steer-commands.ts")).drainCommand,
  },
  {
    name: "log",
    description: "the last lines of the crawler's log",
    options: [["--lines <number>", "how many, at most 10000", "50"], linesAsJson],
    after: ["Exit codes: 0 done, 3 there is no log."],
    load: async () => (await import("./log-command.ts")).logCommand,
  },
  {
    name: "fetched",
    description: "what was asked of whom, and when: URL, time, status, address; to answer a complaint",
    options: [
      ["--since <when>", "so long ago (90m, 12h, 7d), a day or a moment of ISO 8601", "1d"],
      ["--until <when>", "likewise; else now"],
      ["--host <host>", "only of this host and what is below it, or of this address"],
      linesAsJson,
    ],
    after: [
      "It is kept for 30 days, in 256 MiB at most ([fetched] in settings.toml), and read whether the crawler runs or not.",
      "Exit codes: 0 done, 2 wrong usage, 3 nothing of that is in the list.",
    ],
    load: async () => (await import("./log-command.ts")).fetchedCommand,
  },
  {
    name: "leave",
    description: "end for good: results are shipped, others get this crawler's work; the folder stays",
    options: [json],
    after: ["Exit codes: 0 left, or nothing to leave; 1 not left; 2 this is no crawler's folder."],
    load: async () => (await import("./leave-command.ts")).leaveCommand,
  },
  {
    name: "uninstall",
    description: "leave, end the crawler, and remove its folder with everything in it",
    options: [["--yes", "ask nothing, and go on though the coordinator cannot be told"]],
    after: [
      "Exit codes: 0 removed, 1 not removed, 2 this is no crawler's folder, 3 there is nothing to remove.",
    ],
    load: async () => (await import("./uninstall-command.ts")).uninstallCommand,
  },
  {
    name: "unit",
    description: "print a systemd unit that runs the crawler as a user of its own, shut off from the machine",
    options: [
      ["--program <file>", "where nearcrawl-crawler.mjs is on this machine"],
      ["--user", "a unit of your own user's systemd, for the folder that has joined already"],
    ],
    after: [
      "Put it into /etc/systemd/system/nearcrawl-crawler.service; its first lines say how to join and start.",
      "With --user it belongs into ~/.config/systemd/user/, and loginctl enable-linger lets it start with the machine.",
    ],
    load: async () => (await import("./unit-command.ts")).unitCommand,
  },
];

// Gives the commands access to the process: its terminal, if there is one, its output and its environment.

/** `program` is what people type to start this program. `self` is what Node needs to start it. */
export function partnerSurroundings(given: {
  readonly env: PartnerEnvironment;
  readonly program: string;
  readonly self?: readonly string[];
}): PartnerSurroundings {
  return {
    ...given,
    defaultHome: defaultPartnerHome(),
    print: (line) => void process.stdout.write(`${line}\n`),
    complain: (line) => void process.stderr.write(`${line}\n`),
    ask: process.stdin.isTTY && process.stdout.isTTY ? askOnTerminal : null,
    now: () => new Date(),
    setExitCode: (code: PartnerExitCode) => {
      process.exitCode = code;
    },
  };
}

/** Root gets the folder of a system service, because its parent folder exists and nothing else must be created or removed. */
function defaultPartnerHome(): string {
  return process.getuid?.() === 0 ? "/var/lib/nearcrawl-crawler" : join(homedir(), ".nearcrawl-crawler");
}

async function askOnTerminal(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}

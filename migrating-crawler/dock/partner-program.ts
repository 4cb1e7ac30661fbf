/**
 * The partners' program: the commands of an administrator, the dock itself (`run`) among them. One of the few places
 * that read the environment and the arguments.
 */
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline/promises";
import { Command } from "commander";
import { NearcrawlError } from "#core/errors";
import { addPartnerCommands, partnerExitCodes } from "../partner-commands.ts";
import { dockVersion } from "./dock-version.ts";

const script = process.argv[1] ?? "nearcrawl-crawler.mjs";

const program = new Command("nearcrawl-crawler")
  .description("hosts a crawler of Nearcrawl on this machine: join, check, run")
  .version(dockVersion)
  .showHelpAfterError();

addPartnerCommands(program, {
  env: process.env,
  defaultHome: join(homedir(), ".nearcrawl-crawler"),
  program: `node ${basename(script)}`,
  print: (line) => void process.stdout.write(`${line}\n`),
  complain: (line) => void process.stderr.write(`${line}\n`),
  ask: process.stdin.isTTY ? askPerson : null,
  now: () => new Date(),
  setExitCode: (code) => {
    process.exitCode = code;
  },
});

try {
  await program.parseAsync();
} catch (error) {
  const known = error instanceof NearcrawlError;
  process.stderr.write(`${known ? error.message : ((error as Error)?.stack ?? String(error))}\n`);
  process.exitCode = partnerExitCodes.failed;
}

async function askPerson(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}

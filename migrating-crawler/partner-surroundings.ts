/** What the partner's commands are given by a process with a terminal, or without one. */
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import type { PartnerEnvironment, PartnerExitCode, PartnerSurroundings } from "./partner-commands.ts";

/** `program`: what to type to start this program. */
export function partnerSurroundings(given: {
  readonly env: PartnerEnvironment;
  readonly program: string;
}): PartnerSurroundings {
  const { env, program } = given;
  return {
    env,
    program,
    defaultHome: defaultPartnerHome(env),
    print: (line) => void process.stdout.write(`${line}\n`),
    complain: (line) => void process.stderr.write(`${line}\n`),
    ask: process.stdin.isTTY && process.stdout.isTTY ? askOnTerminal : null,
    now: () => new Date(),
    setExitCode: (code: PartnerExitCode) => {
      process.exitCode = code;
    },
  };
}

/** As root the folder of a system service, else the user's data folder (XDG Base Directory). */
function defaultPartnerHome(env: PartnerEnvironment): string {
  if (process.getuid?.() === 0) return "/var/lib/nearcrawl-crawler";
  return join(env.XDG_DATA_HOME || join(homedir(), ".local/share"), "nearcrawl-crawler");
}

/** Anything but yes is no. */
async function askOnTerminal(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}

/** Provides the partner's commands with a process's surroundings, with or without a terminal. */
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import type { PartnerEnvironment, PartnerExitCode } from "../core/partner-context.ts";
import type { PartnerSurroundings } from "./partner-commands.ts";

/** `program` is what people type to start this program, `self` what Node needs to start it. */
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

/** Root gets the folder of a system service. Its parent exists, so nothing else must be created or removed. */
function defaultPartnerHome(): string {
  return process.getuid?.() === 0 ? "/var/lib/nearcrawl-crawler" : join(homedir(), ".nearcrawl-crawler");
}

/** Anything but yes means no. */
async function askOnTerminal(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}

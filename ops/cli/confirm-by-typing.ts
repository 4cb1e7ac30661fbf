/** Before a command takes work away: on a terminal what follows is told in numbers, and has to be confirmed by typing. */
import { createInterface } from "node:readline/promises";
import { Option } from "commander";
import { exitCodes } from "./exit-codes.ts";

export interface ConfirmOptions {
  readonly yes?: boolean;
  readonly json?: boolean;
}

export const yesOption = () =>
  new Option("--yes", "do not ask (nobody is asked where the input is no terminal)");

export interface Deed {
  /** What it will do, in numbers, and the way back. */
  readonly follows: string;
  readonly typed: string;
  /** What `typed` is, as “its name”. */
  readonly asked: string;
}

interface TerminalStreams {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream;
}

/** False: not confirmed, which is said, and the exit code set. `deed` null: there is nothing to ask about. */
export async function confirmedByTyping(
  options: ConfirmOptions,
  deed: () => Promise<Deed | null>,
  streams: TerminalStreams = { input: process.stdin, output: process.stderr },
): Promise<boolean> {
  if (options.yes === true || options.json === true || streams.input.isTTY !== true) return true;
  const asked = await deed();
  if (asked === null) return true;
  const terminal = createInterface(streams);
  const typed = await terminal.question(`${asked.follows}\nType ${asked.asked} to confirm: `);
  terminal.close();
  if (typed.trim() === asked.typed) return true;
  streams.output.write("nearcrawl: not confirmed, and nothing was done\n");
  process.exitCode = exitCodes.usage;
  return false;
}

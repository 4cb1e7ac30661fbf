/** Before a destructive action, a terminal shows the consequences in numbers and asks for a typed confirmation. */
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
  /** The consequences in numbers, and how to undo the action. */
  readonly follows: string;
  readonly typed: string;
  /** Says what `typed` is, such as “its name”. */
  readonly asked: string;
}

interface TerminalStreams {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream;
}

/** Returns false when not confirmed, after printing that and setting the exit code. A null deed needs no confirmation. */
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

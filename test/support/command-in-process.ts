/**
 * Runs a `nearcrawl` command in the test's process and captures output and exit code, which saves the second of processor time
 * that a process takes to start. built-command.ts covers start, standard input and end of the program.
 */
import type { Command } from "commander";
import { vi } from "vitest";
import { loadedProgram } from "#ops/cli/commands";
import { tellFailure } from "#ops/cli/exit-codes";
import type { Outcome } from "./built-command.ts";

/** A top-level command with its sub-commands, as the program has it. */
export const commandNamed = async (name: string): Promise<Command> =>
  (await loadedProgram(name)).commands[0]!;

let last: Promise<unknown> = Promise.resolve();

/** Standard output is shared, so commands run one after the other. */
export function inProcess(command: Command | Promise<Command>, args: readonly string[]): Promise<Outcome> {
  const outcome = last.then(async () => await outcomeOf(await command, args));
  last = outcome.catch(() => {});
  return outcome;
}

/** Returns the output of a command that must succeed. */
export async function said(command: Command | Promise<Command>, args: readonly string[]): Promise<string> {
  const { code, out, err } = await inProcess(command, args);
  if (code !== 0)
    throw new Error(`${(await command).name()} ${args.join(" ")} ended with ${code}: ${err || out}`);
  return out;
}

async function outcomeOf(command: Command, args: readonly string[]): Promise<Outcome> {
  const [out, err]: [string[], string[]] = [[], []];
  const spies = [keep("stdout", out), keep("stderr", err)];
  const before = process.exitCode;
  process.exitCode = undefined;
  try {
    throwInsteadOfExit(command);
    await command.parseAsync([...args], { from: "user" });
  } catch (error) {
    tellFailure(error);
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  const code = Number(process.exitCode ?? 0);
  process.exitCode = before;
  return { code, out: out.join(""), err: err.join("") };
}

function throwInsteadOfExit(command: Command): void {
  for (const below of command.exitOverride().commands) throwInsteadOfExit(below);
}

function keep(stream: "stdout" | "stderr", written: string[]) {
  return vi.spyOn(process[stream], "write").mockImplementation((text: unknown, ...rest: unknown[]) => {
    written.push(String(text));
    const taken = rest.find((one) => typeof one === "function");
    taken?.();
    return true;
  });
}

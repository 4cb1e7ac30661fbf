/** The commands' descriptions in the build: each equals its command, and loads none of the command's code. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Argument, Command, Option } from "commander";
import { beforeAll, expect, it } from "vitest";
import { describeCommands, describedProgram, loadedProgram } from "#ops/cli/commands";
import type { DescribedCommand } from "#ops/cli/described-command";
import { builtProgram } from "../../support/built-command.ts";

const run = promisify(execFile);

let described: readonly DescribedCommand[];
beforeAll(async () => {
  described = JSON.parse(JSON.stringify(await describeCommands()));
});

it("a description prints the help of its command, and checks usage as it does", async () => {
  const loaded = below(await loadedProgram(undefined), []);

  const rebuilt = below(describedProgram(undefined, async () => {}, described)!, []);

  expect(loaded.length).toBeGreaterThan(100);
  expect(rebuilt.map(({ path }) => path)).toEqual(loaded.map(({ path }) => path));
  for (const [index, { path, command }] of loaded.entries()) {
    expect([path, saysOf(rebuilt[index]!.command)]).toEqual([path, saysOf(command)]);
  }
});

it("the help of every command loads the program's few own files, and no package", async () => {
  const main = await builtProgram("ops/cli/main");
  const paths = described.flatMap(pathsOf);
  const script = join(import.meta.dirname, "../../support/every-help.mjs");

  const { stdout, stderr } = await run(process.execPath, [script, main, JSON.stringify(paths)], {
    maxBuffer: 1 << 24,
  });
  const { files, bytes }: { files: string[]; bytes: number } = JSON.parse(stderr);

  expect(paths.filter((path) => !stdout.includes(`Usage: nearcrawl ${path.join(" ")}`))).toEqual([]);
  expect(files).toContain(main);
  expect(files.filter((file) => file.includes("node_modules"))).toEqual([]);
  expect(files.length, files.join("\n")).toBeLessThanOrEqual(10);
  expect(bytes).toBeLessThan(200_000);
});

interface Placed {
  readonly path: string;
  readonly command: Command;
}

function below(command: Command, above: readonly string[]): Placed[] {
  const path = [...above, command.name()];
  return [{ path: path.join(" "), command }, ...command.commands.flatMap((one) => below(one, path))];
}

function pathsOf({ name, commands }: DescribedCommand): string[][] {
  return [[name], ...commands.flatMap(pathsOf).map((path) => [name, ...path])];
}

/** Everything that commander knows of it: its help and every plain setting. */
function saysOf(command: Command): object {
  let help = "";
  command.exitOverride().configureOutput({ writeOut: (text) => (help += text) });
  command.outputHelp();
  return {
    help,
    acts: Reflect.get(command, "_actionHandler") !== null,
    settings: plainOf(command),
    options: command.options.map(plainOf),
    arguments: command.registeredArguments.map(plainOf),
  };
}

/** Without functions (a command's code), other objects, and results of parsing. */
function plainOf(given: Command | Option | Argument): object {
  const isPlain = (value: unknown): boolean =>
    Array.isArray(value) ? value.every(isPlain) : value === null || typeof value !== "object";
  return Object.fromEntries(
    Object.entries(given).filter(
      ([name, value]) => typeof value !== "function" && isPlain(value) && name !== "_actionHandler",
    ),
  );
}

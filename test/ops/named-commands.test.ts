/**
 * Every `nearcrawl` line of the README, the runbook, the units and the containers: the command exists and accepts these words.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { expect, it } from "vitest";
import { loadedProgram } from "#ops/cli/commands";

const root = resolve(import.meta.dirname, "../..");
const pages = ["README.md", ...filesOf("ops/runbook")].map((path) => readFileSync(join(root, path), "utf8"));
const [systemd, containers] = ["ops/systemd", "ops/containers"].map((folder) =>
  filesOf(folder!).map((path) => readFileSync(join(root, path), "utf8")),
) as [string[], string[]];

function filesOf(folder: string): string[] {
  return readdirSync(join(root, folder)).map((name) => join(folder, name));
}

/** The command in a code block, without comment, pipe and alternative. */
const typed = pages.flatMap((text) =>
  [...text.matchAll(/^(?: {4,9})?(?:sudo -u nearcrawl )?nearcrawl ([a-z].*?)(?: {2,}\(.*| +[#|].*)?$/gm)].map(
    ([, line]) => line!,
  ),
);
const started = systemd.flatMap((text) =>
  [...text.matchAll(/^ExecStart=\/usr\/bin\/nearcrawl (.*)$/gm)].map(([, line]) => line!),
);
const contained = containers.flatMap((text) =>
  [...text.matchAll(/^\s*args: (\[.*\])$/gm)].map(([, list]) => (JSON.parse(list!) as string[]).join(" ")),
);

/** Parses the words as the command would, without running it. */
async function verdictOn(line: string): Promise<string> {
  const words = [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, one, two, bare]) => one ?? two ?? bare!,
  );
  const program = await loadedProgram(words[0]);
  silence(program);
  try {
    program.parse(words, { from: "user" });
    return `${line}: accepted`;
  } catch (error) {
    return `${line}: ${(error as Error).message}`;
  }
}

function silence(command: Command): void {
  command.configureOutput({ writeErr: () => {}, writeOut: () => {} });
  if (Reflect.get(command, "_actionHandler") !== null) command.action(() => {});
  command.commands.forEach(silence);
}

it.each([
  ["the README and the runbook", typed, 50],
  ["the units", started, 5],
  ["the containers", contained, 3],
])("%s name commands and options that exist", async (_, lines, atLeast) => {
  expect(lines.length).toBeGreaterThanOrEqual(atLeast);
  const verdicts = [];
  for (const line of lines) verdicts.push(await verdictOn(line));
  expect(verdicts.filter((verdict) => !verdict.endsWith(": accepted"))).toEqual([]);
});

it("recognizes unknown commands and options", async () => {
  expect(await verdictOn("no-such")).toMatch(/unknown command/);
  expect(await verdictOn("database backup --keeps 7")).toMatch(/unknown option/);
});

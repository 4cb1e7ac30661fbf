/** What people are told of the commands: the README names each. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { loadedProgram } from "#ops/cli/commands";

it("the README's table names every command", async () => {
  const readme = readFileSync(new URL("../../../README.md", import.meta.url), "utf8");
  const rows = readme.split("\n").filter((line) => line.startsWith("| `"));
  const firsts = rows.flatMap((row) => [...(row.split(" | ")[0] ?? "").matchAll(/`([a-z-]+)/g)]);
  const named = firsts.map(([, name]) => name);

  const { commands } = await loadedProgram(undefined);

  expect(commands.length).toBeGreaterThan(20);
  expect(commands.map((one) => one.name()).filter((name) => !named.includes(name))).toEqual([]);
});

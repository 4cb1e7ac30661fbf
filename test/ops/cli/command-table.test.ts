/** What people are told of the commands: the README names each, and what changes while one looks can be watched. */
import { readdirSync, readFileSync } from "node:fs";
import type { Command } from "commander";
import { expect, it } from "vitest";
import { alertsCommand } from "#ops/cli/commands/alerts";
import { fleetCommand } from "#ops/cli/commands/fleet";
import { overviewCommand } from "#ops/cli/commands/overview";
import { queueCommand } from "#ops/cli/commands/queue";

const root = new URL("../../../", import.meta.url);

it("the README's table names every command", () => {
  const readme = readFileSync(new URL("README.md", root), "utf8");
  const files = readdirSync(new URL("ops/cli/commands/", root)).map((name) => name.replace(".ts", ""));
  const rows = readme.split("\n").filter((line) => line.startsWith("| `"));
  const firsts = rows.flatMap((row) => [...(row.split(" | ")[0] ?? "").matchAll(/`([a-z-]+)/g)]);
  const named = firsts.map(([, name]) => name);

  const missing = files.filter((name) => !named.includes(name));

  expect(files.length).toBeGreaterThan(20);
  expect(missing).toEqual([]);
});

it("every command whose numbers change can be watched", () => {
  const ofFleet = fleetCommand().commands.filter((one) => ["list", "show"].includes(one.name()));
  const changing = [overviewCommand(), alertsCommand(), queueCommand(), ...ofFleet];

  const options = (command: Command) => command.options.map(({ long }) => long);

  expect(changing).toHaveLength(5);
  for (const command of changing) {
    expect([command.name(), options(command)]).toEqual([
      command.name(),
      expect.arrayContaining(["--watch", "--every", "--json"]),
    ]);
  }
});

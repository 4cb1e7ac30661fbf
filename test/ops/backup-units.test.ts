/** The nightly backup as systemd runs it, and what the runbook says to type: units that are right, commands that exist. */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { databaseCommand } from "#ops/cli/commands/database";
import { temporaryFolder } from "../support/temporary-folder.ts";

const ops = resolve(import.meta.dirname, "../../ops");
const textOf = (path: string) => readFileSync(join(ops, path), "utf8");
const units = ["nearcrawl-backup.service", "nearcrawl-backup.timer"];
const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0;
if (!hasSystemd) process.stderr.write("skipped: systemd-analyze is not on this machine\n");

/** Parses the words as the command would, without running it; the fault in words, or "accepted". */
function verdictOn([database, ...words]: readonly string[]): string {
  if (database !== "database") return `no such command: ${database}`;
  const command = databaseCommand().exitOverride();
  for (const below of command.commands)
    below
      .exitOverride()
      .configureOutput({ writeErr: () => {} })
      .action(() => {});
  try {
    command.parse(words, { from: "user" });
    return "accepted";
  } catch (error) {
    return (error as Error).message;
  }
}

it.skipIf(!hasSystemd)("the units are right in systemd's eyes", () => {
  const folder = temporaryFolder("units-");
  // The command is not installed here; everything else is as shipped.
  for (const name of units)
    writeFileSync(
      join(folder, name),
      textOf(`systemd/${name}`).replaceAll("/usr/bin/nearcrawl", process.execPath),
    );

  const verify = spawnSync("systemd-analyze", ["verify", ...units.map((name) => join(folder, name))], {
    encoding: "utf8",
    env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` },
  });
  rmSync(folder, { recursive: true });

  expect(verify.stderr.split("\n").filter((line) => line.includes("nearcrawl-backup"))).toEqual([]);
  expect(verify.status).toBe(0);
});

it.skipIf(!hasSystemd)("the timer runs each night", () => {
  const when = /^OnCalendar=(.*)$/m.exec(textOf("systemd/nearcrawl-backup.timer"))![1]!;

  const told = execFileSync("systemd-analyze", ["calendar", "--iterations=2", when], { encoding: "utf8" });

  const days = [...told.matchAll(/(\d{4}-\d\d-\d\d) 02:30:00/g)].map(([, day]) => Date.parse(day as string));
  expect(days).toHaveLength(2);
  expect(days[1]! - days[0]!).toBe(86_400_000);
});

it("the service makes a backup and then verifies it, with commands that exist", () => {
  const service = textOf("systemd/nearcrawl-backup.service");
  const lines = [...service.matchAll(/^ExecStart=\/usr\/bin\/nearcrawl (.*)$/gm)].map((match) =>
    match[1]!.split(" "),
  );

  expect(lines.map(([, name]) => name)).toEqual(["backup", "verify"]);
  expect(lines.map(verdictOn)).toEqual(["accepted", "accepted"]);
  expect(verdictOn(["database", "backup", "--keeps", "7"])).toMatch(/unknown option/);
});

it("the runbook names commands and options that exist", () => {
  const page = textOf("runbook/backup-and-restore.md");
  const lines = [
    ...page.matchAll(/^(?: {4,9})?(?:sudo -u nearcrawl )?nearcrawl (database .*?)(?: +#.*)?$/gm),
  ].map((match) => match[1]!.split(" "));

  expect(lines.length).toBeGreaterThan(5);
  expect(lines.map((words) => `${words.join(" ")}: ${verdictOn(words)}`)).toEqual(
    lines.map((words) => `${words.join(" ")}: accepted`),
  );
});

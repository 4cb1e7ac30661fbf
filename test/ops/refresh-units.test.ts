/** The quarterly refresh as systemd and Kubernetes run it: units that are right, and commands that exist. */
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { sourcesCommand, statusCommand } from "#ops/cli/commands/rir";
import { applyCommand } from "#ops/cli/rir/apply-command";
import { fetchCommand } from "#ops/cli/rir/fetch-command";
import { planCommand } from "#ops/cli/rir/plan-page";
import { rdapCommand } from "#ops/cli/rir/rdap-command";
import { rollbackCommand, rollforwardCommand } from "#ops/cli/rir/rollback-command";
import { temporaryFolder } from "../support/temporary-folder.ts";

const ops = resolve(import.meta.dirname, "../../ops");
const textOf = (path: string) => readFileSync(join(ops, path), "utf8");
const units = readdirSync(join(ops, "systemd")).filter((name) =>
  /^nearcrawl-registry.*\.(service|timer)$/.test(name),
);
const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0;
if (!hasSystemd) process.stderr.write("skipped: systemd-analyze is not on this machine\n");

const commands: Readonly<Record<string, () => Command>> = {
  sources: sourcesCommand,
  fetch: fetchCommand,
  plan: planCommand,
  apply: applyCommand,
  rollback: rollbackCommand,
  rollforward: rollforwardCommand,
  status: statusCommand,
  rdap: rdapCommand,
};

/** Parses the words as the command would, without running it; the fault in words, or "accepted". */
function verdictOn([rir, name, ...words]: readonly string[]): string {
  const make = commands[name ?? ""];
  if (rir !== "rir" || make === undefined) return `no such command: ${rir} ${name}`;
  const command = make()
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  try {
    command.action(() => {}).parse(words, { from: "user" });
    return "accepted";
  } catch (error) {
    return (error as Error).message;
  }
}

const verdicts = (lines: readonly (readonly string[])[]) =>
  lines.map((words) => `${words.join(" ")}: ${verdictOn(words)}`);
const allAccepted = (lines: readonly (readonly string[])[]) =>
  lines.map((words) => `${words.join(" ")}: accepted`);

describe("the systemd units", () => {
  it.skipIf(!hasSystemd)("are right in systemd's eyes", () => {
    const folder = temporaryFolder("units-");
    // The command is not installed here; everything else is as shipped.
    for (const name of units) {
      writeFileSync(
        join(folder, name),
        textOf(`systemd/${name}`).replaceAll("/usr/bin/nearcrawl", process.execPath),
      );
    }

    const verify = spawnSync("systemd-analyze", ["verify", ...units.map((name) => join(folder, name))], {
      encoding: "utf8",
      env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` },
    });
    rmSync(folder, { recursive: true });

    expect(verify.stderr.split("\n").filter((line) => line.includes("nearcrawl-registry"))).toEqual([]);
    expect(verify.status).toBe(0);
  });

  it.skipIf(!hasSystemd)("run on the first of January, April, July and October", () => {
    const when = /^OnCalendar=(.*)$/m.exec(textOf("systemd/nearcrawl-registry-refresh.timer"))![1]!;

    const told = execFileSync("systemd-analyze", ["calendar", when], { encoding: "utf8" });

    expect(told).toContain("*-01,04,07,10-01 00:00:00");
  });

  it("name commands and options that exist", () => {
    const lines = units.flatMap((name) =>
      [...textOf(`systemd/${name}`).matchAll(/^ExecStart=\/usr\/bin\/nearcrawl (.*)$/gm)].map((match) =>
        match[1]!.split(" "),
      ),
    );

    expect(lines).toHaveLength(3);
    expect(verdicts(lines)).toEqual(allAccepted(lines));
  });

  it("import nothing unless the operator says so", () => {
    const refresh = textOf("systemd/nearcrawl-registry-refresh.service");

    expect(refresh).not.toMatch(/^ExecStart.*rir apply/m);
    expect(refresh).not.toMatch(/^OnSuccess/m);
    expect(textOf("systemd/apply-automatically.conf")).toMatch(
      /^OnSuccess=nearcrawl-registry-apply\.service$/m,
    );
  });
});

describe("the container jobs", () => {
  const manifest = textOf("containers/registry-refresh.yaml");
  const lines = [...manifest.matchAll(/^\s*args: (\[.*\])$/gm)].map(
    (match) => JSON.parse(match[1]!) as string[],
  );

  it("name commands and options that exist", () => {
    expect(lines.map(([, name]) => name)).toEqual(["fetch", "plan", "apply"]);
    expect(verdicts(lines)).toEqual(allAccepted(lines));
  });

  it("import nothing unless the operator says so", () => {
    const [, apply] = manifest.split(/^ {2}name: nearcrawl-registry-apply$/m);

    expect(apply).toMatch(/^ {2}suspend: true$/m);
  });
});

describe("the runbook", () => {
  it("names commands and options that exist", () => {
    const page = textOf("runbook/refreshing-the-registries.md");
    const lines = [...page.matchAll(/^ {4,9}(?:sudo -u nearcrawl )?nearcrawl (rir .*?)(?: +#.*)?$/gm)].map(
      (match) => match[1]!.split(" "),
    );

    expect(lines.length).toBeGreaterThan(5);
    expect(verdicts(lines)).toEqual(allAccepted(lines));
  });
});

/** The coordinator's timers and jobs for systemd and Kubernetes. Their commands: named-commands.test.ts. */
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.ts";

const ops = resolve(import.meta.dirname, "../../ops");
const textOf = (path: string) => readFileSync(join(ops, path), "utf8");
const units = readdirSync(join(ops, "systemd")).filter((name) =>
  /^nearcrawl-(registry|backup).*\.(service|timer)$/.test(name),
);
const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0;
if (!hasSystemd) process.stderr.write("skipped: systemd-analyze is not on this machine\n");

describe.skipIf(!hasSystemd)("the systemd units", () => {
  it("are right in systemd's eyes", () => {
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

    expect(verify.stderr.split("\n").filter((line) => line.includes("nearcrawl-"))).toEqual([]);
    expect(verify.status).toBe(0);
  });

  it.each([
    ["registry-refresh", "*-01,04,07,10-01 00:00:00"],
    ["backup", "*-*-* 02:30:00"],
  ])("run %s at its time", (name, expected) => {
    const when = /^OnCalendar=(.*)$/m.exec(textOf(`systemd/nearcrawl-${name}.timer`))![1]!;

    expect(execFileSync("systemd-analyze", ["calendar", when], { encoding: "utf8" })).toContain(expected);
  });
});

it("the backup is verified once it is made", () => {
  const lines = textOf("systemd/nearcrawl-backup.service").matchAll(/^ExecStart=\S+ database (\w+)/gm);

  expect([...lines].map(([, name]) => name)).toEqual(["backup", "verify"]);
});

it("nothing is imported unless the operator says so", () => {
  const refresh = textOf("systemd/nearcrawl-registry-refresh.service");
  const [, apply] = textOf("containers/registry-refresh.yaml").split(/^ {2}name: nearcrawl-registry-apply$/m);

  expect(refresh).not.toMatch(/^ExecStart.*rir apply/m);
  expect(refresh).not.toMatch(/^OnSuccess/m);
  expect(textOf("systemd/apply-automatically.conf")).toMatch(
    /^OnSuccess=nearcrawl-registry-apply\.service$/m,
  );
  expect(apply).toMatch(/^ {2}suspend: true$/m);
});

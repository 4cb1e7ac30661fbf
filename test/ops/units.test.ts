/** The coordinator's and the crawler's files for systemd, containers and Kubernetes. Their commands: named-commands.test.ts. */
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { readCoordinatorConfig } from "#coordinator/config";
import { addPartnerCommands, partnerSurroundings } from "#crawler/cli/partner-commands";
import { systemdUnit, usualPaths } from "#crawler/cli/unit-command";
import { openSearchAuthorization } from "#ops/cli/command-context";
import { partnerConsole } from "../migrating-crawler/support/partner-console.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const ops = resolve(import.meta.dirname, "../../ops");
const textOf = (path: string) => readFileSync(join(ops, path), "utf8");
const unit = textOf("systemd/nearcrawl-crawler.service");
const units = readdirSync(join(ops, "systemd")).filter((name) =>
  /^nearcrawl-(registry|backup).*\.(service|timer)$/.test(name),
);
const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0;
if (!hasSystemd) process.stderr.write("skipped: systemd-analyze is not on this machine\n");

describe.skipIf(!hasSystemd)("the systemd units", () => {
  it("are valid for systemd", () => {
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

// The systemd unit and container for a partner's machine: isolated, and consistent with the supervisor's file.

/**
 * What a service of this unit sees of the file system by systemd.exec(5): DynamicUser alone leaves homes accessible to their
 * owners.
 */
function seenIn(text: string): (path: string) => boolean {
  const bound = [...text.matchAll(/^Bind(?:ReadOnly)?Paths=(.*)$/gm)].flatMap(([, paths = ""]) =>
    paths.split(" "),
  );
  const hides = /^ProtectHome=(yes|tmpfs)$/m.exec(text)?.[1] ?? "read-only";
  return (path) =>
    !/^\/(home|root|run\/user)\//.test(path) ||
    (hides === "tmpfs" && bound.some((one) => path === one || path.startsWith(`${one}/`)));
}

/** The unit with a program of this machine. */
function withUnit<Value>(look: (path: string) => Value): Value {
  const folder = temporaryFolder("units-");
  const path = join(folder, "nearcrawl-crawler.service");
  writeFileSync(path, unit.replaceAll(usualPaths.node, process.execPath));
  try {
    return look(path);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Parses the words as the supervisor's file would, without running them. */
function accepts(words: readonly string[]): void {
  const program = new Command("nearcrawl-crawler").exitOverride();
  addPartnerCommands(program, partnerSurroundings({ env: {}, program: "test" }));
  for (const command of program.commands) command.exitOverride().action(() => {});
  program.parse([...words], { from: "user" });
}

describe("the crawler's systemd unit", () => {
  it("is what the unit command prints for the usual paths", () => {
    expect(unit).toBe(systemdUnit(usualPaths));
  });

  it("comes with this machine's paths from the command", async () => {
    const partner = partnerConsole();

    const { code, text } = await partner.run("unit", "--program", "/opt/near/nearcrawl-crawler.mjs");
    const refused = await partner.run("unit", "--program", "/opt/with blank/nearcrawl-crawler.mjs");

    expect(code).toBe(0);
    expect(text).toContain(
      `ExecStart=${process.execPath} /opt/near/nearcrawl-crawler.mjs run --home \${STATE_DIRECTORY}`,
    );
    expect(refused.code).toBe(2);
  });

  it("is made for a user's systemd with the joined folder", async () => {
    const partner = partnerConsole();
    const program = "/opt/near/nearcrawl-crawler.mjs";

    const { code, text } = await partner.run(
      "unit",
      "--user",
      "--program",
      program,
      "--home",
      "/home/ann/near",
    );
    const file = join(temporaryFolder("units-"), "nearcrawl-crawler.service");
    writeFileSync(file, text);
    const verify = hasSystemd
      ? spawnSync("systemd-analyze", ["--user", "verify", file], { encoding: "utf8" })
      : null;

    expect(code).toBe(0);
    expect(text).toContain(`ExecStart=${process.execPath} ${program} run --home /home/ann/near`);
    expect(text).toContain("WantedBy=default.target");
    expect((verify?.stderr ?? "").replace(/.*not executable.*\n|.*No such file.*\n/g, "")).not.toMatch(
      /Unknown|Failed to parse/,
    );
  });

  it.skipIf(!hasSystemd)("is valid for systemd", () => {
    const verify = withUnit((path) => spawnSync("systemd-analyze", ["verify", path], { encoding: "utf8" }));

    expect(verify.stderr.split("\n").filter((line) => line.includes("nearcrawl-crawler"))).toEqual([]);
    expect(verify.status).toBe(0);
  });

  it.skipIf(!hasSystemd)("has a systemd exposure of at most 1.5 of 10", () => {
    const words = ["security", "--offline=yes", "--threshold=15"];
    const { status, stdout } = withUnit((path) =>
      spawnSync("systemd-analyze", [...words, path], { encoding: "utf8" }),
    );

    expect(stdout).toContain("Overall exposure level");
    expect(status).toBe(0);
  });

  // Issue 41: with ProtectHome=yes over it, the program that somebody fetched into their home was not there (203/EXEC).
  it.each([
    ["/home/ann/nearcrawl-crawler.mjs", "/home/ann/.nvm/versions/node/v22.1.0/bin/node"],
    ["/root/nearcrawl-crawler.mjs", "/usr/bin/node"],
    ["/opt/near/nearcrawl-crawler.mjs", "/home/linuxbrew/.linuxbrew/Cellar/node/22.1.0/bin/node"],
  ])(
    "shows the program %s and Node at %s, and nothing else of people's folders, also while it joins",
    (program, node) => {
      const text = systemdUnit({ program, node });
      const joins = /^#.*\n# +(-p StateDirectory=.*) \S+ \S+ join TOKEN$/m.exec(text)?.[1] ?? "";
      const seen = seenIn(text.replace(/^#.*$/gm, ""));
      const seenAtJoining = seenIn(
        [...joins.matchAll(/-p "?([^"]+?)"?(?= -p|$)/g)].map(([, line]) => line).join("\n"),
      );

      for (const path of [program, node])
        expect([path, seen(path), seenAtJoining(path)]).toEqual([path, true, true]);
      expect(seen("/home/ann/.ssh/id_ed25519") || seen("/root/.ssh/id_ed25519")).toBe(false);
    },
  );

  it("is not printed for a program in a temporary folder, which is emptied", async () => {
    const partner = partnerConsole();

    const { code, text } = await partner.run("unit", "--program", "/tmp/nearcrawl-crawler.mjs");

    expect([code, text]).toEqual([2, expect.stringContaining("temporary folder")]);
  });

  it("names existing commands, and does not restart a refused crawler", () => {
    const commands = [...unit.matchAll(/^(?:#.* |ExecStart=\S+ )\S+\.mjs (join|run|uninstall)(.*)$/gm)];

    expect(commands.map(([, name]) => name)).toEqual(["join", "uninstall", "run"]);
    for (const [, name = "", rest = ""] of commands)
      accepts([name, ...rest.trim().split(" ").filter(Boolean)]);
    expect(unit).toMatch(/^RestartPreventExitStatus=2$/m);
  });
});

it("OpenSearch is composed only where it is asked for, with no port, and as the settings name it", () => {
  const compose = textOf("containers/compose.coordinator.yaml");
  const [, service = ""] = compose.split(/^ {2}opensearch:$/m);
  const own = service.split(/^ {2}\w+:$/m)[0]!;
  const values = textOf("containers/opensearch-values.yaml");

  expect(own).toMatch(/^ {4}profiles: \["opensearch"\]$/m);
  expect(own).not.toMatch(/^ +(ports|privileged|network_mode):/m);
  const [, url = ""] = /^#\s+url = "(.*)"$/m.exec(compose)!;
  for (const named of [url, /search\.url = "(.*?)"/.exec(values)![1]!]) {
    const search = { engine: "opensearch", url: named };
    expect(readCoordinatorConfig({ contact: "noc@example.org", search }).search).toMatchObject(search);
  }
  const secret = Object.fromEntries([...values.matchAll(/NEARCRAWL_\w+/g)].map(([name]) => [name, "x"]));
  expect(openSearchAuthorization(secret)).toBe(`Basic ${btoa("x:x")}`);
});

describe("the crawler's container", () => {
  const containerfile = textOf("containers/Containerfile.crawler");
  const compose = textOf("containers/compose.crawler.yaml");

  it("has only the one file, runs without privileges, and keeps one volume", () => {
    expect(containerfile).toMatch(/^USER 10001:10001$/m);
    expect(containerfile.match(/^VOLUME .*$/gm)).toEqual(["VOLUME /var/lib/nearcrawl-crawler"]);
    const [, last = ""] = containerfile.split(/^FROM .*bookworm-slim$/m);
    expect(last.match(/^COPY .*$/gm)).toEqual([
      "COPY --from=build --chmod=0444 /opt/nearcrawl/dist/nearcrawl-crawler.mjs /opt/nearcrawl/nearcrawl-crawler.mjs",
    ]);
  });

  it("is composed read-only, without capabilities or ports", () => {
    expect(compose).toMatch(/^ {4}read_only: true$/m);
    expect(compose).toMatch(/^ {4}cap_drop: \["ALL"\]$/m);
    expect(compose).toMatch(/^ {4}security_opt: \["no-new-privileges:true"\]$/m);
    expect(compose).not.toMatch(/^ +(ports|expose|privileged|cap_add|devices|network_mode):/m);
  });

  it("names existing commands", () => {
    const commands = [
      ...`${containerfile}\n${compose}`.matchAll(
        /(?:nearcrawl-crawler(?:\.mjs)?|crawler) (join|uninstall)( \S+)?/g,
      ),
    ];

    expect(commands.map(([, name]) => name)).toEqual(expect.arrayContaining(["join", "uninstall"]));
    for (const [, name = "", rest = ""] of commands)
      accepts([name, ...rest.trim().split(" ").filter(Boolean)]);
    accepts(["run"]);
  });
});

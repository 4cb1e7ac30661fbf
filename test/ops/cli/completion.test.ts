/** The completion scripts in real shells: what they offer for a partial line. */
import { execFileSync, spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command, Option } from "commander";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bashScript, commandNodes, zshScript } from "#ops/cli/commands/completion";
import { temporaryFolder } from "../../support/temporary-folder.ts";

/** Made like nearcrawl's, with words that could confuse a shell. */
function program(): Command {
  const fleet = new Command("fleet").description('who\'s there: `all` of "them" [$HOME]');
  fleet.addCommand(new Command("list").description("everybody").option("--json", "for programs"));
  fleet.addCommand(new Command("drain").argument("<name>").option("--home <folder>", "where it is"));
  const extract = new Command("extract").argument("<file>").description("what is read from a page");
  const up = new Command("up").addOption(
    new Option("--policy <name>", "how").choices(["nearest", "ipmicra"]),
  );
  return new Command("nearcrawl").addCommand(fleet).addCommand(extract).addCommand(up);
}

const hasZsh = spawnSync("zsh", ["--version"]).status === 0;
let folder: string;
beforeAll(() => {
  folder = temporaryFolder("nearcrawl-completion-");
  const nodes = commandNodes(program());
  writeFileSync(join(folder, "nearcrawl.bash"), bashScript(nodes));
  writeFileSync(join(folder, "nearcrawl.zsh"), zshScript(nodes));
  writeFileSync(join(folder, "page.html"), "");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The offers of bash at the line's end. */
function inBash(line: string): string[] {
  const words = line.split(" ");
  const script = `source nearcrawl.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nearcrawl; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return offered(execFileSync("bash", ["-c", script, "bash", ...words], { cwd: folder, encoding: "utf8" }));
}

/** The same in zsh, whose bashcompinit runs the function like this; zsh itself drops offers with another prefix. */
function inZsh(line: string): string[] {
  const script = `complete() { :; }; source nearcrawl.zsh; complete() { :; }
    ask() { emulate -L sh; setopt kshglob noshglob braceexpand; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nearcrawl; }
    ask "$@"; print -l -- $COMPREPLY`;
  const words = line.split(" ");
  const out = execFileSync("zsh", ["-f", "-c", script, "zsh", ...words], { cwd: folder, encoding: "utf8" });
  return offered(out).filter((one) => one.startsWith(words.at(-1)!));
}

const offered = (out: string) => out.split("\n").filter((one) => one !== "");

const offers: readonly (readonly [string, readonly string[]])[] = [
  ["nearcrawl f", ["fleet"]],
  ["nearcrawl fleet ", ["list", "drain", "help"]],
  ["nearcrawl fleet list --j", ["--json"]],
  ["nearcrawl up --policy ", ["nearest", "ipmicra"]],
  ["nearcrawl up --policy i", ["ipmicra"]],
  ["nearcrawl extract pa", ["page.html"]],
  ["nearcrawl fleet drain --home pa", ["page.html"]],
  ["nearcrawl no-such ", ["fleet", "extract", "up", "help"]],
];

describe("in bash", () => {
  it.each(offers)("%j offers %j", (line, expected) => {
    expect(inBash(line)).toEqual(expected);
  });
});

it("never takes an option's value for a command", () => {
  expect(inBash("nearcrawl up --policy fleet ")).toEqual([]);
});

describe.skipIf(!hasZsh)("in zsh", () => {
  it.each(offers.slice(0, 7))("%j offers %j", (line, expected) => {
    expect(inZsh(line)).toEqual(expected);
  });
});

if (!hasZsh) process.stdout.write("there is no zsh here: its completion is not tried\n");

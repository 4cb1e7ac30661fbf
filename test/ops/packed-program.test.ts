/** The package: what `npm pack` makes installs globally, without a compiler, and has the whole command. */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { projectRoot } from "../support/built-command.ts";
import { packedProgram } from "../support/packed-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const run = promisify(execFile);

it("installs globally from the packed file, and leaves the clone as it was", {
  timeout: 300_000,
}, async (context) => {
  const packed = await packedProgram();
  if (typeof packed === "string") {
    process.stdout.write(`the package was not installed, since no registry was reached: ${packed}\n`);
    context.skip();
    return;
  }
  const { nearcrawl, manifest, copy } = packed;
  const home = temporaryFolder("nearcrawl-home-");
  const { stdout: version } = await run(nearcrawl, ["--version"]);
  const { stdout: help } = await run(nearcrawl, ["--help"]);
  const { stdout: url } = await run(nearcrawl, ["database", "url", "--home", home]);
  await run(nearcrawl, ["database", "stop", "--home", home]);

  expect(version.trim()).toBe(manifest.version);
  expect(help).toContain("urls");
  expect(url).toMatch(/^postgres/);
  expect(Object.keys(manifest)).not.toContain("devDependencies");
  expect(readFileSync(join(copy, "package.json"))).toEqual(readFileSync(join(projectRoot, "package.json")));
  expect(existsSync(join(copy, "package.json.kept-while-packing"))).toBe(false);
});

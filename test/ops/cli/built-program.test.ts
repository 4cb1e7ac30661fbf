/** A build's output can be run as a command, even without a later npm install. */
import { execFile } from "node:child_process";
import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { builtProgram, projectRoot } from "../../support/built-command.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

it("the built program is executable", async () => {
  const program = await builtProgram("ops/cli/main");

  expect(() => accessSync(program, constants.X_OK)).not.toThrow();
});

it.each([".", "ops/cli"])("npx finds the command from %s, and installs nothing for it", async (folder) => {
  await builtProgram("ops/cli/main");
  const cache = temporaryFolder("nearcrawl-npm-cache-");

  const { out, err } = await npx(["--yes=false", "nearcrawl", "--version"], { cache, folder });

  expect(out, err).toBe(`${packageVersion()}\n`);
  // The folder where npx installs packages and keeps incomplete ones.
  expect(existsSync(join(cache, "_npx"))).toBe(false);
});

const packageVersion = () => JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8")).version;

/** As in a shell, without the settings that npm passes on when it started the test. */
async function npx(args: readonly string[], at: { cache: string; folder: string }) {
  const own = Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name));
  const env = { ...Object.fromEntries(own), npm_config_cache: at.cache };
  return await new Promise<{ out: string; err: string }>((done) => {
    execFile("npx", args, { env, cwd: join(projectRoot, at.folder) }, (_, out, err) => done({ out, err }));
  });
}

/** The package of `npm pack` installs globally without a compiler and has the whole command. */
import { execFile } from "node:child_process";
import { existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { projectRoot } from "../support/built-command.ts";
import { packedProgram } from "../support/packed-program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const run = promisify(execFile);

it("installs globally from the packed file, and does not change the clone", {
  timeout: 300_000,
}, async (context) => {
  const packed = await packedProgram();
  if (typeof packed === "string") {
    process.stdout.write(`the package was not installed, since no registry was reached: ${packed}\n`);
    context.skip();
    return;
  }
  const { nearcrawl, manifest, copy, folder } = packed;
  const home = temporaryFolder("nearcrawl-home-");
  const { stdout: version } = await run(nearcrawl, ["--version"]);
  const { stdout: help } = await run(nearcrawl, ["--help"]);
  const { stdout: url } = await run(nearcrawl, ["database", "url", "--home", home]);
  await run(nearcrawl, ["coordinator", "add-crawler", "athens", "--home", home]);
  // The index of the search is SQLite's, which the bundle does not have. An empty answer has an exit code of its own.
  const searching = run(nearcrawl, ["search", "wind", "--json", "--home", home]);
  const { stdout: found } = await searching.catch((error: { readonly stdout: string }) => error);
  await run(nearcrawl, ["database", "stop", "--home", home]);
  const page = join(home, "page.html");
  writeFileSync(
    page,
    `<!doctype html><title>Wind</title><p>${"The wind blew over the hills of the north. ".repeat(9)}</p>`,
  );
  const { stdout: extracted } = await run(nearcrawl, ["extract", page, "--json"]);

  expect(version.trim()).toBe(manifest.version);
  expect(help).toContain("urls");
  expect(url).toMatch(/^postgres/);
  expect(JSON.parse(found)).toMatchObject({ total: 0, note: null });
  expect(JSON.parse(extracted)).toMatchObject({ page: { language: "en" } });
  expect(Object.keys(manifest)).not.toContain("devDependencies");
  // Its folder with the packages; the database's binaries are most of it.
  expect(installedPackages(folder).length).toBeLessThan(120);
  expect(bytesIn(folder)).toBeLessThan(100e6);
  expect(readFileSync(join(copy, "package.json"))).toEqual(readFileSync(join(projectRoot, "package.json")));
  expect(existsSync(join(copy, "package.json.kept-while-packing"))).toBe(false);
});

function installedPackages(folder: string): string[] {
  const isPackage = /node_modules\/(?:@[^/]+\/)?[^/]+\/package\.json$/;
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    isPackage.test(`/${name}`),
  );
}

function bytesIn(folder: string): number {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return names.reduce((sum, name) => sum + lstatSync(join(folder, name)).size, 0);
}

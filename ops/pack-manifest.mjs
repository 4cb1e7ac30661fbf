// `npm pack` runs this before and after packing, because the package differs from the clone: its package.json names the
// command `nearcrawl` as "bin" (ops/build.mjs says why the clone's does not) and nothing that only development needs,
// including the packages that its bundle contains (ops/bundle-program.mjs). `before` writes the package's manifest and
// keeps the clone's beside it. `after` restores the clone's, and so does `before` if packing was interrupted.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const manifestFile = join(root, "package.json");
const keptFile = join(root, "package.json.kept-while-packing");

if (existsSync(keptFile)) renameSync(keptFile, manifestFile);
if (process.argv[2] === "before") {
  execFileSync(process.execPath, [join(root, "ops/build.mjs")], { stdio: "inherit" });
  const text = readFileSync(manifestFile, "utf8");
  const { name, version, description, license, type, engines, files, dependencies, optionalDependencies } =
    JSON.parse(text);
  // Its WebAssembly lies beside its code, so the bundle leaves it out.
  const unbundled = { "node-sqlite3-wasm": dependencies["node-sqlite3-wasm"] };
  writeFileSync(keptFile, text);
  const bin = { nearcrawl: "dist/ops/cli/main.js" };
  const packed = {
    ...{ name, version, description, license, type, engines, bin, files },
    ...{ dependencies: unbundled, optionalDependencies },
  };
  writeFileSync(`${manifestFile}.new`, `${JSON.stringify(packed, null, 2)}\n`);
  renameSync(`${manifestFile}.new`, manifestFile);
}

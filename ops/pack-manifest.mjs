// `npm pack` runs this before and after it packs: the package has the command `nearcrawl` and nothing that only development
// needs (the packages that lie in its bundle among it: ops/bundle-program.mjs), and dist/ as the sources have it, while the
// clone's package.json has no "bin" (ops/build.mjs says why). `before` writes the package's manifest and keeps the clone's
// beside it, `after` puts that back; so does `before`, where a packing was interrupted.
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
  const { name, version, description, license, type, engines, files, optionalDependencies } =
    JSON.parse(text);
  writeFileSync(keptFile, text);
  const bin = { nearcrawl: "dist/ops/cli/main.js" };
  const packed = { name, version, description, license, type, engines, bin, files, optionalDependencies };
  writeFileSync(`${manifestFile}.new`, `${JSON.stringify(packed, null, 2)}\n`);
  renameSync(`${manifestFile}.new`, manifestFile);
}
